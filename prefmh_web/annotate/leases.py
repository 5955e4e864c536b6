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
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

import sampler
from prefmh_web.annotate.models import Lease
from prefmh_web.campaigns import live, loop, plans
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Judge, Side, Vote

# How long a question waits for a person whose page has gone: a reload or a short loss of signal takes less.
ORPHAN_GRACE = timedelta(seconds=15)


@dataclass(frozen=True)
class Question:
    """What one judge asks about one open comparison."""

    comparison: Comparison
    judge: Judge


def take(annotator: Annotator) -> Lease | None:
    """Return the annotator's live lease, or lease them a question; None when there is none for them now."""
    now = timezone.now()
    campaign = Campaign.objects.get(pk=annotator.campaign_id)
    expire(campaign)
    live_lease = live_lease_of(annotator)
    if live_lease or not campaign.is_running or Annotator.objects.get(pk=annotator.pk).resting:
        return live_lease
    for question in _questions_for(annotator, campaign):
        if lease := _lease(question, annotator, campaign, now):
            return lease
    return None


def live_lease_of(annotator: Annotator) -> Lease | None:
    """Return the lease the annotator holds, if any."""
    return _whole().filter(annotator=annotator, ended_at__isnull=True).first()


def answer(key: uuid.UUID, annotator: Annotator, chosen_side: Side, elapsed_ms: int | None) -> Vote | None:
    """Cast the vote of a lease. The same key again returns the same vote; a skipped lease takes none.

    An expired lease's vote still counts while nobody else's vote would come too late for it.

    Raises:
        Lease.DoesNotExist: the annotator was never given this lease.
    """
    comparison_id = Lease.objects.values_list("comparison_id", flat=True).get(key=key, annotator=annotator)
    with transaction.atomic():
        comparison = loop.lock(comparison_id)
        lease = Lease.objects.select_related("judge").get(key=key)
        if lease.ending == Lease.Ending.SKIPPED:
            return None
        in_time = lease.ended_at is None or _has_room(comparison, lease.judge)
        vote = loop.cast_vote(
            key=key,
            comparison_id=comparison_id,
            judge=lease.judge,
            annotator=annotator,
            proposal_side=Side(lease.proposal_side),
            chosen_side=chosen_side,
            elapsed_ms=elapsed_ms,
            may_count=in_time,
        )
        _end(lease, Lease.Ending.VOTED)
        Annotator.objects.filter(pk=annotator.pk, resting=True).update(resting=False)
    return vote


def skip(key: uuid.UUID, annotator: Annotator) -> None:
    """Return a question to its judge; it will be asked again, of somebody else if there is anybody.

    Raises:
        Lease.DoesNotExist: the annotator was never given this lease.
    """
    with transaction.atomic():
        lease = Lease.objects.get(key=key, annotator=annotator)
        _end(lease, Lease.Ending.SKIPPED)
        live.nudge(live.voters(annotator.campaign_id))


def orphan(annotator: Annotator) -> None:
    """The person's page is gone: their question goes back soon, unless the page returns before."""
    deadline = timezone.now() + ORPHAN_GRACE
    Lease.objects.filter(annotator=annotator, ended_at__isnull=True, expires_at__gt=deadline).update(
        expires_at=deadline, is_orphan=True
    )


def adopt(annotator: Annotator, campaign: Campaign) -> None:
    """The person's page is back: their question keeps the deadline it had."""
    for lease in Lease.objects.filter(annotator=annotator, ended_at__isnull=True, is_orphan=True):
        expires_at = lease.issued_at + timedelta(seconds=campaign.lease_seconds)
        Lease.objects.filter(pk=lease.pk, is_orphan=True).update(expires_at=expires_at, is_orphan=False)


def wake(annotator: Annotator) -> None:
    """The person shows that they are there, after a lease of theirs ran out."""
    Annotator.objects.filter(pk=annotator.pk, resting=True).update(resting=False)


def expire(campaign: Campaign | None = None) -> None:
    """End the leases whose time is over, of one campaign or of all."""
    overdue = Lease.objects.filter(ended_at__isnull=True, expires_at__lte=timezone.now())
    if campaign is not None:
        overdue = overdue.filter(annotator__campaign=campaign)
    for lease in overdue.select_related("annotator"):
        with transaction.atomic():
            # A person who is there but did not answer rests; one whose page is gone is served on return.
            if _end(lease, Lease.Ending.EXPIRED) and not lease.is_orphan:
                Annotator.objects.filter(pk=lease.annotator_id).update(resting=True)
            live.nudge(live.voter(lease.annotator_id), live.voters(lease.annotator.campaign_id))


def _whole():
    return Lease.objects.select_related(
        "judge", "annotator", "comparison__current", "comparison__proposal", "comparison__chain"
    )


def _end(lease: Lease, ending: Lease.Ending) -> bool:
    # Guarded: of a vote, a skip and an expiry at the same moment the first wins. A vote may follow an expiry.
    before = Lease.objects.filter(pk=lease.pk)
    before = before.exclude(ending=Lease.Ending.SKIPPED) if ending == Lease.Ending.VOTED else before.filter(ending=None)
    return bool(before.update(ended_at=timezone.now(), ending=ending))


def _questions_for(annotator: Annotator, campaign: Campaign) -> Iterator[Question]:
    """Yield what this annotator may be asked, best first: not skipped by them, longest open, least answered."""
    judges = list(campaign.judges.all())
    comparisons = list(
        Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True)
        .select_related("chain", "current", "proposal")
        .order_by("opened_at", "pk")
    )
    on_open = {"comparison__chain__campaign": campaign, "comparison__verdict": None}
    answered = set(Vote.objects.filter(annotator=annotator, **on_open).values_list("comparison", "judge"))
    skips = Counter(
        Lease.objects.filter(annotator=annotator, ending=Lease.Ending.SKIPPED, **on_open).values_list(
            "comparison", "judge"
        )
    )
    asked = Counter(Vote.objects.filter(number__isnull=False, **on_open).values_list("comparison", "judge"))
    asked.update(Lease.objects.filter(ended_at__isnull=True, **on_open).values_list("comparison", "judge"))
    candidates = [
        (skips[comparison.pk, judge.pk], place, asked[comparison.pk, judge.pk] / judge.budget, judge.place, judge)
        for place, comparison in enumerate(comparisons)
        for judge in judges
        if (comparison.pk, judge.pk) not in answered
    ]
    for _, place, _, _, judge in sorted(candidates, key=lambda candidate: candidate[:4]):
        yield Question(comparisons[place], judge)


def _lease(question: Question, annotator: Annotator, campaign: Campaign, now) -> Lease | None:
    with transaction.atomic():
        comparison = loop.lock(question.comparison.pk)
        if not _has_room(comparison, question.judge):
            return None
        # A second page of the same person may have taken a lease since this one looked.
        if existing := live_lease_of(annotator):
            return existing
        lease = Lease.objects.create(
            comparison=comparison,
            judge=question.judge,
            annotator=annotator,
            proposal_side=_draw_side(comparison, campaign),
            issued_at=now,
            expires_at=now + timedelta(seconds=campaign.lease_seconds),
        )
    return _whole().get(pk=lease.pk)


def _has_room(comparison: Comparison, judge: Judge) -> bool:
    """True when one more lease for this judge cannot make any vote late. The comparison must be locked."""
    if comparison.verdict:
        return False
    budgets = plans.budgets_of(comparison.chain.campaign)
    tally = plans.tally_of(comparison, len(budgets))
    out = Counter(
        Lease.objects.filter(comparison=comparison, ended_at__isnull=True).values_list("judge__place", flat=True)
    )
    promised = [out[place] for place in range(len(budgets))]
    return sampler.askable(comparison.log_r0, comparison.uniform, tally.votes_for, tally.votes_cast, promised, budgets)[
        judge.place
    ]


def _draw_side(comparison: Comparison, campaign: Campaign) -> Side:
    """Draw where the proposal stands, anew for every lease: each lean of a voter meets both orders alike."""
    leased_before = Lease.objects.filter(comparison=comparison).count()
    chain = comparison.chain
    rng = sampler.stream(campaign.recipe["seed"], chain.place, comparison.step, sampler.Purpose.SIDES)
    return Side.LEFT if rng.random(leased_before + 1)[-1] < 0.5 else Side.RIGHT
