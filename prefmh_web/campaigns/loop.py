"""From question to verdict. The one door through which comparisons, votes and chain heads are written.

    open_comparison     stores what the kernel drew: unique (chain, step), so a task run twice changes nothing
    cast_vote           stores one vote, lets `sampler.tell` judge the tally, and decides the step once it is settled

Who waits for whom: a writer locks the chain or the comparison, never both in the other order, and holds no lock
while a kernel or a network works. On SQLite every transaction here begins as a writer, so the locks are one.
"""

import uuid
from functools import partial

from django.db import transaction
from django.db.models import F, Max
from django.utils import timezone

import sampler
from prefmh_web.campaigns import live, plans
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Judge, Side, State, Vote


def open_comparison(chain_id: int, drawn: sampler.Comparison) -> Comparison | None:
    """Store the next comparison of a chain; decide it at once when no vote can change its outcome.

    Returns:
        The comparison, or None when another process had opened this step already.
    """
    with transaction.atomic():
        chain = Chain.objects.select_for_update(no_key=True).select_related("campaign").get(pk=chain_id)
        if chain.step + 1 != drawn.step or chain.comparisons.filter(step=drawn.step).exists():
            return None
        place = {state.place: state for state in _states(chain.campaign_id, drawn.current, drawn.proposal)}
        comparison = Comparison.objects.create(
            chain=chain,
            step=drawn.step,
            current=place[drawn.current],
            proposal=place[drawn.proposal],
            log_r0=drawn.log_r0,
            uniform=drawn.uniform,
        )
        verdict = sampler.tell(drawn, sampler.Tally.empty(len(drawn.budgets)))
        _decide_if_settled(comparison, verdict)
        live.nudge(live.voters(chain.campaign_id), live.watchers(chain.campaign_id))
    return comparison


def lock(comparison_id: int) -> Comparison:
    """Lock a comparison's row until the transaction ends and return it whole."""
    return (
        Comparison.objects.select_for_update(no_key=True, of=("self",))
        .select_related("chain__campaign", "current", "proposal")
        .get(pk=comparison_id)
    )


def cast_vote(
    *,
    key: uuid.UUID,
    comparison_id: int,
    judge: Judge,
    annotator: Annotator,
    proposal_side: Side,
    chosen_side: Side,
    elapsed_ms: int | None = None,
    may_count: bool = True,
) -> Vote:
    """Store one vote and decide the step if it settles it. The same key again returns the vote stored first.

    A vote that comes after the verdict, after its judge's budget is spent, or beside a counted vote of the same
    annotator for the same judge, is kept and not counted. So is one whose caller says it may not count.
    """
    with transaction.atomic():
        # The insert comes first and the lock late: the row is safe on its way while others hold the comparison.
        vote, is_new = Vote.objects.get_or_create(
            key=key,
            defaults={
                "comparison_id": comparison_id,
                "judge": judge,
                "annotator": annotator,
                "proposal_side": proposal_side,
                "chosen_side": chosen_side,
                "elapsed_ms": elapsed_ms,
            },
        )
        if is_new and may_count:
            _count(vote, lock(comparison_id))
    return vote


def _count(vote: Vote, comparison: Comparison) -> None:
    campaign = comparison.chain.campaign
    budgets = plans.budgets_of(campaign)
    tally = plans.tally_of(comparison, len(budgets))
    place = vote.judge.place
    if comparison.verdict or tally.votes_cast[place] == budgets[place] or _answered_before(vote):
        return
    last = comparison.votes.aggregate(last=Max("number"))["last"] or 0
    Vote.objects.filter(pk=vote.pk).update(number=last + 1)
    vote.number = last + 1
    verdict = sampler.tell(plans.asked_in(comparison, budgets), tally.add(place, vote.for_proposal))
    _decide_if_settled(comparison, verdict)
    # Waiting voters look again even without a verdict: this vote may have made room for another.
    live.nudge(live.voters(campaign.pk), live.watchers(campaign.pk))


def _answered_before(vote: Vote) -> bool:
    return Vote.objects.filter(
        comparison=vote.comparison_id, judge=vote.judge_id, annotator=vote.annotator_id, number__isnull=False
    ).exists()


def _decide_if_settled(comparison: Comparison, verdict: sampler.Verdict) -> None:
    if verdict is sampler.Verdict.UNDECIDED:
        return
    chain = comparison.chain
    comparison.verdict = Comparison.Verdict(verdict.value)
    comparison.decided_at = timezone.now()
    comparison.save(update_fields=("verdict", "decided_at"))
    head = comparison.proposal_id if verdict is sampler.Verdict.ACCEPT else comparison.current_id
    moved = Chain.objects.filter(pk=chain.pk, step=comparison.step - 1).update(head=head, step=comparison.step)
    if not moved:
        # Cannot happen while the comparison is locked; if it does, the whole transaction must go.
        raise RuntimeError(f"{chain} has moved past step {comparison.step} already")
    _finish_if_done(chain.campaign)
    propose_next(chain.pk)


def _finish_if_done(campaign: Campaign) -> None:
    if not campaign.chains.filter(step__lt=F("length")).exists():
        Campaign.objects.filter(pk=campaign.pk).exclude(status=Campaign.Status.FINISHED).update(
            status=Campaign.Status.FINISHED, finished_at=timezone.now()
        )


def propose_next(chain_id: int) -> None:
    """Queue the next proposal of a chain once the current transaction has committed."""
    # Imported here because the task opens comparisons, and opening one may queue the task.
    from prefmh_web.campaigns.tasks import propose

    # robust: should the queue be down, `sweep` finds the chain.
    transaction.on_commit(partial(propose.delay, chain_id), robust=True)


def _states(campaign_id: int, *places: int) -> list[State]:
    return list(State.objects.filter(campaign=campaign_id, place__in=places))
