"""The seats of a panel as a table of the record: by their numbers and those of annotators, never by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count

from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Vote
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import PairsMet, schema

_VOTES_AT_ONCE = 2000


def seats(snapshot: Snapshot) -> Iterator[Row]:
    """Who sits where, how much each has answered, and how often they met a pair again and then chose as before."""
    yield schema.SEATS.header
    campaign = snapshot.campaign
    people = {person.seat: person for person in Annotator.objects.filter(campaign=campaign, seat__isnull=False)}
    votes, met = _votes(snapshot)
    skips = skips_of(campaign)
    for seat in campaign.seats.all():
        person = people.get(seat.number)
        again = met.get(seat.number, PairsMet())
        yield schema.SEATS.row(
            seat=seat.number,
            annotator=person and person.pk,
            joined_at=person and person.joined_at,
            votes=votes.get(seat.number, 0),
            skips=skips.get(seat.number, 0),
            met_again=again.met_again,
            agreed=again.agreed,
            reminders=seat.reminders,
        )


def skips_of(campaign: Campaign) -> dict[int, int]:
    """Return how often each seat has skipped a pair."""
    skipped = Lease.objects.filter(judge__campaign=campaign, judge__seat__isnull=False, ending=Lease.Ending.SKIPPED)
    return dict(skipped.order_by().values_list("judge__seat").annotate(Count("pk")))


def _votes(snapshot: Snapshot) -> tuple[dict[int, int], dict[int, PairsMet]]:
    votes: dict[int, int] = {}
    met: dict[int, PairsMet] = {}
    for answer in answers_in(snapshot.campaign):
        was_there = snapshot.has_vote(answer.chain, answer.step, answer.number)
        if was_there and (answer.number is not None or answer.pk <= snapshot.last_vote):
            votes[answer.seat] = votes.get(answer.seat, 0) + 1
            met.setdefault(answer.seat, PairsMet()).note(answer.question, answer.chosen, answer.other)
    return votes, met


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
