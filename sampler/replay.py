"""Recompute a campaign from its exported record alone and say where the record differs.

Nothing here trusts the record beyond the recipe and the votes: starting states, proposals, base ratios and
uniforms are drawn again from the seed, every verdict is recomputed from the votes in their order.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sampler.acceptance import Verdict
from sampler.chain import Comparison, Plan, Position, Tally, advance, ask, begin, tell
from sampler.recipe import parse_recipe
from sampler.spaces.catalog import Catalog

Row = Mapping[str, str]


class RecordError(ValueError):
    """A record that cannot be read: a file, a column or a number is missing or malformed."""


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
            f"chain {self.chain}, step {self.step}: {self.what} is {self.recorded} in the record, "
            f"{self.recomputed} recomputed"
        )


@dataclass(frozen=True)
class Replay:
    """What a replay found."""

    verdicts: int
    votes: int
    differences: tuple[Difference, ...]


def replay(
    recipe: Mapping[str, Any],
    states: Iterable[Row],
    steps: Iterable[Row],
    votes: Iterable[Row],
    samples: Iterable[Row],
) -> Replay:
    """Recompute every decision of an export; the arguments are recipe.json and the rows of its CSV files.

    Raises:
        RecordError: a column or a cell is missing, or a cell is not what its column holds.
        RecipeError: the recipe does not parse.
    """
    parsed = parse_recipe(recipe)
    try:
        plan = parsed.build(_catalog(_whole("states", states)))
        votes_of = _votes_by_step(_whole("votes", votes))
        visits: dict[tuple[int, int], int] = {}
        differences: list[Difference] = []
        for row in _whole("samples", samples):
            place, state = (int(row["chain"]), int(row["step"])), int(row["state"])
            if place in visits:
                differences.append(Difference(*place, "a second sample", str(state), "one sample a step"))
            visits[place] = state
        rows = sorted(_whole("steps", steps), key=lambda row: (int(row["chain"]), int(row["step"])))
        for chain in range(parsed.chains):
            mine = [row for row in rows if int(row["chain"]) == chain]
            differences += _replay_chain(plan, parsed.steps, chain, mine, votes_of, visits)
        differences += _compare_leftovers(parsed.chains, rows, votes_of, visits)
    except (KeyError, ValueError) as error:
        problem = f"there is no column {error}" if isinstance(error, KeyError) else str(error)
        raise RecordError(f"The record cannot be read: {problem}") from error
    decided = sum(row["verdict"] != "" for row in rows)
    return Replay(decided, sum(len(cast) for cast in votes_of.values()), tuple(differences))


def _whole(table: str, rows: Iterable[Row]) -> Iterator[Row]:
    # csv.DictReader gives None for the cells that a row lacks.
    for number, row in enumerate(rows, start=2):
        if None in row.values():
            raise ValueError(f"row {number} of {table}.csv has fewer cells than the first")
        yield row


def _catalog(states: Iterable[Row]) -> Catalog:
    rows = sorted(states, key=lambda row: int(row["state"]))
    if [int(row["state"]) for row in rows] != list(range(len(rows))):
        raise ValueError("states must be numbered from 0 without a gap")
    graph = tuple(tuple(int(other) for other in row["neighbours"].split()) for row in rows)
    return Catalog(np.array([float(row["weight"]) for row in rows]), graph if any(graph) else ())


def _votes_by_step(votes: Iterable[Row]) -> dict[tuple[int, int], list[Row]]:
    by_step: dict[tuple[int, int], list[Row]] = {}
    for row in votes:
        if row["number"]:
            by_step.setdefault((int(row["chain"]), int(row["step"])), []).append(row)
    for cast in by_step.values():
        cast.sort(key=lambda row: int(row["number"]))
    return by_step


def _replay_chain(
    plan: Plan[int],
    length: int,
    chain: int,
    rows: list[Row],
    votes_of: dict[tuple[int, int], list[Row]],
    visits: dict[tuple[int, int], int],
) -> Iterator[Difference]:
    position = begin(plan, chain)
    yield from _compare_sample(position, visits)
    verdict = None
    for row in rows:
        if int(row["step"]) != position.step + 1 or verdict is Verdict.UNDECIDED:
            expected = "no step after an open one" if verdict is Verdict.UNDECIDED else str(position.step + 1)
            yield Difference(chain, int(row["step"]), "the step's number", row["step"], expected)
            return
        if position.step == length:
            yield Difference(chain, length + 1, "the step", "there", f"beyond the last, {length}")
            return
        comparison = ask(plan, position)
        drawn_differently = list(_compare_draw(comparison, row))
        yield from drawn_differently
        if drawn_differently:
            # Whatever follows in this chain rests on the draw that differs.
            return
        verdict = yield from _compare_votes(comparison, row, votes_of.get((chain, comparison.step), []))
        if verdict is not Verdict.UNDECIDED:
            position = advance(position, comparison, verdict)
            yield from _compare_sample(position, visits)


def _compare_draw(comparison: Comparison[int], row: Row) -> Iterator[Difference]:
    recomputed: dict[str, tuple[object, object]] = {
        "current": (int(row["current"]), comparison.current),
        "proposal": (int(row["proposal"]), comparison.proposal),
        "log_r0": (float(row["log_r0"]), comparison.log_r0),
        "uniform": (float(row["uniform"]), comparison.uniform),
        "budgets": (tuple(int(n) for n in row["budgets"].split()), comparison.budgets),
    }
    for what, (recorded, value) in recomputed.items():
        close = what == "log_r0" and np.isclose(comparison.log_r0, float(row["log_r0"]), rtol=1e-12, atol=1e-12)
        if recorded != value and not close:
            yield Difference(comparison.chain, comparison.step, what, str(recorded), str(value))


def _compare_votes(comparison: Comparison[int], row: Row, cast: list[Row]) -> Generator[Difference, None, Verdict]:
    def difference(what: str, recorded: str, recomputed: str) -> Difference:
        return Difference(comparison.chain, comparison.step, what, recorded, recomputed)

    tally = Tally.empty(len(comparison.budgets))
    verdict = tell(comparison, tally)
    answered: set[tuple[str, str]] = set()
    for expected, vote in enumerate(cast, start=1):
        name = f"vote {vote['number']}"
        if int(vote["number"]) != expected:
            yield difference(name, vote["number"], str(expected))
        if (vote["judge"], vote["annotator"]) in answered:
            yield difference(name, "counted", f"a second vote of annotator {vote['annotator']}")
        answered.add((vote["judge"], vote["annotator"]))
        for_proposal = vote["chosen_side"] == vote["proposal_side"]
        if vote["for_proposal"] != str(int(for_proposal)):
            yield difference(f"{name}, for_proposal,", vote["for_proposal"], str(int(for_proposal)))
        judge = int(vote["judge"])
        counted = tally.add(judge, for_proposal)
        if verdict is not Verdict.UNDECIDED:
            yield difference(name, "counted", f"late: {verdict.value} was settled before it")
        elif counted.votes_cast[judge] > comparison.budgets[judge]:
            yield difference(name, "counted", f"beyond judge {judge}'s budget")
        else:
            tally = counted
            verdict = tell(comparison, tally)
    recorded = row["verdict"] or Verdict.UNDECIDED.value
    if recorded != verdict.value:
        yield difference("the verdict", recorded, verdict.value)
    return verdict


def _compare_sample(position: Position[int], visits: dict[tuple[int, int], int]) -> Iterator[Difference]:
    recorded = visits.pop((position.chain, position.step), None)
    if recorded != position.state:
        shown = "missing" if recorded is None else str(recorded)
        yield Difference(position.chain, position.step, "the sample", shown, str(position.state))


def _compare_leftovers(
    chains: int,
    rows: list[Row],
    votes_of: dict[tuple[int, int], list[Row]],
    visits: dict[tuple[int, int], int],
) -> Iterator[Difference]:
    steps = {(int(row["chain"]), int(row["step"])) for row in rows}
    for chain, step in sorted(steps):
        if not 0 <= chain < chains:
            yield Difference(chain, step, "the step", "there", f"of no chain (there are {chains})")
    for chain, step in sorted(set(votes_of) - steps):
        yield Difference(chain, step, "a vote", "there", "of no step in steps.csv")
    for chain, step in sorted(visits):
        yield Difference(chain, step, "the sample", str(visits[chain, step]), "not reached")
