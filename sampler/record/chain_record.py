"""Which chains a record has: all that the config starts with, and those that chains.csv says opened later.

A chain opens when somebody would wait, so nothing in the record says how many there should be. What can be checked:
they have numbers without a gap, no more than the config allows, and their moments follow each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sampler.config import ChainConfig
from sampler.record import schema
from sampler.record.check_chain import Difference, Row

_FILE = schema.CHAINS.file


def chains_in(config: ChainConfig, rows: list[Row] | None) -> int:
    """Return how many chains a record has.

    Raises:
        ValueError: chains open while the campaign runs, and there is no chains.csv; or a chain's number is none.
    """
    if not config.is_elastic:
        return config.chains
    if rows is None:
        raise ValueError("there is no chains.csv, although the config has max_chains")
    last = max((int(row["chain"]) for row in rows), default=-1)
    return min(max(config.chains, last + 1), config.chains_at_most)


def compare_openings(config: ChainConfig, rows: list[Row], steps: Iterable[Row]) -> Iterator[Difference]:
    """Yield where chains.csv cannot be right."""
    in_order = sorted(rows, key=lambda row: int(row["chain"]))
    yield from _compare_numbers(config, [int(row["chain"]) for row in in_order])
    opened_at: dict[str, str] = {}
    latest = ""
    for row in in_order:
        opened_at[row["chain"]] = moment = row["opened_at"]
        # Moments of one zone, written in one way: their order is that of their letters.
        if moment < latest or (int(row["chain"]) < config.chains and latest not in ("", moment)):
            yield Difference(int(row["chain"]), 0, "when the chain opened", moment, f"{latest} or later", *_at(row))
        latest = max(latest, moment)
        yield from _compare_reason(config, row)
    for step in steps:
        if step["opened_at"] < opened_at.get(step["chain"], ""):
            yield Difference(
                int(step["chain"]), int(step["step"]), "when the step opened", step["opened_at"],
                f"no earlier than its chain, {opened_at[step['chain']]}",
            )  # fmt: skip


def _compare_numbers(config: ChainConfig, numbers: list[int]) -> Iterator[Difference]:
    for chain in sorted(set(range(chains_in(config, [{"chain": str(each)} for each in numbers]))) - set(numbers)):
        yield Difference(chain, 0, "the chain in chains.csv", "none", "one: chains are numbered without a gap", _FILE)
    for chain in sorted({each for each in numbers if numbers.count(each) > 1}):
        yield Difference(chain, 0, "the chain in chains.csv", f"{numbers.count(chain)} rows", "one", _FILE)
    for chain in numbers:
        if not 0 <= chain < config.chains_at_most:
            yield Difference(
                chain, 0, "the chain", "one", f"none: there are {config.chains_at_most} chains at most", _FILE
            )


def _compare_reason(config: ChainConfig, row: Row) -> Iterator[Difference]:
    is_late = int(row["chain"]) >= config.chains
    expected = (schema.FOR_A_PERSON, schema.AHEAD) if is_late else (schema.AT_START,)
    if row["reason"] not in expected:
        reasons = " or ".join(f"“{each}”" for each in expected)
        yield Difference(int(row["chain"]), 0, "why the chain opened", f"“{row['reason']}”", reasons, *_at(row))
    if row["annotator"].isdigit() != is_late:
        who = "the number of who would have waited" if is_late else "nobody"
        yield Difference(int(row["chain"]), 0, "for whom the chain opened", f"“{row['annotator']}”", who, *_at(row))


def _at(row: Row) -> tuple[str, Row]:
    return _FILE, row
