"""Walk one chain of a record again, from the seed and its evidence alone, and say where the record differs.

Starting states, proposals, base ratios and uniforms are drawn again; every tally and verdict is recomputed from the
votes in their order, or from the ratings where the rule rates (`rating_evidence.py`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from sampler.acceptance import Verdict
from sampler.chain import Comparison, Tally, advance, tell
from sampler.record.draw_source import Chronicle
from sampler.record.state_index import Ledger

Row = Mapping[str, str]
Place = tuple[int, int]
"""The chain and the step."""


@dataclass(frozen=True)
class Difference:
    """One place where the record does not say what the recomputation gives."""

    chain: int
    step: int
    what: str
    recorded: str
    recomputed: str

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


class Votes:
    """Each step's counted votes in order, by its place."""

    def __init__(self, votes_of: Mapping[Place, list[Row]]) -> None:
        self._votes_of = votes_of

    def settle(
        self, comparison: Comparison[Any], numbers: tuple[int, int], row: Row
    ) -> Generator[Difference, None, Verdict]:
        """Return the verdict of the step's votes; see `Evidence`."""
        cast = self._votes_of.get((comparison.chain, comparison.step), [])
        yield from _compare_voters(comparison, cast)
        tally, verdict = yield from _count(comparison, cast)
        yield from compare_outcome(comparison, row, tally, verdict)
        return verdict


def retrace(
    chronicle: Chronicle,
    ledger: Ledger,
    length: int,
    chain: int,
    rows: list[Row],
    evidence: Evidence,
    visits: dict[Place, int],
) -> Iterator[Difference]:
    """Yield where a chain's steps and samples differ from what its evidence gives.

    Args:
        chronicle: the chain's draws.
        ledger: the record's states.
        length: how many steps the recipe asks for.
        rows: the chain's steps in order.
        evidence: its votes or ratings.
        visits: the sampled states; those that the chain reaches are taken out.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a cell is not what its column holds.
    """
    position = chronicle.begin(chain)
    number = ledger.number(chain, 0, position.state)
    yield from _compare_state(ledger, (chain, 0), number, position.state)
    yield from _compare_sample((chain, 0), number, visits)
    verdict = None
    for row in rows:
        if int(row["step"]) != position.step + 1 or verdict is Verdict.UNDECIDED:
            expected = "no step after an open one" if verdict is Verdict.UNDECIDED else str(position.step + 1)
            yield Difference(chain, int(row["step"]), "the step's number", row["step"], expected)
            return
        if position.step == length:
            yield Difference(chain, length + 1, "the step", "one", f"none: the last step is {length}")
            return
        comparison = chronicle.ask(position, row)
        new = number if comparison.is_identity else ledger.number(chain, comparison.step, comparison.proposal)
        drawn_differently = [
            *_compare_draw(comparison, number, new, row),
            *_compare_state(ledger, (chain, comparison.step), new, comparison.proposal),
        ]
        yield from drawn_differently
        if drawn_differently:
            # Whatever follows in this chain rests on the draw that differs.
            return
        verdict = yield from evidence.settle(comparison, (number, new), row)
        if verdict is not Verdict.UNDECIDED:
            position = advance(position, comparison, verdict)
            number = new if verdict is Verdict.ACCEPT else number
            yield from _compare_sample((chain, position.step), number, visits)


def is_for_proposal(vote: Row) -> bool:
    """Return what a vote's sides say.

    Raises:
        ValueError: a side is neither left nor right.
    """
    for column in ("proposal_side", "chosen_side"):
        if vote[column] not in ("left", "right"):
            raise ValueError(f"{column} must be left or right, not “{vote[column]}”")
    return vote["chosen_side"] == vote["proposal_side"]


def _compare_state(ledger: Ledger, place: Place, number: int, state: Any) -> Iterator[Difference]:
    for recorded, recomputed in ledger.compare(number, state):
        yield Difference(*place, f"state {number}", recorded, recomputed)


def _compare_draw(comparison: Comparison[Any], current: int, proposal: int, row: Row) -> Iterator[Difference]:
    recomputed: dict[str, tuple[object, object]] = {
        "current": (int(row["current"]), current),
        "proposal": (int(row["proposal"]), proposal),
        "log_r0": (float(row["log_r0"]), comparison.log_r0),
        "budgets": (_counts(row["budgets"]), comparison.budgets),
    }
    # The uniform of a step that is still open is kept from everybody, also from who reads the export.
    if row["uniform"] or row["verdict"]:
        recomputed["uniform"] = float(row["uniform"]), comparison.uniform
    for what, (recorded, value) in recomputed.items():
        close = what == "log_r0" and np.isclose(comparison.log_r0, float(row["log_r0"]), rtol=1e-12, atol=1e-12)
        if recorded != value and not close:
            yield Difference(comparison.chain, comparison.step, what, str(recorded), str(value))


def _counts(cell: str) -> tuple[int, ...]:
    if not all(number.isdecimal() for number in cell.split()):
        raise ValueError(f"“{cell}” must be whole numbers separated by spaces")
    return tuple(int(number) for number in cell.split())


def _compare_voters(comparison: Comparison[Any], cast: list[Row]) -> Iterator[Difference]:
    differs = partial(Difference, comparison.chain, comparison.step)
    answered: set[tuple[int, str]] = set()
    for expected, vote in enumerate(cast, start=1):
        name = f"vote {vote['number']}"
        if int(vote["number"]) != expected:
            yield differs(name, vote["number"], str(expected))
        answer = int(vote["judge"]), vote["annotator"] or f"slot {vote['slot']}"
        if answer in answered:
            whose = f"annotator {vote['annotator']}" if vote["annotator"] else f"the model for slot {vote['slot']}"
            yield differs(name, "counted", f"not counted: a second vote of {whose}")
        answered.add(answer)


def _count(comparison: Comparison[Any], cast: list[Row]) -> Generator[Difference, None, tuple[Tally, Verdict]]:
    """Return the tally of the votes that count and the verdict it gives."""
    tally = Tally.empty(len(comparison.budgets))
    verdict = tell(comparison, tally)
    for vote in cast:
        judge = int(vote["judge"])
        counted = tally.add(judge, is_for_proposal(vote))
        if verdict is not Verdict.UNDECIDED:
            problem = f"not counted: {verdict.value} was settled before it"
        elif counted.votes_cast[judge] > comparison.budgets[judge]:
            problem = f"not counted: judge {judge} has used its budget"
        else:
            tally, verdict = counted, tell(comparison, counted)
            continue
        yield Difference(comparison.chain, comparison.step, f"vote {vote['number']}", "counted", problem)
    return tally, verdict


def compare_outcome(comparison: Comparison[Any], row: Row, tally: Tally, verdict: Verdict) -> Iterator[Difference]:
    """Yield where a step's row has another tally or another verdict."""
    differs = partial(Difference, comparison.chain, comparison.step)
    for column, counts in {"votes_cast": tally.votes_cast, "votes_for": tally.votes_for}.items():
        if _counts(row[column]) != counts:
            yield differs(column, f"“{row[column]}”", f"“{' '.join(map(str, counts))}”")
    recorded = row["verdict"] or Verdict.UNDECIDED.value
    if recorded != verdict.value:
        yield differs("the verdict", recorded, verdict.value)


def _compare_sample(place: Place, number: int, visits: dict[Place, int]) -> Iterator[Difference]:
    recorded = visits.pop(place, None)
    if recorded != number:
        shown = "missing" if recorded is None else str(recorded)
        yield Difference(*place, "the sample", shown, str(number))
