"""Problems that people report with a pair that they skip. No verdict depends on them; the researcher reads them, and
those about what is not shown may keep others from being asked (`engine/parking.py`).
"""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from prefmh_web.campaigns.engine import parking
from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Problem


def note(key: uuid.UUID, annotator: Annotator, reason: Problem.Reason, words: str) -> None:
    """Store a problem with a pair that somebody has skipped, or that went to somebody else while they wrote. The first
    report of a pair holds; one that was answered with a vote is left as it is. Reports that an object is not shown may
    park the step.

    Args:
        key: of a pair that this person was shown.
    """
    lease = Lease.objects.filter(key=key, annotator=annotator).first()
    if lease is not None and lease.ending == Lease.Ending.VOTED:
        return
    found = {"annotator": annotator, "lease": lease, "reason": reason, "words": words}
    _, is_new = Problem.objects.get_or_create(key=key, defaults=found)
    if is_new and lease is not None and reason == Problem.Reason.NOT_SHOWN:
        parking.after_report(lease.comparison_id)


def problems_in(campaign: Campaign) -> QuerySet[Problem]:
    """Return what has been reported in a campaign, the latest first, with the pairs."""
    pairs = ("lease__comparison__chain", "lease__comparison__current", "lease__comparison__proposal")
    found = Problem.objects.filter(annotator__campaign=campaign)
    return found.select_related(*pairs).order_by("-reported_at", "-pk")
