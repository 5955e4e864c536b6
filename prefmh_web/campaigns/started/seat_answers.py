"""What the seats of a panel have answered, in the order in which they did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from django.db.models import Count

import sampler
from prefmh_web.campaigns.models import Campaign, Lease, Vote
from sampler import schema

_VOTES_AT_ONCE = 2000


@dataclass(frozen=True)
class SeatAnswer:
    """One vote of a seat; `number` is None if it came too late. Objects are told apart by what people saw."""

    chain: int
    step: int
    number: int | None
    pk: int
    seat: int
    question: str
    chosen: str
    other: str


@dataclass
class SeatCount:
    """How much a seat has answered, and how often that was about a pair that it had answered before."""

    votes: int = 0
    met: sampler.PairsMet = field(default_factory=sampler.PairsMet)


def answers_in(campaign: Campaign) -> Iterator[SeatAnswer]:
    """Yield all votes of a panel, in the order in which they were given."""
    found = Vote.objects.filter(judge__campaign=campaign, judge__seat__isnull=False)
    columns = ("comparison__chain__place", "comparison__step", "number", "pk", "judge__seat", "judge__question")
    sides = ("chosen_side", "proposal_side", "comparison__current__content", "comparison__proposal__content")
    # To the millisecond, as the record has it: who replays it must come to the same order.
    rows = sorted(
        found.values_list("cast_at", *columns, *sides).iterator(_VOTES_AT_ONCE),
        key=lambda row: (schema.moment(row[0]), row[1], row[2]),
    )
    for _, chain, step, number, pk, seat, question, chosen, proposal, before, after in rows:
        pair = (after, before) if chosen == proposal else (before, after)
        yield SeatAnswer(chain, step, number, pk, seat, question, *pair)


def counts_of(campaign: Campaign, is_meant: Callable[[SeatAnswer], bool] = lambda _: True) -> dict[int, SeatCount]:
    """Return what each seat has answered, of those answers that are meant."""
    counts: dict[int, SeatCount] = defaultdict(SeatCount)
    for answer in filter(is_meant, answers_in(campaign)):
        count = counts[answer.seat]
        count.votes += 1
        count.met.note(answer.question, answer.chosen, answer.other)
    return counts


def skips_of(campaign: Campaign) -> dict[int, int]:
    """Return how often each seat has skipped a pair."""
    skipped = Lease.objects.filter(judge__campaign=campaign, judge__seat__isnull=False, ending=Lease.Ending.SKIPPED)
    return dict(skipped.order_by().values_list("judge__seat").annotate(Count("pk")))
