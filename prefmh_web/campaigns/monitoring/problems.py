"""Problems that people report with a pair that they skip. No verdict depends on them; the researcher reads them."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import QuerySet

from prefmh_web.campaigns import events
from prefmh_web.campaigns.models import Annotator, Campaign, Event, Lease, ReportReason
from prefmh_web.campaigns.voters import with_numbers


def note(key: uuid.UUID, annotator: Annotator, reason: ReportReason, text: str) -> Lease | None:
    """Store a problem with a pair that somebody has skipped, or that went to somebody else while they wrote. The first
    report of a pair holds; one that was answered with a vote is left as it is.

    Args:
        key: of a pair that this person was shown.

    Returns:
        The pair's lease if the report is new; None if it is not, or the pair is no question of the campaign.
    """
    with transaction.atomic():
        # Locked: of the same report sent twice, the second one waits here; and who is forgotten in this moment has
        # written it before, or writes nothing any more.
        person = Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
        lease = Lease.objects.select_related("comparison__chain").filter(key=key, annotator=person).first()
        is_voted = lease is not None and lease.ending == Lease.Ending.VOTED
        if person.removed_at or is_voted or _reports(person.campaign_id).filter(data__key=str(key)).exists():
            return None
        pair = {
            "chain_index": lease and lease.comparison.chain.place,
            "step": lease and lease.comparison.step,
            "proposal_side": lease and lease.proposal_side,
        }
        said = {"key": key, "reason": reason, "text": text, **pair}
        events.note(person.campaign_id, Event.Kind.REPORTED, said=said, voter=person)
        return lease


def remove(annotators: Collection[int]) -> int:
    """Remove what people have reported, who are forgotten; return how much that was."""
    return Event.objects.filter(voter__in=annotators, kind=Event.Kind.REPORTED).delete()[0]


def problems_in(campaign: Campaign) -> QuerySet[Event]:
    """Return what has been reported in a campaign, the latest first."""
    return with_numbers(_reports(campaign.pk), "voter").order_by("-pk")


def _reports(campaign_id: int) -> QuerySet[Event]:
    return Event.objects.filter(campaign=campaign_id, kind=Event.Kind.REPORTED)


@dataclass(frozen=True)
class Problem:
    """A report with the pair that it is about, where that is a question of the campaign."""

    event: Event
    lease: Lease | None

    @property
    def reason(self) -> str:
        """What is wrong, in words."""
        return str(ReportReason(self.event.data["reason"]).label)


def with_pairs(found: Sequence[Event]) -> list[Problem]:
    """Return reports with their pairs, in one query."""
    pairs = ("comparison__chain", "comparison__current", "comparison__proposal")
    leases = Lease.objects.select_related(*pairs).in_bulk([uuid.UUID(each.data["key"]) for each in found])
    return [Problem(each, leases.get(uuid.UUID(each.data["key"]))) for each in found]
