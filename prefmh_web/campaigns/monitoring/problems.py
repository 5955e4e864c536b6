"""Problems that people report with a pair that they skip. No verdict depends on them; the researcher reads them."""

from __future__ import annotations

import uuid

from django.db import transaction
from django.db.models import QuerySet

from prefmh_web.campaigns.models import Annotator, Campaign, Lease, Problem


def note(key: uuid.UUID, annotator: Annotator, reason: Problem.Reason, words: str) -> Problem | None:
    """Store a problem with a pair that somebody has skipped, or that went to somebody else while they wrote. The first
    report of a pair holds; one that was answered with a vote is left as it is.

    Args:
        key: of a pair that this person was shown.

    Returns:
        What is new; None if nothing is.
    """
    with transaction.atomic():
        return _noted(key, annotator, reason, words)


def _noted(key: uuid.UUID, annotator: Annotator, reason: Problem.Reason, words: str) -> Problem | None:
    # Locked: who is forgotten in this moment has written it before, or writes nothing any more.
    if Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk).removed_at:
        return None
    lease = Lease.objects.filter(key=key, annotator=annotator).first()
    if lease is not None and lease.ending == Lease.Ending.VOTED:
        return None
    found = {"annotator": annotator, "lease": lease, "reason": reason, "words": words}
    problem, is_new = Problem.objects.get_or_create(key=key, defaults=found)
    return problem if is_new else None


def problems_in(campaign: Campaign) -> QuerySet[Problem]:
    """Return what has been reported in a campaign, the latest first, with the pairs."""
    pairs = ("lease__comparison__chain", "lease__comparison__current", "lease__comparison__proposal")
    found = Problem.objects.filter(annotator__campaign=campaign)
    return found.select_related(*pairs).order_by("-reported_at", "-pk")
