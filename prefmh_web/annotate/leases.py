"""Who is asked what: each question is leased to one person, and comes back when the lease ends without a vote.

    take     the annotator's live lease, or a new one on the question that most needs an answer
    answer   hands the vote to `campaigns.loop.cast_vote` and ends the lease, in one transaction
    skip     returns the question to its judge
    orphan, adopt    the person's page went away, or came back
    expire   ends the leases whose time is over

A comparison never has more leases out than votes it can still use (`sampler.askable`), so nobody's vote comes too
late. Locks are taken in one order: the comparison, then its leases.
"""

import uuid
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import prefetch_related_objects
from django.utils import timezone

import sampler
from prefmh_web.annotate.models import Lease
from prefmh_web.campaigns import live, loop, plans
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Judge, Side, Vote

# How long a question waits for a person whose page has gone: a reload or a short loss of signal takes less.
ORPHAN_GRACE = timedelta(seconds=15)
# How long a skipped question is kept from the person who skipped it, so that others come first.
SKIP_REST = timedelta(seconds=20)


def take(annotator: Annotator) -> Lease | None:
    """Return the annotator's live lease, or lease them a question; None when there is none for them now."""
    campaign = annotator.campaign
    lease = live_lease_of(annotator)
    if lease or not campaign.is_running or annotator.resting:
        return lease
    try:
        for comparison, judge in _questions_for(annotator):
            if lease := _lease(comparison.pk, judge, annotator):
                return lease
    except IntegrityError:
        # A second page of the same person took a lease in this very moment; both show that one.
        return live_lease_of(annotator)
    return None


def live_lease_of(annotator: Annotator) -> Lease | None:
    """Return the lease the annotator holds, if any."""
    whole = Lease.objects.select_related("judge", "comparison__current", "comparison__proposal")
    return whole.filter(annotator=annotator, ended_at__isnull=True).first()


def answer(key: uuid.UUID, annotator: Annotator, chosen_side: Side, elapsed_ms: int | None) -> Vote | None:
    """Cast the vote of a lease. The same key again returns the same vote; a skipped lease takes none.

    An expired lease's vote still counts while nobody else's vote would come too late for it.

    Raises:
        Comparison.DoesNotExist: the annotator was never given this lease.
    """
    with loop.locked(leases__key=key, leases__annotator=annotator) as comparison:
        lease = Lease.objects.get(key=key)
        if lease.was_skipped:
            return None
        judge = _judge(comparison.chain.campaign, lease.judge_id)
        vote = loop.cast_vote(
            comparison,
            key=key,
            judge=judge,
            annotator=annotator,
            proposal_side=Side(lease.proposal_side),
            chosen_side=chosen_side,
            elapsed_ms=elapsed_ms,
            may_count=lease.is_live or _has_room(comparison, judge),
        )
        _end(lease, Lease.Ending.VOTED)
    wake(annotator)
    return vote


def skip(key: uuid.UUID, annotator: Annotator) -> None:
    """Return a question to its judge; it will be asked again, of somebody else if there is anybody.

    Raises:
        Comparison.DoesNotExist: the annotator was never given this lease.
    """
    with loop.locked(leases__key=key, leases__annotator=annotator):
        _end(Lease.objects.get(key=key), Lease.Ending.SKIPPED)
        live.nudge(live.voters(annotator.campaign_id))


def orphan(annotator: Annotator) -> None:
    """The person's page is gone: their question goes back soon, unless the page returns before."""
    deadline = timezone.now() + ORPHAN_GRACE
    Lease.objects.filter(annotator=annotator, ended_at__isnull=True, expires_at__gt=deadline).update(
        expires_at=deadline, is_orphan=True
    )


def adopt(annotator: Annotator) -> None:
    """The person's page is back: their question keeps the deadline it had."""
    for lease in Lease.objects.filter(annotator=annotator, ended_at__isnull=True, is_orphan=True):
        expires_at = lease.issued_at + timedelta(seconds=annotator.campaign.lease_seconds)
        Lease.objects.filter(pk=lease.pk, is_orphan=True).update(expires_at=expires_at, is_orphan=False)


def wake(annotator: Annotator) -> None:
    """The person shows that they are there, after a lease of theirs ran out."""
    # Asked of the database: the caller's annotator may be as old as its socket.
    Annotator.objects.filter(pk=annotator.pk, resting=True).update(resting=False)
    annotator.resting = False


def expire() -> None:
    """End the leases whose time is over."""
    overdue = Lease.objects.filter(ended_at__isnull=True, expires_at__lte=timezone.now()).select_related("annotator")
    for lease in overdue:
        with transaction.atomic():
            # A person who is there but did not answer rests; one whose page is gone is served on return.
            if _end(lease, Lease.Ending.EXPIRED) and not lease.is_orphan:
                Annotator.objects.filter(pk=lease.annotator_id).update(resting=True)
            live.nudge(live.voter(lease.annotator_id), live.voters(lease.annotator.campaign_id))


def _end(lease: Lease, ending: Lease.Ending) -> bool:
    # Guarded: of a vote, a skip and an expiry at the same moment the first wins. A vote may follow an expiry.
    before = Lease.objects.filter(pk=lease.pk)
    before = before.exclude(ending=Lease.Ending.SKIPPED) if ending == Lease.Ending.VOTED else before.filter(ending=None)
    return bool(before.update(ended_at=timezone.now(), ending=ending))


def _questions_for(annotator: Annotator) -> Iterator[tuple[Comparison, Judge]]:
    """Yield what this annotator may be asked, best first: least skipped by them, longest open, least answered.

    What is seen here is seen without a lock; `_lease` looks again under one.
    """
    campaign = annotator.campaign
    judges = plans.judges_of(campaign)
    comparisons = list(
        Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True)
        .select_related("chain__campaign")
        .prefetch_related("votes", "leases")
        .order_by("opened_at", "pk")
    )
    candidates = []
    rested = timezone.now() - SKIP_REST
    for age, comparison in enumerate(comparisons):
        asked, skips, barred = Counter(), Counter(), set()
        for lease in comparison.leases.all():
            asked[lease.judge_id] += lease.is_live or lease.has_voted
            if lease.annotator_id == annotator.pk:
                skips[lease.judge_id] += lease.was_skipped
                if lease.has_voted or (lease.was_skipped and lease.ended_at > rested):
                    barred.add(lease.judge_id)
        candidates += [
            (skips[judge.pk], age, asked[judge.pk] / judge.budget, judge.place)
            for judge in judges
            if judge.pk not in barred
        ]
    for _, age, _, place in sorted(candidates):
        if _has_room(comparisons[age], judges[place]):
            yield comparisons[age], judges[place]


def _lease(comparison_id: int, judge: Judge, annotator: Annotator) -> Lease | None:
    with loop.locked(pk=comparison_id) as comparison:
        prefetch_related_objects([comparison], "votes", "leases")
        if not _has_room(comparison, judge):
            return None
        now = timezone.now()
        return Lease.objects.create(
            comparison=comparison,
            judge=judge,
            annotator=annotator,
            proposal_side=_draw_side(comparison, len(comparison.leases.all())),
            issued_at=now,
            expires_at=now + timedelta(seconds=annotator.campaign.lease_seconds),
        )


def _has_room(comparison: Comparison, judge: Judge) -> bool:
    """True when one more vote for this judge cannot make any vote late; for certain if the comparison is locked."""
    if comparison.verdict:
        return False
    campaign = comparison.chain.campaign
    tally = plans.tally_of(campaign, (vote for vote in comparison.votes.all() if vote.counted))
    out = Counter(lease.judge_id for lease in comparison.leases.all() if lease.is_live)
    promised = [out[each.pk] for each in plans.judges_of(campaign)]
    budgets = plans.budgets_of(campaign)
    room = sampler.askable(comparison.log_r0, comparison.uniform, tally.votes_for, tally.votes_cast, promised, budgets)
    return room[judge.place]


def _draw_side(comparison: Comparison, leased_before: int) -> Side:
    """Draw where the proposal stands, anew for every lease: each lean of a voter meets both orders alike."""
    chain = comparison.chain
    rng = sampler.stream(chain.campaign.recipe["seed"], chain.place, comparison.step, sampler.Purpose.SIDES)
    return Side.LEFT if rng.random(leased_before + 1)[-1] < 0.5 else Side.RIGHT


def _judge(campaign: Campaign, judge_id: int) -> Judge:
    return next(judge for judge in plans.judges_of(campaign) if judge.pk == judge_id)
