"""The one door through which comparisons, votes, ratings and chain heads are written.

    open_comparison     stores what the kernel drew: unique (chain, step), so a task run twice changes nothing. Of a
                        fast kernel, the comparison after a decided one is opened in the transaction that decides
    begin_chain         stores a chain that opens while the campaign runs, and its first comparison
    cast_vote           stores a person's vote on a locked comparison, ends its lease, and decides the step if it can
    cast_votes          stores the votes of a model, which have no lease, and decides the step if it can
    end_lease           ends a lease without a vote
    note_room           notes whether some person may be asked about a comparison
    store_ratings       stores ratings of its objects, where the rule rates, and decides the step once all are there
    decide_by_numbers   decides a locked step whose objects have the numbers that its rule goes by

Who waits for whom: a writer locks the comparison or the chain, then leases, then the voter, then, at a campaign's
very end, the campaign, and holds no lock while a slow kernel or a network works. On SQLite every transaction here
begins as a writer, so the locks are one.

What settles a step, for each kind of evidence that rules use.

votes      a tally of who preferred which object: `sampler.tell` over those that count
ratings    whole numbers that models gave each object alone: the rule compares the means of the two
scores     numbers that scorers gave each object: the rule compares those of the two
none       nothing: every proposal is accepted
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, frozen
from prefmh_web.campaigns.engine import open_comparisons, sql
from prefmh_web.campaigns.engine.open_comparisons import ComparisonSnapshot, OpenComparison
from prefmh_web.campaigns.engine.sql import Changes, Condition
from prefmh_web.campaigns.frozen import asked_in, started_campaign
from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Lease, Rating, State, Vote
from prefmh_web.campaigns.objects import scores_of

# Identical proposals, and those that no vote can change, are decided as they are opened: after so many a task goes on.
_MAX_AT_ONCE = 8
_NO_VOTES = sampler.Tally((), ())


def open_comparison(chain_id: int, drawn: sampler.Comparison[Any], proposal: State) -> Comparison | None:
    """Store the next comparison of a chain; decide it at once when no answer can change its outcome.

    Args:
        proposal: the row of the object that is proposed; saved here if it is new.

    Returns:
        The comparison, or None when another process had opened this step already.
    """
    with transaction.atomic():
        # The head is read once the chain is locked: in a join, PostgreSQL would still return the previous one.
        chain = Chain.objects.select_for_update(no_key=True, of=("self",)).select_related("campaign").get(pk=chain_id)
        if chain.step + 1 != drawn.step or chain.comparisons.filter(step=drawn.step).exists():
            return None
        if proposal._state.adding:
            proposal.save(force_insert=True)
        comparison = _new_comparison(chain, drawn, chain.head_id if drawn.is_identity else proposal.pk)
        _open(comparison)
        return comparison


def begin_chain(chain: Chain) -> None:
    """Store a new chain of a locked campaign, and open its first comparison: at once if its kernel is fast."""
    chain.save(force_insert=True)
    drawn = frozen.next_one(chain)
    first = None if drawn is None else _new_comparison(chain, *drawn)
    _go_on(chain, first, _MAX_AT_ONCE)


def _new_comparison(chain: Chain, drawn: sampler.Comparison[Any], proposal_id: int) -> Comparison:
    return Comparison(
        chain=chain,
        chain_campaign=chain.campaign,
        chain_index=chain.index,
        step=drawn.step,
        current_id=chain.head_id,
        proposal_id=proposal_id,
        log_r0=drawn.log_r0,
        uniform=drawn.uniform,
        is_askable=started_campaign(chain.campaign).config.rule.asks_judges,
    )


def _open(comparison: Comparison, max_at_once: int = _MAX_AT_ONCE) -> None:
    """Store the next comparison of a locked chain, and decide it if no answer can change its outcome."""
    comparison.save(force_insert=True)
    dispatch.step_opened(comparison)
    changes = Changes()
    _settle(comparison, verdict_at_opening(comparison), _NO_VOTES, changes)
    _make(comparison, changes, max_at_once)
    if comparison.verdict is None:
        dispatch.answers_wanted(comparison)


def cast_vote(comparison: Comparison, vote: Vote, lease: Lease) -> Vote:
    """Store a person's vote on a comparison locked by `locks.locked`, end the lease that it answers, and decide
    the step if that settles it.

    The same key again returns the vote stored first. A vote that comes after the verdict, after its judge's votes
    are spent, or beside a counted vote of the same voter for the same judge, is kept and not counted: it has no
    number. So is one whose lease has ended, where somebody else's vote would come too late for it.
    """
    # A lease ends with its vote, so one that has not been voted on has none.
    if lease.ending == Lease.Ending.VOTED:
        return Vote.objects.get(key=vote.key)
    opened = _read_open(comparison)
    may_count = _may_count(opened, vote, lease)
    changes = Changes()
    changes.change(sql.COUNT_VOTE, lease.voter_id)
    changes.change(sql.END_LEASE, timezone.now(), Lease.Ending.VOTED, lease.pk)
    _store(comparison, opened, vote, may_count, changes)
    if comparison.verdict is None and opened is not None:
        if lease.is_live:
            opened.note_ended(lease.judge_id)
        note_room(comparison, opened, changes)
    _make(comparison, changes)
    lease.voter.votes_cast = changes.found(sql.COUNT_VOTE)
    if comparison.verdict is None and vote.counted:
        dispatch.judge(comparison)
    return vote


def would_count(comparison: Comparison, vote: Vote, lease: Lease) -> bool:
    """Return whether `cast_vote` would count a vote on a locked comparison."""
    opened = _read_open(comparison)
    return opened is not None and _may_count(opened, vote, lease) and opened.can_count(vote)


def _may_count(opened: OpenComparison | None, vote: Vote, lease: Lease) -> bool:
    return opened is not None and (lease.is_live or opened.has_room(opened.campaign.judge(vote.judge_id)))


def cast_votes(comparison: Comparison, votes: Sequence[Vote], seen: ComparisonSnapshot) -> None:
    """Store a model's votes on a locked comparison, as `cast_vote` does; those that are stored already stay as they
    are.

    Args:
        seen: how this comparison and others stand.
    """
    stored = seen.keys.get(comparison.pk, set())
    opened = seen.opened.get(comparison.pk) if comparison.takes_votes else None
    changes = Changes()
    for vote in votes:
        if vote.key not in stored:
            _store(comparison, opened, vote, True, changes)
    _make(comparison, changes)


def _read_open(comparison: Comparison) -> OpenComparison | None:
    return open_comparisons.on(comparison.pk, comparison.chain.campaign) if comparison.takes_votes else None


def _store(
    comparison: Comparison, opened: OpenComparison | None, vote: Vote, may_count: bool, changes: Changes
) -> None:
    counting = opened if comparison.verdict is None and may_count else None
    if counting is not None and not counting.can_count(vote):
        counting = None
    vote.comparison, vote.number = comparison, None if counting is None else counting.counted + 1
    changes.insert(vote)
    dispatch.vote_stored(comparison, vote)
    if counting is not None:
        counting.note("for" if vote.for_proposal else "against", vote.judge_id, vote.voter_id)
        _settle(comparison, sampler.tell(asked_in(comparison), counting.tally), counting.tally, changes)


def end_lease(comparison: Comparison, key: uuid.UUID, ending: Lease.Ending, **only_if: object) -> bool:
    """End a lease on a locked comparison without a vote, and note what room that leaves.

    Args:
        only_if: what has to hold of the lease's row, as a queryset's filter.

    Returns:
        False if it had ended, or the row is otherwise.
    """
    # A guarded update: of a vote, a skip and an expiry at the same moment the first wins.
    live = Lease.objects.filter(pk=key, ended_at__isnull=True, **only_if)
    has_ended = bool(live.update(ended_at=timezone.now(), ending=ending))
    look_for_room(comparison)
    return has_ended


def look_for_room(comparison: Comparison) -> None:
    """Note whether some person may be asked about a locked comparison, as it stands now."""
    if opened := _read_open(comparison):
        changes = Changes()
        note_room(comparison, opened, changes)
        changes.make()


def note_room(
    comparison: Comparison, opened: OpenComparison, changes: Changes, only_if: Condition | None = None
) -> None:
    """Queue an update of `is_askable` of a locked comparison: those without room for one more vote are skipped when
    pairs are searched. A suspended one has none, whoever leaves it.

    Not where models judge too: there room comes with time, when a turn is lost.

    Args:
        only_if: what must hold for that.
    """
    if opened.campaign.uses_models:
        return
    is_askable = comparison.suspended_at is None and opened.has_room_for_somebody()
    if comparison.is_askable != is_askable:
        changes.change(sql.MARK_ASKABLE, is_askable, comparison.pk, only_if=only_if)


def store_ratings(comparison: Comparison, given: Iterable[Rating]) -> None:
    """Store ratings of the objects of a locked comparison and decide its step once it lacks none.

    Of two ratings for one slot the first stays, also when another chain at the same object has brought it.
    """
    # All writers in one order, so that no two of them can wait for each other.
    in_order = sorted(given, key=lambda rating: (rating.state_id, rating.judge_id, rating.slot))
    Rating.objects.bulk_create(in_order, ignore_conflicts=True)
    decide_by_numbers(comparison)


def decide_by_numbers(comparison: Comparison) -> None:
    """Decide the step of a locked comparison if the ratings or scores of its objects settle it."""
    if comparison.verdict is None:
        changes = Changes()
        _settle(comparison, by_numbers(comparison), _NO_VOTES, changes)
        _make(comparison, changes)


def _settle(comparison: Comparison, verdict: sampler.Verdict, tally: sampler.Tally, changes: Changes) -> None:
    """Add to what is to be changed that a verdict, if it is one, decides a locked comparison and moves its chain."""
    if verdict is sampler.Verdict.UNDECIDED:
        return
    chain = comparison.chain
    comparison.verdict = Comparison.Verdict(verdict.value)
    comparison.decided_at = timezone.now()
    changes.change(sql.DECIDE, comparison.verdict, comparison.decided_at, comparison.pk)
    chain.head_id = comparison.proposal_id if verdict is sampler.Verdict.ACCEPT else comparison.current_id
    moves = int(not comparison.is_identity)
    accepted = int(verdict is sampler.Verdict.ACCEPT) * moves
    votes = sum(tally.votes_cast), sum(tally.votes_for)
    changes.change(sql.ADVANCE, chain.head_id, comparison.step, moves, accepted, *votes, chain.pk, comparison.step - 1)
    chain.step = comparison.step


def _make(comparison: Comparison, changes: Changes, max_at_once: int = _MAX_AT_ONCE) -> None:
    """Make changes to a locked comparison. If they decide it, its chain goes on: at once if its kernel is fast."""
    if sql.ADVANCE not in changes:
        changes.make()
        return
    chain = comparison.chain
    drawn = frozen.next_one(chain) if max_at_once and chain.step < chain.length else None
    following = None if drawn is None else _new_comparison(chain, *drawn)
    if following is not None and verdict_at_opening(following) is sampler.Verdict.UNDECIDED:
        changes.insert_after(following, sql.DECIDE, sql.ADVANCE, found=Campaign.Status.RUNNING.value)
    changes.make()
    status = changes.found(sql.ADVANCE)
    if status is None:
        # Cannot happen while the comparison is locked; if it does, the whole transaction must go.
        raise RuntimeError(f"{chain} has moved past step {comparison.step} already")
    dispatch.step_decided(comparison)
    if chain.step == chain.length:
        _end(chain)
    elif status == Campaign.Status.RUNNING:
        _go_on(chain, following, max_at_once - 1)


def _end(chain: Chain) -> None:
    """Let a campaign whose chain has come to its end finish, if it was the last one."""
    if Chain.objects.filter(pk=chain.pk, length__gt=chain.length).exists():
        # Extended after it was read: whoever did that saw it before this step, so nobody else lets it go on.
        dispatch.propose(chain)
    finish_if_done(chain.campaign)


def _go_on(chain: Chain, following: Comparison | None, max_at_once: int) -> None:
    """Let a chain that has moved go on with the comparison that follows; None for a task to draw it."""
    if chain.waits_for_others:
        dispatch.choose_length(chain.campaign)
    elif following is None:
        dispatch.propose(chain)
    elif following._state.adding:
        _open(following, max_at_once)
    else:
        dispatch.step_opened(following)
        dispatch.answers_wanted(following)


def finish_if_done(campaign: Campaign) -> None:
    """Finish a campaign whose chains have all decided their last step, or were ended before."""
    with transaction.atomic():
        # Locked first: of two last steps decided at once, the second then sees the first.
        locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        if not locked.is_under_way:
            return
        if campaign.chains.filter(step__lt=F("length"), ended_at__isnull=True).exists():
            return
        unfinished = Campaign.objects.filter(pk=campaign.pk).exclude(status=Campaign.Status.FINISHED)
        if unfinished.update(status=Campaign.Status.FINISHED, finished_at=timezone.now()):
            dispatch.refresh(campaign)


def verdict_at_opening(comparison: Comparison) -> sampler.Verdict:
    """Return what is known of a comparison that has just been opened: a verdict that no vote can change, one by ratings
    or scores that both objects have from before, or that it is undecided.
    """
    evidence = started_campaign(comparison.chain.campaign).config.rule.evidence
    if evidence == "votes":
        asked = asked_in(comparison)
        return sampler.tell(asked, sampler.Tally.empty(len(asked.max_votes)))
    return sampler.Verdict.ACCEPT if evidence == "none" else by_numbers(comparison)


def by_numbers(comparison: Comparison) -> sampler.Verdict:
    """Return what the ratings or the scores stored so far say of a comparison."""
    campaign, keys = comparison.chain.campaign, (comparison.current_id, comparison.proposal_id)
    rule, asked = started_campaign(campaign).config.rule, asked_in(comparison)
    if isinstance(rule, sampler.PointwiseConfig):
        means = [mean_ratings(campaign, state) for state in (comparison.current, comparison.proposal)]
        return sampler.tell_by_numbers(rule, asked, *means)
    if not isinstance(rule, sampler.ScoredConfig):
        raise TypeError(f"campaign {campaign.pk} is decided by {rule.evidence}, not by numbers")
    given = {} if asked.is_identity else scores_of(campaign, keys)
    return sampler.tell_by_numbers(rule, asked, *(sampler.numbers_of(rule, given.get(key, {})) for key in keys))


def mean_ratings(campaign: Campaign, state: State) -> tuple[float, ...] | None:
    """Return an object's mean rating by each judge; None while one of its ratings is missing.

    Raises:
        TypeError: the campaign's rule goes by no ratings.
    """
    started = started_campaign(campaign)
    if not isinstance(rule := started.config.rule, sampler.PointwiseConfig):
        raise TypeError(f"campaign {campaign.pk} is decided by {rule.evidence}, not by ratings")
    stored = sorted(state.ratings.all(), key=lambda rating: rating.slot)
    ratings = [[rating.value for rating in stored if rating.judge_id == judge.pk] for judge in started.judges]
    return sampler.mean_ratings(rule, started.max_votes, ratings)
