"""The rows of steps.csv: each comparison beside the tally of its votes, or the mean ratings of its objects.

Tallies come as a second stream in the order of the steps, already counted, so that nothing is looked up for a step.
Only of open steps, at most one a chain, the votes themselves are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter
from typing import NamedTuple

from django.db.models import Count, F, Q

import sampler
from prefmh_web.campaigns.decisions import ratings as rated
from prefmh_web.campaigns.models import State, Vote
from prefmh_web.campaigns.record import cells
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.campaigns.started.numbers import scores_of
from sampler import schema

_ROWS_AT_ONCE = 2000
_STEPS_AT_ONCE = 500
_Cells = tuple[str, str]
"""Of a tally, the votes that counted and those of them for the proposal; of means, the current's and the proposal's."""
_NO_MEANS = ("", "")
_AFTER_ALL = (math.inf, math.inf)


class _Step(NamedTuple):
    """What the table has of a comparison itself; moments are cells."""

    chain: int
    step: int
    pk: int
    current_id: int
    proposal_id: int
    current: int
    proposal: int
    log_r0: float
    uniform: float
    verdict: str | None
    opened_at: str
    decided_at: str | None


_COLUMNS = (
    "chain__place", "step", "pk", "current_id", "proposal_id", "current__place", "proposal__place", "log_r0", "uniform",
    "verdict", cells.Moment("opened_at"), cells.Moment("decided_at"),
)  # fmt: skip


def table_of(snapshot: Snapshot) -> schema.Table:
    """Return steps.csv of a campaign."""
    config = snapshot.config
    return schema.steps_table(config.has_parts, bool(config.rule.scorers))


def steps(snapshot: Snapshot) -> Iterator[Sequence[schema.Cell]]:
    """Every comparison in order, with what the verdict was computed from; open ones have no verdict and no uniform. One
    at which its chain was ended has its uniform, which no vote can use any more.

    Where the rule rates, that is the mean rating of either object by each judge; the ratings are in `ratings`.
    """
    table = table_of(snapshot)
    yield table.header
    judges = dict(snapshot.campaign.judges.values_list("pk", "max_votes"))
    budgets, places = schema.wholes(judges.values()), {judge: place for place, judge in enumerate(judges)}
    there = _beside(_steps(snapshot), _tallies(snapshot, places), _tally(places, ()))
    while some := list(islice(there, _STEPS_AT_ONCE)):
        open_ones = _open_tallies(snapshot, places, [step for step, _ in some])
        means = _means(snapshot, [step for step, _ in some])
        parts = _parts(snapshot, [step for step, _ in some])
        numbers = _scores(snapshot, [step for step, _ in some])
        for step, tally in some:
            decided = step.pk not in open_ones
            cast, votes_for = tally if decided else open_ones[step.pk]
            current, proposal = means.get(step.pk, _NO_MEANS)
            yield table.ordered(
                **parts[step.pk],
                **numbers.get(step.pk, {}),
                chain=step.chain,
                step=step.step,
                current=step.current,
                proposal=step.proposal,
                log_r0=step.log_r0,
                uniform=step.uniform if decided or step[:2] in snapshot.ended else None,
                budgets=budgets,
                votes_cast=cast,
                votes_for=votes_for,
                verdict=step.verdict if decided else None,
                opened_at=step.opened_at,
                decided_at=step.decided_at if decided else None,
                current_ratings=current,
                proposal_ratings=proposal,
            )


def _parts(snapshot: Snapshot, some: list[_Step]) -> dict[int, dict[str, int | None]]:
    """Return which part of the kernel proposed, where there are parts; by the comparison's key."""
    config = snapshot.config
    if not config.has_parts:
        return {step.pk: {} for step in some}
    return {step.pk: {"part": config.part_of(step.chain, step.step)} for step in some}


def _steps(snapshot: Snapshot) -> Iterator[_Step]:
    for step in map(_Step._make, snapshot.comparisons().values_list(*_COLUMNS).iterator(_ROWS_AT_ONCE)):
        if snapshot.has_step(step.chain, step.step):
            yield step


def _tallies(snapshot: Snapshot, places: dict[int, int]) -> Iterator[tuple[tuple[int, int], _Cells]]:
    """Yield the chain and step, and the tally, of each comparison that has counted votes, in order.

    Of one that was open, it may have votes that came after the snapshot.
    """
    found = snapshot.votes().filter(number__isnull=False)
    found = found.order_by("comparison__chain__place", "comparison__step")
    by_judge = found.values_list("comparison__chain__place", "comparison__step", "judge_id").annotate(
        cast=Count("pk"), votes_for=Count("pk", filter=Q(chosen_side=F("proposal_side")))
    )
    for position, counts in groupby(by_judge.iterator(_ROWS_AT_ONCE), key=itemgetter(0, 1)):
        yield position, _tally(places, (count[2:] for count in counts))


def _tally(places: dict[int, int], counts: Iterable[tuple[int, int, int]]) -> _Cells:
    """Return the cells for each judge's key, votes and votes for the proposal; judges without votes have none."""
    cast, votes_for = [0] * len(places), [0] * len(places)
    for judge, some, in_favour in counts:
        cast[places[judge]] += some
        votes_for[places[judge]] += in_favour
    return schema.wholes(cast), schema.wholes(votes_for)


def _beside(
    found: Iterator[_Step], tallies: Iterator[tuple[tuple[int, int], _Cells]], nothing: _Cells
) -> Iterator[tuple[_Step, _Cells]]:
    """Yield each step with its tally, of two streams in the same order; tallies of other steps are passed over."""
    position: tuple[float, float]
    position, tally = next(tallies, (_AFTER_ALL, nothing))
    for step in found:
        while position < step[:2]:
            position, tally = next(tallies, (_AFTER_ALL, nothing))
        yield step, tally if position == step[:2] else nothing


def _open_tallies(snapshot: Snapshot, places: dict[int, int], some: list[_Step]) -> dict[int, _Cells]:
    """Return the tallies of those steps that were open, by the comparison's key: of the votes that were there."""
    last = {
        step.pk: snapshot.open_votes[step.chain, step.step]
        for step in some
        if not snapshot.is_decided(step.chain, step.step)
    }
    if not last:
        return {}
    counts: dict[int, list[tuple[int, int, int]]] = {pk: [] for pk in last}
    votes = Vote.objects.filter(comparison__in=last, number__isnull=False)
    columns = ("comparison_id", "judge_id", "number", "proposal_side", "chosen_side")
    for pk, judge, number, proposal_side, chosen_side in votes.values_list(*columns):
        if number <= last[pk]:
            counts[pk].append((judge, 1, chosen_side == proposal_side))
    return {pk: _tally(places, each) for pk, each in counts.items()}


def _means(snapshot: Snapshot, some: list[_Step]) -> dict[int, _Cells]:
    """Return the mean ratings by judge that decided some steps, by the comparison's key; nothing where none did."""
    if snapshot.config.rule.evidence != "ratings":
        return {}
    decided = _decided_moves(snapshot, some)
    keys = {key for step in decided for key in (step.current_id, step.proposal_id)}
    objects = State.objects.filter(pk__in=keys).only("pk").prefetch_related("ratings")
    means = {state.pk: schema.numbers(rated.mean_ratings(snapshot.campaign, state) or ()) for state in objects}
    return {step.pk: (means[step.current_id], means[step.proposal_id]) for step in decided}


def _scores(snapshot: Snapshot, some: list[_Step]) -> dict[int, dict[str, str]]:
    """Return the cells of the numbers that decided some steps, by the comparison's key; empty where none did; nothing
    at all where no scores decide.
    """
    rule = snapshot.config.rule
    if not isinstance(rule, sampler.ScoredConfig):
        return {}
    decided = _decided_moves(snapshot, some)
    given = scores_of(snapshot.campaign, {key for step in decided for key in (step.current_id, step.proposal_id)})
    cells_of = {key: schema.numbers(sampler.numbers_of(rule, each) or ()) for key, each in given.items()}
    nothing = dict.fromkeys(schema.SCORES_OF_STEP, "")
    numbers = {step.pk: (cells_of[step.current_id], cells_of[step.proposal_id]) for step in decided}
    return {step.pk: nothing for step in some} | {
        pk: dict(zip(schema.SCORES_OF_STEP, each, strict=True)) for pk, each in numbers.items()
    }


def _decided_moves(snapshot: Snapshot, some: list[_Step]) -> list[_Step]:
    return [step for step in some if snapshot.is_decided(step.chain, step.step) and step.current_id != step.proposal_id]
