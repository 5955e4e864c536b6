"""The one door through which steps are parked: nobody else is asked about them until a researcher has looked.

    after_skip      parks a locked comparison that was skipped as often as the campaign declares
    after_report    parks one after as many people as declared have reported that an object of it is not shown
    try_again       asks people again; the count begins anew
    end_chain       ends the chain there: what it has decided stays, the parked step never gets a verdict

Parking is no answer: the step keeps its uniform and its votes, and a pair that is on somebody's screen may still be
answered. When a step is parked depends on skips and reports alone. The locks are those of `engine/leases.py`.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import F, Q
from django.utils import timezone

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import open_comparisons, transitions
from prefmh_web.campaigns.engine.changes import Changes
from prefmh_web.campaigns.engine.reading import locked
from prefmh_web.campaigns.engine.transactions import retried_after_conflicts
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Chain, Comparison, Lease, Parking, Problem
from prefmh_web.transport import nudges


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


def try_again(comparison_id: int) -> None:
    """Let people be asked about a parked comparison again.

    Raises:
        NotPossible: it is not parked any more.
    """
    with locked(comparison_id) as comparison:
        _settle(comparison, Parking.Outcome.TRIED_AGAIN)
        comparison.parked, comparison.is_askable = None, True
        comparison.save(update_fields=["parked", "is_askable"])
        if opened := open_comparisons.on(comparison.pk, comparison.chain.campaign):
            # Those who have it on their screen may leave no room for others.
            changes = Changes()
            transitions.note_room(comparison, opened, changes)
            changes.make()
        dispatch.step_unparked(comparison)


def end_chain(comparison_id: int, words: str) -> None:
    """End the chain of a parked comparison before it, for ever; the campaign finishes if no other chain goes on.

    A vote for the pair that comes now is kept, and does not count.

    Args:
        words: why; they become part of the record.

    Raises:
        NotPossible: it is not parked any more, or the campaign is warming up.
    """
    with locked(comparison_id) as comparison:
        campaign = comparison.chain.campaign
        if campaign.is_warming_up:
            raise NotPossible(
                "All chains wait for this one at the end of the warm-up. End the warm-up first, on the campaign's page."
            )
        _settle(comparison, Parking.Outcome.ENDED, words)
        comparison.parked = Comparison.Parked.ENDED
        comparison.save(update_fields=["parked"])
        Chain.objects.filter(pk=comparison.chain_id).update(ended_at=timezone.now())
        nudges.nudge(nudges.watchers(campaign.pk))
        transitions.finish_if_done(campaign)


def _may_be_parked(comparison: Comparison) -> bool:
    return comparison.verdict is None and comparison.parked is None


def _tried_again_at(comparison: Comparison) -> datetime | None:
    settled = comparison.parkings.filter(settled_at__isnull=False).order_by("-settled_at")
    return settled.values_list("settled_at", flat=True).first()


def _park(comparison: Comparison, cause: Parking.Cause, count: int) -> None:
    Parking.objects.create(comparison=comparison, cause=cause, count=count, parked_at=timezone.now())
    # Nobody finds it, as nobody finds those whose votes are all out: no look for a pair asks what is parked.
    comparison.parked, comparison.is_askable = Comparison.Parked.PARKED, False
    comparison.save(update_fields=["parked", "is_askable"])
    nudges.nudge(nudges.watchers(comparison.chain.campaign_id))


def _settle(comparison: Comparison, outcome: Parking.Outcome, words: str = "") -> None:
    """Note what became of a parked comparison that is locked."""
    if comparison.verdict is not None or comparison.parked != Comparison.Parked.PARKED:
        raise NotPossible("This step is not parked any more.")
    parked = Parking.objects.filter(comparison=comparison, outcome__isnull=True)
    parked.update(outcome=outcome, settled_at=timezone.now(), words=words)
