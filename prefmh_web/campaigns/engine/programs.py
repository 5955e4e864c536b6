"""The life of a question that a program of the researcher's holds: one vote of its judge, until it is answered.

    take       a new question, or the one that the same worker holds already
    answer     hands the vote to `transitions.cast_votes`, once
    skip       returns the question to its judge
    expire     ends those whose time is over

A program asks for its questions, so it counts as somebody who votes, not as a model that is asked. Like a model it has
N votes on a pair, each in its slot, and with the slot goes which object stands first: a question that was lost comes
again in the same order. Its promised votes count as people's do, so that no vote of anybody comes too late.

Whether a lease's time is over is a matter of the clock, under the lock of its comparison. `expire` only tells others
that there is room again; nothing is lost where it does not run. Locks are taken in one order: the comparison, the
judge.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import open_comparisons, transitions, turn_statements
from prefmh_web.campaigns.engine.open_comparisons import Ballot, OpenComparison
from prefmh_web.campaigns.engine.reading import locked, locked_pair
from prefmh_web.campaigns.engine.transactions import retried_after_conflicts
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, ProgramLease, Side, Vote
from prefmh_web.campaigns.started import StartedJudge, cheap, started_campaign

MOST_HELD = 64
"""Questions that all workers of one judge hold at a time: a program that dies keeps no more from being answered."""


class QuestionOver(Exception):  # noqa: N818 - reads as the sentence it starts
    """A question takes no answer, or no other one, any more; the message says why."""


class HoldsTooMany(Exception):  # noqa: N818 - it reads as the sentence it starts
    """A judge holds as many questions as one may."""

    def __init__(self) -> None:
        super().__init__(
            f"This judge holds {MOST_HELD} questions, which is the most. Answer or skip some of them, or wait until "
            "their time is over."
        )


@retried_after_conflicts
def take(campaign: Campaign, judge_id: int, worker: str = "") -> ProgramLease | None:
    """Return a question for a program; None when there is none for it now.

    Args:
        worker: names a process of the program's, which gets the question again that it holds; empty for none.

    Raises:
        HoldsTooMany: the judge holds `MOST_HELD` already.
    """
    started = started_campaign(campaign)
    if not (campaign.is_running and started.is_readable):
        return _held_by(judge_id, worker)
    judge = started.judge(judge_id)
    busy: list[OpenComparison] = []
    wanted = open_comparisons.wanted_of_program(judge, campaign)
    found = _held_by(judge_id, worker) or _first(wanted, judge, campaign, worker, busy)
    # Told that there is nothing, the program would wait although what holds these ends within milliseconds.
    return found or _first(busy, judge, campaign, worker, None)


def _held_by(judge_id: int, worker: str) -> ProgramLease | None:
    return ProgramLease.held_by(judge_id).filter(worker=worker).first() if worker else None


def _first(
    wanted: Iterable[OpenComparison],
    judge: StartedJudge,
    campaign: Campaign,
    worker: str,
    busy: list[OpenComparison] | None,
) -> ProgramLease | None:
    return next(filter(None, (_lease(seen, judge, campaign, worker, busy) for seen in wanted)), None)


def _lease(
    seen: OpenComparison, judge: StartedJudge, campaign: Campaign, worker: str, busy: list[OpenComparison] | None
) -> ProgramLease | None:
    """Lease a comparison that was seen to have room, if it still has.

    Args:
        busy: where those are noted that somebody else holds at this moment; None to wait for them.
    """
    with locked_pair(seen.pk, patient=busy is None) as comparison:
        if comparison is None:
            if busy is not None:
                busy.append(seen)
            return None
        opened = open_comparisons.on(seen.pk, campaign)
        if opened is None or comparison.suspended_at or not opened.is_for_program(judge):
            return None
        # Locked, so that two workers at once do not hold one too many, nor one worker two.
        Judge.objects.select_for_update(no_key=True).get(pk=judge.pk)
        if held := _held_by(judge.pk, worker):
            return held
        if ProgramLease.held_by(judge.pk).count() >= MOST_HELD:
            raise HoldsTooMany
        return _new_lease(opened, comparison, judge, campaign, worker)


def _new_lease(
    opened: OpenComparison, comparison: Comparison, judge: StartedJudge, campaign: Campaign, worker: str
) -> ProgramLease:
    now = timezone.now()
    mine = ProgramLease.objects.filter(comparison=comparison, judge=judge.pk, ended_at__isnull=True)
    _end_overdue(mine, now)
    taken = {slot for [slot] in turn_statements.SLOTS.rows(comparison.pk, judge.pk)}
    taken.update(mine.values_list("slot", flat=True))
    slot = next(slot for slot in range(judge.budget) if slot not in taken)
    step = (opened.campaign.recipe.seed, opened.place, opened.step, opened.campaign.budgets, judge.place)
    # By the recipe's own word for the order, as for models.
    is_first = sampler.presentations_of(*step, opened.campaign.recipe.judges[judge.place].order)[slot]
    return ProgramLease.objects.create(
        comparison=comparison,
        judge_id=judge.pk,
        slot=slot,
        proposal_side=Side.LEFT if is_first else Side.RIGHT,
        worker=worker,
        issued_at=now,
        expires_at=now + timedelta(seconds=campaign.lease_seconds),
    )


@retried_after_conflicts
def answer(campaign: Campaign, judge_id: int, key: uuid.UUID, chosen_side: Side) -> Vote:
    """Cast the vote of a question. The same answer again returns the same vote.

    Raises:
        ProgramLease.DoesNotExist: the judge was never given this question.
        QuestionOver: its time is over, it was skipped, or it was answered otherwise.
    """
    lease = ProgramLease.objects.get(key=key, judge=judge_id)
    # What it decides may open the chain's next comparison; what that takes is read before anything is locked.
    cheap.prepare(campaign)
    with locked(lease.comparison_id) as comparison:
        lease.refresh_from_db()
        if lease.ending == ProgramLease.Ending.VOTED:
            return _as_before(lease, chosen_side)
        if not _end(lease, ProgramLease.Ending.VOTED):
            raise QuestionOver(_why_over(lease))
        ballot = Ballot(key, judge_id, Side(lease.proposal_side), chosen_side, slot=lease.slot)
        transitions.cast_votes(comparison, [ballot])
        if comparison.verdict is None:
            dispatch.judge(comparison)
        return Vote.objects.get(key=key)


def _as_before(lease: ProgramLease, chosen_side: Side) -> Vote:
    vote = Vote.objects.get(key=lease.key)
    if vote.chosen_side != chosen_side:
        raise QuestionOver("This question was answered before with the other object, and that answer stands.")
    return vote


@retried_after_conflicts
def skip(judge_id: int, key: uuid.UUID) -> None:
    """Return a question to its judge, who is asked about other pairs first for a while. Safe to repeat.

    Raises:
        ProgramLease.DoesNotExist: the judge was never given this question.
        QuestionOver: its time is over, or it was answered.
    """
    lease = ProgramLease.objects.get(key=key, judge=judge_id)
    with locked(lease.comparison_id) as comparison:
        lease.refresh_from_db()
        if lease.ending == ProgramLease.Ending.SKIPPED:
            return
        if not _end(lease, ProgramLease.Ending.SKIPPED):
            raise QuestionOver(_why_over(lease))
        _tell_of_room(comparison)


def expire() -> None:
    """End the questions whose time is over, and tell others of the room that leaves."""
    now = timezone.now()
    overdue = ProgramLease.objects.filter(ended_at__isnull=True, expires_at__lte=now)
    for comparison_id in list(overdue.order_by().values_list("comparison", flat=True).distinct()):
        with locked(comparison_id) as comparison:
            if _end_overdue(overdue.filter(comparison=comparison_id), now):
                _tell_of_room(comparison)


def _end_overdue(leases: QuerySet[ProgramLease], now: datetime) -> int:
    overdue = leases.filter(expires_at__lte=now)
    return overdue.update(ended_at=now, ending=ProgramLease.Ending.EXPIRED)


def _end(lease: ProgramLease, ending: ProgramLease.Ending) -> bool:
    """End a lease under the lock of its comparison; False if it has ended, or its time is over."""
    now = timezone.now()
    still_live = ProgramLease.objects.filter(pk=lease.pk, ended_at__isnull=True, expires_at__gt=now)
    return bool(still_live.update(ended_at=now, ending=ending))


def _why_over(lease: ProgramLease) -> str:
    if lease.ending == ProgramLease.Ending.VOTED:
        return "This question was answered, and the answer stands."
    if lease.ending == ProgramLease.Ending.SKIPPED:
        return "This question was skipped. Ask for another one: it comes again later."
    return "The time of this question is over, so the answer does not count. Ask for another one: it comes again."


def _tell_of_room(comparison: Comparison) -> None:
    dispatch.place_returned(comparison.chain.campaign_id)
    if comparison.verdict is None:
        dispatch.judge(comparison)
