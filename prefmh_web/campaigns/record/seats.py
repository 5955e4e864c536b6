"""The seats of a panel as a table of the record: by their numbers and those of annotators, never by name."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Annotator
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.campaigns.started.seat_answers import SeatAnswer, SeatCount, counts_of, skips_of
from sampler import schema


def seats(snapshot: Snapshot) -> Iterator[Row]:
    """Who sits where, how much each has answered, and how often they met a pair again and then chose as before."""
    yield schema.SEATS.header
    campaign = snapshot.campaign
    people = {person.seat: person for person in Annotator.objects.filter(campaign=campaign, seat__isnull=False)}

    def was_there(answer: SeatAnswer) -> bool:
        is_in_time = answer.number is not None or answer.pk <= snapshot.last_vote
        return is_in_time and snapshot.has_vote(answer.chain, answer.step, answer.number)

    counts, skips = counts_of(campaign, was_there), skips_of(campaign)
    for seat in campaign.seats.all():
        person, count = people.get(seat.number), counts.get(seat.number, SeatCount())
        yield schema.SEATS.row(
            seat=seat.number,
            annotator=person and person.pk,
            joined_at=person and person.joined_at,
            votes=count.votes,
            skips=skips.get(seat.number, 0),
            met_again=count.met.met_again,
            agreed=count.met.agreed,
            reminders=seat.reminders,
        )
