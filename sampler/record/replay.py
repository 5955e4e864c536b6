"""Recompute a campaign from its exported record alone and say where the record differs.

Nothing here trusts the record beyond the recipe, the objects and the votes or ratings: the chains are walked again
from the seed, and what a column repeats of another is compared with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from sampler.chain import Plan
from sampler.judges.presentations import draws_of, presentations_of
from sampler.recipe import Recipe, parse_recipe
from sampler.record.check_chain import Difference, Evidence, Place, Row, Votes, is_for_proposal, retrace
from sampler.record.draw_source import Chronicle, Recorded, Redrawn
from sampler.record.judge_record import compare_judges
from sampler.record.rating_evidence import Appraisals
from sampler.record.state_index import CatalogLedger, GeneratedLedger, Ledger
from sampler.rules.recipe import PointwiseRecipe
from sampler.spaces.catalog import Catalog
from sampler.spaces.space import Space
from sampler.spaces.texts.served import RecordedTexts

__all__ = ["Difference", "RecordError", "Replay", "replay"]


class RecordError(ValueError):
    """A record that cannot be read: a file, a column or a number is missing or malformed."""


@dataclass(frozen=True)
class Replay:
    """What a replay found."""

    verdicts: int
    votes: int
    differences: tuple[Difference, ...]
    ratings: int = 0


@dataclass(frozen=True)
class _Tables:
    """The rows of the CSV files; states and steps in order."""

    states: list[Row]
    steps: list[Row]
    votes: list[Row]
    samples: list[Row]
    ratings: list[Row]


def replay(
    recipe: Mapping[str, Any],
    states: Iterable[Row],
    steps: Iterable[Row],
    votes: Iterable[Row],
    samples: Iterable[Row],
    ratings: Iterable[Row] = (),
    judges: Sequence[Mapping[str, Any]] | None = None,
) -> Replay:
    """Recompute every decision of an export; the arguments are recipe.json, the rows of its CSV files, and judges.json.

    Exports were once written without ratings; only a rule that rates needs them.

    Raises:
        RecordError: a column or a cell is missing, or a cell is not what its column holds.
        RecipeError: the recipe does not parse.
    """
    parsed = parse_recipe(recipe)
    try:
        tables = _Tables(
            sorted(_whole("states", states), key=lambda row: int(row["state"])),
            sorted(_whole("steps", steps), key=_place),
            list(_whole("votes", votes)),
            list(_whole("samples", samples)),
            list(_whole("ratings", ratings)),
        )
        votes_of = _votes_by_step(tables.votes)
        differences = [
            *_compare_chains(parsed, tables, votes_of),
            *_compare_votes(parsed, tables.votes),
            *_compare_contents(tables.states, tables.samples),
            *(() if judges is None else compare_judges(parsed, judges, tables.votes, tables.ratings)),
        ]
    except (KeyError, ValueError) as error:
        problem = f"there is no column {error}" if isinstance(error, KeyError) else str(error)
        raise RecordError(f"The record cannot be read: {problem}") from error
    decided = sum(row["verdict"] != "" for row in tables.steps)
    cast = sum(len(cast) for cast in votes_of.values())
    return Replay(decided, cast, tuple(differences), len(tables.ratings))


def _whole(table: str, rows: Iterable[Row]) -> Iterator[Row]:
    # csv.DictReader gives None for the cells that a row lacks.
    for number, row in enumerate(rows, start=2):
        if None in row.values():
            raise ValueError(f"row {number} of {table}.csv has fewer cells than the header")
        yield row


def _place(row: Row) -> Place:
    return int(row["chain"]), int(row["step"])


def _opened(recipe: Recipe, states: list[Row]) -> tuple[Chronicle, Ledger]:
    if not recipe.generates:
        return Redrawn(recipe.build(_catalog(states))), CatalogLedger()
    if recipe.space.kind == "model-texts":
        ledger = GeneratedLedger(RecordedTexts(recipe.space), recipe.chains, list(states))
        return Recorded(recipe, ledger), ledger
    plan: Plan[Any] = recipe.build()
    return Redrawn(plan), GeneratedLedger(cast(Space[Any], plan.space), recipe.chains, list(states))


def _catalog(states: Sequence[Row]) -> Catalog:
    if [int(row["state"]) for row in states] != list(range(len(states))):
        raise ValueError("states must be numbered from 0 without a gap")
    graph = tuple(tuple(int(other) for other in row["neighbours"].split()) for row in states)
    return Catalog(np.array([float(row["weight"]) for row in states]), graph if any(graph) else ())


def _votes_by_step(votes: Iterable[Row]) -> dict[Place, list[Row]]:
    """Return the counted votes in order, by step; a step that had late votes only is there too."""
    by_step: dict[Place, list[Row]] = {}
    for row in votes:
        cast = by_step.setdefault(_place(row), [])
        if row["number"]:
            cast.append(row)
    for cast in by_step.values():
        cast.sort(key=lambda row: int(row["number"]))
    return by_step


def _compare_chains(recipe: Recipe, tables: _Tables, votes_of: dict[Place, list[Row]]) -> Iterator[Difference]:
    chronicle, ledger = _opened(recipe, tables.states)
    evidence = _evidence(recipe, tables, votes_of)
    visits: dict[Place, int] = {}
    for row in tables.samples:
        state = int(row["state"])
        if _place(row) in visits:
            yield Difference(*_place(row), "a second sample", str(state), "one sample per step")
        visits[_place(row)] = state
    for chain in range(recipe.chains):
        mine = [row for row in tables.steps if int(row["chain"]) == chain]
        yield from retrace(chronicle, ledger, recipe.steps, chain, mine, evidence, visits)
    yield from _compare_leftovers(recipe.chains, {_place(row) for row in tables.steps}, votes_of, visits)


def _evidence(recipe: Recipe, tables: _Tables, votes_of: dict[Place, list[Row]]) -> Evidence:
    if recipe.rule.evidence == "ratings":
        states = {int(row["state"]) for row in tables.states}
        return Appraisals(cast(PointwiseRecipe, recipe.rule), recipe.budgets, states, tables.ratings)
    if tables.ratings:
        raise ValueError("ratings.csv must be empty where votes decide")
    return Votes(votes_of)


def _compare_leftovers(
    chains: int, steps: set[Place], votes_of: dict[Place, list[Row]], visits: dict[Place, int]
) -> Iterator[Difference]:
    for chain, step in sorted(steps):
        if not 0 <= chain < chains:
            yield Difference(chain, step, "the step", "one", f"none: there are {chains} chains")
    for chain, step in sorted(set(votes_of) - steps):
        yield Difference(chain, step, "a vote", "one", "none: steps.csv has no such step")
    for chain, step in sorted(visits):
        yield Difference(
            chain, step, "the sample", str(visits[chain, step]), "none: the chain does not reach this step"
        )


def _compare_votes(recipe: Recipe, votes: Iterable[Row]) -> Iterator[Difference]:
    """Compare a vote's question with its judge's and for_proposal with its sides, whether it counted or not."""
    for row in votes:
        if recipe.rule.evidence == "ratings":
            yield Difference(*_place(row), "a vote", "one", "none: ratings decide")
            continue
        judge, name = int(row["judge"]), f"vote {row['number']}" if row["number"] else "a late vote"
        if not 0 <= judge < len(recipe.judges):
            raise ValueError(f"judge must be 0 to {len(recipe.judges) - 1}, not {judge}")
        question, for_proposal = recipe.judges[judge].question, str(int(is_for_proposal(row)))
        if row["question"] != question:
            yield Difference(*_place(row), f"{name}'s question", f"“{row['question']}”", f"“{question}”")
        if row["for_proposal"] != for_proposal:
            yield Difference(*_place(row), f"{name}'s for_proposal", row["for_proposal"], for_proposal)
        if not row["annotator"]:
            yield from _compare_slot(recipe, row, judge, name)


def _compare_slot(recipe: Recipe, row: Row, judge: int, name: str) -> Iterator[Difference]:
    """Compare a model's vote with what its slot says: which object it showed first and, drawn from p, what it is."""
    slot, asked = int(row["slot"]), (recipe.seed, *_place(row), recipe.budgets, judge)
    if not 0 <= slot < recipe.judges[judge].budget:
        raise ValueError(f"slot must be 0 to {recipe.judges[judge].budget - 1}, not {slot}")
    side = "left" if presentations_of(*asked, recipe.judges[judge].order)[slot] else "right"
    if row["proposal_side"] != side:
        yield Difference(*_place(row), f"{name}'s proposal_side", row["proposal_side"], side)
    if row["preference"]:
        drawn = int(draws_of(*asked)[slot] < float(row["preference"]))
        if int(is_for_proposal(row)) != drawn:
            yield Difference(*_place(row), f"{name}'s answer", str(int(is_for_proposal(row))), f"{drawn}, drawn from p")


def _compare_contents(states: Iterable[Row], samples: Iterable[Row]) -> Iterator[Difference]:
    contents = {int(row["state"]): row["content"] for row in states}
    for row in samples:
        content = contents.get(int(row["state"]))
        if row["content"] != content:
            expected = "none: states.csv has no such state" if content is None else f"“{content[:60]}”"
            yield Difference(*_place(row), "the sample's content", f"“{row['content'][:60]}”", expected)
