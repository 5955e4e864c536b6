"""The one door through which steps are parked: nobody else is asked about them until a researcher has looked
(`lifecycle/unparking.py`).

    after_skip      parks a locked comparison that was skipped as often as the campaign declares
    after_report    parks one after as many people as declared have reported that an object of it is not shown

Parking is no answer: the step keeps its uniform and its votes, and a pair that is on somebody's screen may still be
answered. When a step is parked depends on skips and reports alone. The locks are those of `engine/leases.py`.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Q
from django.utils import timezone

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine.reading import locked
from prefmh_web.campaigns.engine.transactions import retried_after_conflicts
from prefmh_web.campaigns.models import Comparison, Lease, Parking, Problem


def after_skip(comparison: Comparison) -> None:
    """Park a locked comparison if it has been skipped as often as the campaign declares."""
    most = comparison.chain.campaign.park_after_skips
    if most is None or not _may_be_parked(comparison):
        return
    # A pair that was taken back from somebody who may vote no more is no skip of theirs.
    theirs = Q(annotator__removed_at=None) | Q(ended_at__lt=F("annotator__removed_at"))
    skipped = Lease.objects.filter(theirs, comparison=comparison, ending=Lease.Ending.SKIPPED)
    if since := _tried_again_at(comparison):
        skipped = skipped.filter(ended_at__gt=since)
    if (count := skipped.count()) >= most:
        _park(comparison, Parking.Cause.SKIPS, count)


@retried_after_conflicts
def after_report(comparison_id: int) -> None:
    """Park a comparison if as many people as the campaign declares have reported that an object of it is not shown."""
    with locked(comparison_id) as comparison:
        if not _may_be_parked(comparison):
            return
        reports = Problem.objects.filter(lease__comparison=comparison, reason=Problem.Reason.NOT_SHOWN)
        if since := _tried_again_at(comparison):
            reports = reports.filter(reported_at__gt=since)
        count = reports.values("annotator").distinct().count()
        if count >= comparison.chain.campaign.park_after_reports:
            _park(comparison, Parking.Cause.NOT_SHOWN, count)


def _may_be_parked(comparison: Comparison) -> bool:
    return comparison.verdict is None and comparison.parked is None


def _tried_again_at(comparison: Comparison) -> datetime | None:
    settled = comparison.parkings.filter(settled_at__isnull=False).order_by("-settled_at")
    return settled.values_list("settled_at", flat=True).first()


def _park(comparison: Comparison, cause: Parking.Cause, count: int) -> None:
    parking = Parking.objects.create(comparison=comparison, cause=cause, count=count, parked_at=timezone.now())
    # Nobody finds it, as nobody finds those whose votes are all out: no look for a pair asks what is parked.
    comparison.parked, comparison.is_askable = Comparison.Parked.PARKED, False
    comparison.save(update_fields=["parked", "is_askable"])
    dispatch.step_parked(parking)
