"""Who is to be paid: a table for the owner. It is no part of the record, for it names people as their platform does."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import recruiting
from prefmh_web.participants.models import Participation
from sampler import schema

NAME = "payments.csv"
COLUMNS = ("external_id", "session_id", "outcome", "code", "paid", "arrived_at", "finished_at", "votes")


def rows(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each participant, in the order in which they came."""
    recruitment = recruiting.recruitment_of(campaign)
    yield COLUMNS
    found = Participation.objects.filter(campaign=campaign).select_related("participant", "annotator")
    for each in found.order_by("pk").iterator(chunk_size=500):
        yield (
            schema.escaped(each.participant.external_id),
            schema.escaped(each.last_visit.get("session_id", "")),
            each.outcome,
            schema.escaped(each.code),
            recruitment.pay_for(each.outcome).label if each.outcome else "",
            schema.moment(each.arrived_at),
            schema.moment(each.finished_at),
            str(each.annotator.votes_cast or 0),
        )
