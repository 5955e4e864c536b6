"""The one door through which steps are suspended: nobody new is asked about them until a researcher has looked.

    after_skip      suspends a locked comparison that was skipped as often as the campaign declares
    report          stores what somebody says is wrong with a pair; suspends it after as many people as declared have
                    reported that an object of it is not shown
    try_again       asks people again; the count begins anew
    end_chain       ends the chain there: what it has decided stays, the suspended step never gets a verdict

A suspension is no answer: the step keeps its uniform and its votes, and a pair that is on somebody's screen may still
be answered. When a step is suspended depends on skips and reports alone. The locks are those of `engine/leases.py`.
"""

from __future__ import annotations

import uuid
from datetime import datetime

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from prefmh_web.campaigns import dispatch, events
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.engine.locks import locked, retried_after_conflicts
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Chain, Comparison, Event, Lease, NotPossible, ReportReason, Voter
from prefmh_web.transport import sockets


def after_skip(comparison: Comparison) -> None:
    """Suspend a locked comparison if it has been skipped as often as the campaign declares."""
    most = started_campaign(comparison.chain.campaign).config.answering.suspend_after_skips
    if most is None or not _may_be_suspended(comparison):
        return
    # A pair that was taken back from somebody who may vote no more is no skip of theirs.
    theirs = Q(voter__removed_at=None) | Q(ended_at__lt=F("voter__removed_at"))
    skipped = Lease.objects.filter(theirs, comparison=comparison, ending=Lease.Ending.SKIPPED)
    if since := _tried_again_at(comparison):
        skipped = skipped.filter(ended_at__gt=since)
    if (count := skipped.count()) >= most:
        _suspend(comparison, Comparison.Suspended.SKIPS, count)


def report(key: uuid.UUID, voter: Voter, reason: ReportReason, words: str = "") -> None:
    """Store a problem with a pair that somebody has skipped, or that went to somebody else while they wrote. The first
    report of a pair holds; one that was answered with a vote is left as it is. After enough reports that an object is
    not shown, nobody else is asked about that pair.

    Args:
        key: of a pair that this person was shown.
    """
    with transaction.atomic():
        # Locked: of the same report sent twice, the second one waits here; and who is forgotten in this moment has
        # written it before, or writes nothing any more.
        person = Voter.objects.select_for_update(no_key=True).get(pk=voter.pk)
        lease = Lease.objects.select_related("comparison__chain").filter(key=key, voter=person).first()
        is_voted = lease is not None and lease.ending == Lease.Ending.VOTED
        earlier = Event.objects.filter(campaign=person.campaign_id, kind=Event.Kind.REPORTED, data__key=str(key))
        if person.removed_at or is_voted or earlier.exists():
            return
        pair = {
            "chain_index": lease and lease.comparison.chain.index,
            "step": lease and lease.comparison.step,
            "proposal_side": lease and lease.proposal_side,
        }
        said = {"key": key, "reason": reason, "text": words, **pair}
        events.note(person.campaign_id, Event.Kind.REPORTED, said=said, voter=person)
    if lease and reason == ReportReason.NOT_SHOWN:
        _after_report(lease.comparison_id)


@retried_after_conflicts
def _after_report(comparison_id: int) -> None:
    """Suspend a comparison if as many people as declared have reported that an object of it is not shown."""
    with locked(comparison_id) as comparison:
        if not _may_be_suspended(comparison):
            return
        chain = comparison.chain
        reports = Event.objects.filter(campaign=chain.campaign_id, kind=Event.Kind.REPORTED)
        reports = reports.filter(
            data__chain_index=chain.index, data__step=comparison.step, data__reason=ReportReason.NOT_SHOWN
        )
        if since := _tried_again_at(comparison):
            reports = reports.filter(at__gt=since)
        count = reports.order_by().values("voter").distinct().count()
        if count >= started_campaign(comparison.chain.campaign).config.answering.suspend_after_reports:
            _suspend(comparison, Comparison.Suspended.NOT_SHOWN, count)


def try_again(comparison_id: int) -> None:
    """Let people be asked about a suspended comparison again.

    Raises:
        NotPossible: it is not suspended any more.
    """
    with locked(comparison_id) as comparison:
        _require_suspended(comparison)
        comparison.suspended_at, comparison.suspended_for, comparison.is_askable = None, None, True
        comparison.save(update_fields=["suspended_at", "suspended_for", "is_askable"])
        _note(comparison, Event.Kind.STEP_TRIED_AGAIN)
        # Those who have it on their screen may leave no room for others.
        transitions.look_for_room(comparison)
        dispatch.refresh(comparison.chain.campaign)


def end_chain(comparison_id: int, words: str) -> None:
    """End the chain of a suspended comparison before it, for ever; the campaign finishes if no other chain goes on.

    A vote for the pair that comes now is kept, and does not count.

    Args:
        words: why; they become part of the record.

    Raises:
        NotPossible: it is not suspended any more, or the campaign is warming up.
    """
    with locked(comparison_id) as comparison:
        campaign = comparison.chain.campaign
        if campaign.is_warming_up:
            raise NotPossible(
                "All chains wait for this one at the end of the warm-up. End the warm-up first, on the campaign's page."
            )
        _require_suspended(comparison)
        Chain.objects.filter(pk=comparison.chain_id).update(ended_at=timezone.now())
        _note(comparison, Event.Kind.CHAIN_ENDED, words=words)
        sockets.notify(sockets.watchers(campaign.pk))
        transitions.finish_if_done(campaign)


def _may_be_suspended(comparison: Comparison) -> bool:
    return comparison.verdict is None and comparison.suspended_at is None


def _tried_again_at(comparison: Comparison) -> datetime | None:
    """Return when people were last asked about it again."""
    again = [event.at for event in events.of_step(comparison) if event.kind == Event.Kind.STEP_TRIED_AGAIN]
    return max(again, default=None)


def _suspend(comparison: Comparison, cause: Comparison.Suspended, count: int) -> None:
    # Nobody finds it, as nobody finds those whose votes are all out: no look for a pair asks what is suspended.
    comparison.suspended_at, comparison.suspended_for, comparison.is_askable = timezone.now(), cause, False
    comparison.save(update_fields=["suspended_at", "suspended_for", "is_askable"])
    _note(comparison, Event.Kind.STEP_SUSPENDED, cause=cause, count=count)
    sockets.notify(sockets.watchers(comparison.chain.campaign_id))


def _require_suspended(comparison: Comparison) -> None:
    # Looked up now: whoever waited for the lock has the chain as it was before.
    has_ended = Chain.objects.filter(pk=comparison.chain_id, ended_at__isnull=False).exists()
    if comparison.verdict is not None or comparison.suspended_at is None or has_ended:
        raise NotPossible("This step is not suspended any more.")


def _note(comparison: Comparison, kind: Event.Kind, **data: object) -> None:
    chain = comparison.chain
    events.note(chain.campaign_id, kind, said={"chain_index": chain.index, "step": comparison.step, **data})
