"""Who is to be paid: a table for the owner. It is no part of the record, for it names people as their platform does."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.participants import activity, checks, exclusion, recruiting
from prefmh_web.participants.models import Participation
from sampler import schema

NAME = "payments.csv"
COLUMNS = (
    "external_id",
    "session_id",
    "outcome",
    "code",
    "paid",
    "arrived_at",
    "finished_at",
    "active_minutes",
    "votes",
    "checks_passed",
    "checks_failed",
    "bonus",
    "reason",
)


def rows(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each participant, in the order in which they came."""
    recruitment, minutes = recruiting.recruitment_of(campaign), activity.minutes_of(campaign.annotators.all())
    reasons = exclusion.reasons_in(campaign)
    yield COLUMNS
    found = (
        Participation.objects.filter(campaign=campaign)
        .select_related("participant", "annotator")
        .prefetch_related("checks")
    )
    for each in found.order_by("pk").iterator(chunk_size=500):
        yield (
            schema.escaped(each.participant.given_id),
            schema.escaped(each.last_visit.get("session_id", "")),
            each.outcome,
            schema.escaped(each.code),
            recruitment.paid_to(each, each.annotator.votes_cast or 0).label if each.outcome else "",
            schema.moment(each.arrived_at),
            schema.moment(each.finished_at),
            f"{minutes.get(each.annotator_id, 0):.1f}",
            str(each.annotator.votes_cast or 0),
            *map(str, checks.counts_of(each)),
            "" if each.bonus is None else str(each.bonus),
            schema.escaped(reasons.get(each.annotator_id, "")),
        )


def set_bonus(annotator: Annotator, amount: Decimal | None) -> None:
    """Store what somebody is paid beside the pay, also after the end; None for nothing.

    Raises:
        NotPossible: who they are is deleted, or no platform has sent them: nobody could be paid.
    """
    if not Participation.objects.filter(annotator=annotator).update(bonus=amount):
        raise NotPossible(f"Nothing says who person {annotator.pk} is, so no bonus can be paid.")
