"""From question to verdict. The one door through which comparisons, votes, ratings and chain heads are written.

    open_comparison     stores what the kernel drew: unique (chain, step), so a task run twice changes nothing
    locked              the comparison, locked; nobody else can vote on it or decide it meanwhile
    cast_vote           stores one vote on it, lets `sampler.tell` judge the tally, and decides the step once settled
    note_askable        writes down whether some person may be asked about it
    store_ratings       stores ratings of its objects, where the rule rates, and decides the step once all are there

Who waits for whom: a writer locks the comparison or the chain, then, at a campaign's very end, the campaign, and holds
no lock while a kernel or a network works. On SQLite every transaction here begins as a writer, so the locks are one.
"""

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from django.db import transaction
from django.db.models import F
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, started, states
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Judge, Rating, ReplyIdentity, Side, Vote
from prefmh_web.transport import nudges


def open_comparison(chain_id: int, drawn: sampler.Comparison) -> Comparison | None:
    """Store the next comparison of a chain; decide it at once when no vote can change its outcome.

    Returns:
        The comparison, or None when another process had opened this step already.
    """
    with transaction.atomic():
        # The head is read once the chain is locked: joined in, PostgreSQL would look for the one before.
        chain = Chain.objects.select_for_update(no_key=True, of=("self",)).select_related("campaign").get(pk=chain_id)
        if chain.step + 1 != drawn.step or chain.comparisons.filter(step=drawn.step).exists():
            return None
        comparison = Comparison.objects.create(
            chain=chain,
            step=drawn.step,
            current=chain.head,
            proposal=states.proposed(chain, drawn),
            log_r0=drawn.log_r0,
            uniform=drawn.uniform,
        )
        _decide_if_settled(comparison, _verdict_at_once(comparison, drawn), votes=0)
        if comparison.verdict is None:
            dispatch.judge(comparison)
            if chain.campaign.waits_for_a_model:
                dispatch.write(chain.campaign)
        nudges.nudge(nudges.voters(chain.campaign_id), nudges.watchers(chain.campaign_id))
    return comparison


@contextmanager
def locked(**lookup) -> Iterator[Comparison]:
    """Open a transaction and yield the comparison that `lookup` finds, its row locked until the end.

    Raises:
        Comparison.DoesNotExist: there is none.
    """
    with transaction.atomic():
        yield (
            Comparison.objects.select_for_update(no_key=True, of=("self",))
            .select_related("chain__campaign")
            .get(**lookup)
        )


def cast_vote(
    comparison: Comparison,
    *,
    key: uuid.UUID,
    judge: Judge,
    proposal_side: Side,
    chosen_side: Side,
    annotator: Annotator | None = None,
    elapsed_ms: int | None = None,
    slot: int | None = None,
    preference: float | None = None,
    asks: int | None = None,
    identity: ReplyIdentity | None = None,
    may_count: bool = True,
) -> Vote:
    """Store one vote, of an annotator or of a model, on a `locked` comparison and decide its step if that settles it.

    The same key again returns the vote stored first. A vote that comes after the verdict, after its judge's budget
    is spent, or beside a counted vote of the same annotator for the same judge, is kept and not counted: it has no
    number. So is one whose caller says that it may not count.
    """
    campaign = comparison.chain.campaign
    before = list(comparison.votes.all())
    if stored := next((vote for vote in before if vote.key == key), None):
        return stored
    counted = [vote for vote in before if vote.counted]
    tally = started.tally_of(campaign, counted)
    has_answered = annotator is not None and any(
        (vote.judge_id, vote.annotator_id) == (judge.pk, annotator.pk) for vote in counted
    )
    is_open = comparison.verdict is None and tally.votes_cast[judge.place] < judge.budget
    vote = Vote(
        key=key,
        comparison=comparison,
        judge=judge,
        annotator=annotator,
        number=len(counted) + 1 if may_count and is_open and not has_answered else None,
        proposal_side=proposal_side,
        chosen_side=chosen_side,
        elapsed_ms=elapsed_ms,
        slot=slot,
        preference=preference,
        asks=asks,
        identity=identity,
    )
    vote.save(force_insert=True)
    if vote.counted:
        asked = started.asked_in(comparison)
        verdict = sampler.tell(asked, tally.add(judge.place, vote.for_proposal))
        _decide_if_settled(comparison, verdict, votes=vote.number)
        if comparison.verdict is None and annotator is not None:
            dispatch.judge(comparison)
        # Waiting voters look again even without a verdict: this vote may have made room for another.
        nudges.nudge(nudges.voters(campaign.pk), nudges.watchers(campaign.pk))
    return vote


def note_askable(comparison: Comparison, is_askable: bool) -> None:
    """Write down, of a `locked` comparison, whether some person may be asked about it."""
    if comparison.is_askable != is_askable:
        comparison.is_askable = is_askable
        Comparison.objects.filter(pk=comparison.pk).update(is_askable=is_askable)


def store_ratings(comparison: Comparison, given: Iterable[Rating]) -> None:
    """Store ratings of the objects of a `locked` comparison and decide its step once it lacks none.

    Of two ratings for one slot the first stays, also when another chain at the same object has brought it.
    """
    # All writers in one order, so that no two of them can wait for each other.
    in_order = sorted(given, key=lambda rating: (rating.state_id, rating.judge_id, rating.slot))
    Rating.objects.bulk_create(in_order, ignore_conflicts=True)
    if comparison.verdict is None:
        _decide_if_settled(comparison, started.verdict_by_ratings(comparison), votes=0)
    nudges.nudge(nudges.watchers(comparison.chain.campaign_id))


def _verdict_at_once(comparison: Comparison, drawn: sampler.Comparison) -> sampler.Verdict:
    if comparison.chain.campaign.is_rated:
        return started.verdict_by_ratings(comparison)
    return sampler.tell(drawn, sampler.Tally.empty(len(drawn.budgets)))


def _decide_if_settled(comparison: Comparison, verdict: sampler.Verdict, votes: int) -> None:
    if verdict is sampler.Verdict.UNDECIDED:
        return
    chain = comparison.chain
    comparison.verdict = Comparison.Verdict(verdict.value)
    comparison.decided_at = timezone.now()
    comparison.save(update_fields=("verdict", "decided_at"))
    head = comparison.proposal_id if verdict is sampler.Verdict.ACCEPT else comparison.current_id
    accepted = verdict is sampler.Verdict.ACCEPT and not comparison.is_identity
    moved = Chain.objects.filter(pk=chain.pk, step=comparison.step - 1).update(
        head=head,
        step=comparison.step,
        moves=F("moves") + int(not comparison.is_identity),
        accepted=F("accepted") + int(accepted),
        votes=F("votes") + votes,
    )
    if not moved:
        # Cannot happen while the comparison is locked; if it does, the whole transaction must go.
        raise RuntimeError(f"{chain} has moved past step {comparison.step} already")
    if comparison.step < chain.length:
        dispatch.propose(chain)
    else:
        finish_if_done(chain.campaign)


def finish_if_done(campaign: Campaign) -> None:
    """Finish a campaign all of whose chains have decided their last step."""
    with transaction.atomic():
        # Locked first: of two last steps decided at once, the second then sees the first.
        Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        if campaign.chains.filter(step__lt=F("length")).exists():
            return
        unfinished = Campaign.objects.filter(pk=campaign.pk).exclude(status=Campaign.Status.FINISHED)
        if unfinished.update(status=Campaign.Status.FINISHED, finished_at=timezone.now()):
            nudges.nudge(nudges.voters(campaign.pk), nudges.watchers(campaign.pk))
