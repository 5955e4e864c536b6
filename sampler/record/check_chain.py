"""Walk one chain of a record again, from the seed and its evidence alone, and say where the record differs.

Starting states, proposals, base ratios and uniforms are drawn again; every tally and verdict is recomputed from the
votes in their order, or from ratings or scores where the rule goes by these (`rating_evidence.py`,
`score_evidence.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from sampler.acceptance import Verdict
from sampler.chain import Comparison, Tally, advance
from sampler.config import ChainConfig
from sampler.record import schema
from sampler.record.cells import whole_numbers
from sampler.record.draw_source import DrawSource
from sampler.record.state_index import StateIndex

Row = Mapping[str, str]
StepKey = tuple[int, int]
"""The chain and the step."""


def step_key(row: Row) -> StepKey:
    """Return the step that a row is about."""
    return int(row["chain"]), int(row["step"])


class RowError(ValueError):
    """A row with a cell that is not what its column holds, or that says what cannot be.

    Args:
        file, row: which one; None where it is about more than one row.
    """

    def __init__(self, message: str, file: str, row: Row | None) -> None:
        super().__init__(message)
        self.file, self.row = file, row


@contextmanager
def reading(file: str, row: Row | None = None) -> Iterator[None]:
    """Let errors of what is done with a file, or with one of its rows, say which one it is."""
    try:
        yield
    except RowError:
        raise
    except ValueError as error:
        raise RowError(str(error), file, row) from error


@dataclass(frozen=True)
class Tables:
    """The rows of a record's CSV files; states and steps in order."""

    states: list[Row]
    steps: list[Row]
    votes: list[Row]
    samples: list[Row]
    ratings: list[Row]
    scores: list[Row] = field(default_factory=list)
    waits_for_seed: bool = False
    """Whether the seed is not told yet: nothing that was drawn from it can be drawn again."""

    @cached_property
    def counted_votes(self) -> dict[StepKey, list[Row]]:
        """The votes that counted, in order, by step; a step that had late votes only is there too."""
        by_step: dict[StepKey, list[Row]] = {}
        for row in self.votes:
            cast = by_step.setdefault(step_key(row), [])
            if row["number"]:
                cast.append(row)
        for cast in by_step.values():
            cast.sort(key=lambda row: int(row["number"]))
        return by_step


@dataclass(frozen=True)
class Difference:
    """One point where the record does not say what the recomputation gives."""

    chain: int
    step: int
    what: str
    recorded: str
    recomputed: str
    file: str = field(default=schema.STEPS.file, compare=False)
    row: Row | None = field(default=None, compare=False, repr=False)
    """Which row of the file, if the difference is about one that is there; in steps.csv and samples.csv, without it,
    that of the step."""

    def __str__(self) -> str:
        return (
            f"chain {self.chain}, step {self.step}: {self.what}: the export has {self.recorded}, "
            f"expected {self.recomputed}"
        )


class Evidence(Protocol):
    """What a record's steps were decided by."""

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], row: Row
    ) -> Generator[Difference, None, Verdict]:
        """Return the verdict it gives, and yield where it or the step's row is not as it should be.

        Args:
            numbers: of the current state and of the proposal.
            row: what steps.csv says of the step.
        """
        ...

    def compare_vote(self, row: Row) -> Iterator[Difference]:
        """Yield where a row of votes.csv is not as it should be, whether the vote counted or not."""
        ...


def check_chain(
    draws: DrawSource,
    index: StateIndex,
    config: ChainConfig,
    chain: int,
    rows: list[Row],
    evidence: Evidence,
    visits: dict[StepKey, int],
    last: int,
) -> Iterator[Difference]:
    """Yield where a chain's steps and samples differ from what its evidence gives.

    Args:
        draws: the chain's draws.
        index: the record's states.
        config: says which part of a kernel proposes in which step.
        rows: the chain's steps in order.
        evidence: its votes, ratings or scores.
        visits: the sampled states; those that the chain reaches are taken out.
        last: the last step that there can be; that of the warm-up while its length is not chosen.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a cell is not what its column holds.
    """
    position = draws.begin(chain)
    number = index.number(chain, 0, position.state)
    yield from _compare_state(index, (chain, 0), number, position.state)
    yield from _compare_sample((chain, 0), number, visits)
    verdict = None
    for row in rows:
        if int(row["step"]) != position.step + 1 or verdict is Verdict.UNDECIDED:
            expected = "no step after an open one" if verdict is Verdict.UNDECIDED else str(position.step + 1)
            yield Difference(chain, int(row["step"]), "the step's number", row["step"], expected, row=row)
            return
        if position.step == last:
            until = "" if last >= config.steps else " until tuning.json says how far the others walk"
            yield Difference(chain, last + 1, "the step", "one", f"none: the last step is {last}{until}")
            return
        with reading(schema.STEPS.file, row):
            comparison = draws.ask(position, row)
            new = number if comparison.is_identity else index.number(chain, comparison.step, comparison.proposal)
            drawn_differently = [
                *(() if draws.waits_for_seed else _compare_part(config, comparison, row)),
                *_compare_draw(comparison, number, new, row),
                *_compare_state(index, (chain, comparison.step), new, comparison.proposal),
                *(Difference(chain, comparison.step, "proposal", *said) for said in draws.impossible(comparison)),
            ]
        yield from drawn_differently
        if drawn_differently:
            # Whatever follows in this chain rests on the draw that differs.
            return
        with reading(schema.STEPS.file, row):
            verdict = yield from evidence.settle(comparison, (number, new), row)
        if verdict is not Verdict.UNDECIDED:
            position = advance(position, comparison, verdict)
            number = new if verdict is Verdict.ACCEPT else number
            yield from _compare_sample((chain, position.step), number, visits)


def _compare_state(index: StateIndex, key: StepKey, number: int, state: Any) -> Iterator[Difference]:
    for recorded, recomputed in index.compare(number, state):
        yield Difference(*key, f"state {number}", recorded, recomputed, schema.STATES.file, index.row(number))


def _compare_part(config: ChainConfig, comparison: Comparison[Any], row: Row) -> Iterator[Difference]:
    if not config.has_parts:
        return
    part = config.part_of(comparison.chain, comparison.step)
    expected = "" if part is None else str(part)
    if row["part"] != expected:
        yield Difference(comparison.chain, comparison.step, "part", f"“{row['part']}”", f"“{expected}”")


def _compare_draw(comparison: Comparison[Any], current: int, proposal: int, row: Row) -> Iterator[Difference]:
    recomputed: dict[str, tuple[object, object]] = {
        "current": (int(row["current"]), current),
        "proposal": (int(row["proposal"]), proposal),
        "log_r0": (float(row["log_r0"]), comparison.log_r0),
        "budgets": (whole_numbers(row["budgets"]), comparison.budgets),
    }
    # The uniform of a step that is still open is kept from everybody, also from who reads the export.
    if row["uniform"] or row["verdict"]:
        recomputed["uniform"] = float(row["uniform"]), comparison.uniform
    for what, (recorded, value) in recomputed.items():
        close = what == "log_r0" and np.isclose(comparison.log_r0, float(row["log_r0"]), rtol=1e-12, atol=1e-12)
        if recorded != value and not close:
            yield Difference(comparison.chain, comparison.step, what, str(recorded), str(value))


def compare_outcome(comparison: Comparison[Any], row: Row, tally: Tally, verdict: Verdict) -> Iterator[Difference]:
    """Yield where a step's row has another tally or another verdict."""
    differs = partial(Difference, comparison.chain, comparison.step)
    for column, counts in {"votes_cast": tally.votes_cast, "votes_for": tally.votes_for}.items():
        if whole_numbers(row[column]) != counts:
            yield differs(column, f"“{row[column]}”", f"“{' '.join(map(str, counts))}”")
    recorded = row["verdict"] or Verdict.UNDECIDED.value
    if recorded != verdict.value:
        yield differs("the verdict", recorded, verdict.value)


def _compare_sample(key: StepKey, number: int, visits: dict[StepKey, int]) -> Iterator[Difference]:
    recorded = visits.pop(key, None)
    if recorded != number:
        shown = "missing" if recorded is None else str(recorded)
        yield Difference(*key, "the sample", shown, str(number), schema.SAMPLES.file)
