"""The path of a vote: from a pair that is leased to somebody, to the verdict and the next pair.

Theory of operation
-------------------
All state lies in the database, and each call is one transaction of a few statements:

    leases.take        ->  a lease: one person is asked about one open comparison
    leases.answer      ->  a vote. It ends the lease, and may bring the verdict, the new head and the next
                           comparison, all in one transaction.
    leases.skip        ->  the lease ends, and somebody else may be asked

`voting/screens` puts `answer` and the next `take` into one transaction. Models have turns
(`campaigns/model_judges`); their votes are stored by the same `transitions`.

A vote counts once, and a step is decided once, because of three things, in one place each:

* Whoever casts a vote, decides a step, or gives or ends a lease locks the comparison's row first
  (`locks.py`). How it stands is read by a second statement, once the lock is there (`open_comparisons.on`). A
  lease may also be given as the comparison was seen before the lock, if nothing has changed since (`is_as_seen`).
* A vote's key is its lease's key, and unique. Sent again, it finds the vote that is stored.
* A chain's head moves only from the step before (`sql.ADVANCE`), and a chain has each step once.

Locks come in one order: the comparison or the chain, its leases, the voter, the campaign. Whoever looks for a pair
passes over those that others hold. What follows from a vote outside of the database is sent after the commit
(`campaigns/dispatch.py`). It may be lost: a sweep finds whatever waits.

The files, in the order in which a vote meets them
--------------------------------------------------
    leases               this file: take, answer, skip, expire
    locks                begin, join and retry a transaction; a comparison under its lock; claims, held meanwhile
    sql                  each statement by its name, rows as instances, what a vote changes as one statement
    open_comparisons     how a comparison stands, room for more votes, the next pair for somebody
    transitions          the only module that writes comparisons, votes, ratings and chain heads
    suspension           steps that are put aside after many skips or reports
    on_demand            chains that open while people wait
    usage                what asking models may cost and has cost

This file
---------
A lease is a vote that is asked of one person, and comes back when it ends without one:

    take       the voter's live lease, or a new one on the comparison that most needs an answer; where nobody needs
               one, and the config allows it, on a new chain
    answer     hands the vote to `transitions.cast_vote`, which ends the lease
    skip       returns the place to its judge
    orphan, adopt    the person's page went away, or came back
    release    ends the leases of somebody whose page has said that it goes, and has not come back
    withdraw   ends the leases of people whose access was withdrawn
    expire     ends the leases whose time is over; refresh_where_nobody_is_asked finds room that nobody has noted

A comparison never has more leases out than votes it can still use (`OpenComparison.has_room`), so nobody's vote comes
too late. Who looks for a comparison waits for one that others hold at that moment only when there is nothing else.
"""

import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from django.db import IntegrityError
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch, frozen
from prefmh_web.campaigns.engine import locks, on_demand, open_comparisons, sql, suspension, transitions
from prefmh_web.campaigns.engine.locks import begin, is_joined, locked, pass_over, retried_after_conflicts
from prefmh_web.campaigns.engine.open_comparisons import OpenComparison
from prefmh_web.campaigns.engine.sql import Changes
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Lease, Side, Vote, Voter
from prefmh_web.transport import sockets

logger = logging.getLogger(__name__)

# How long a comparison waits for a person whose page has gone: a short loss of signal takes less.
ORPHAN_GRACE = timedelta(seconds=15)
# And for one whose page has said that it goes, as it does when it is closed, left or loaded again: that takes less.
FAREWELL_GRACE = timedelta(seconds=3)
_Seen = list[tuple[OpenComparison, Judge]]


@retried_after_conflicts
def take(voter: Voter, votes_per_person: int | None = None) -> Lease | None:
    """Return the voter's live lease, or lease them a comparison; None when there is none for them now.

    Together with other calls in one transaction, comparisons that others hold at this moment are not waited for.

    Args:
        votes_per_person: no further comparison is leased to somebody who has cast so many; None for no limit.

    Raises:
        django.db.IntegrityError: together with other calls, when a second page of theirs takes a lease in this moment.
    """
    lease = live_lease_of(voter) if voter.holds_a_lease else None
    if lease or not voter.campaign.is_running or voter.resting or voter.removed_at:
        return lease
    try:
        return _lease_or_chain(voter, votes_per_person)
    except IntegrityError:
        if is_joined():
            raise
        # A second page of the same person took a lease in this very moment; both show that one.
        return live_lease_of(voter)


def live_lease_of(voter: Voter) -> Lease | None:
    """Return the lease the voter holds, if any."""
    whole = Lease.objects.select_related("comparison__current", "comparison__proposal")
    whole = whole.defer("comparison__current__code", "comparison__proposal__code")
    return whole.filter(voter=voter, ended_at__isnull=True).first()


@retried_after_conflicts
def answer(
    key: uuid.UUID,
    voter: Voter,
    chosen_side: Side,
    elapsed_ms: int | None,
    hidden_ms: int | None = None,
    keeps_late: Callable[[], bool] | None = None,
    page: Mapping[str, Any] = MappingProxyType({}),
) -> Vote | None:
    """Cast the vote of a lease. The same key again returns the same vote; a skipped lease takes none.

    An expired lease's vote still counts while nobody else's vote would come too late for it.

    Args:
        keeps_late: says, under the locks, whether the vote of an expired lease is kept that comes too late to count;
            None if every one is.
        page: how the pair stood, and whether the page was translated, as `Vote` has it.

    Raises:
        Comparison.DoesNotExist: the voter was never given this lease, or has lost access since.
    """
    # What it decides may open the chain's next comparison; what that takes is read before anything is locked.
    frozen.prepare(voter.campaign)
    with _locked_lease(key, voter) as lease:
        if voter.removed_at:
            raise Comparison.DoesNotExist
        if lease.ending in (Lease.Ending.SKIPPED, Lease.Ending.UNASKED):
            return None
        given = Vote(
            key=key,
            judge_id=lease.judge_id,
            voter_id=voter.pk,
            proposal_side=lease.proposal_side,
            chosen_side=chosen_side,
            elapsed_ms=elapsed_ms,
            hidden_ms=hidden_ms,
            **page,
        )
        may_count = lease.ending != Lease.Ending.EXPIRED or transitions.would_count(lease.comparison, given, lease)
        is_kept = may_count or keeps_late is None or keeps_late()
        vote = transitions.cast_vote(lease.comparison, given, lease) if is_kept else None
        if vote is None or not vote.counted:
            # A counted vote notifies; this one has only given its place back.
            dispatch.place_returned(voter.campaign_id)
    if voter.resting:
        wake(voter)
    return vote


@retried_after_conflicts
def skip(key: uuid.UUID, voter: Voter, *, was_asked: bool = True) -> None:
    """Return a place to its judge. For a while the comparison is shown to others only, and then to this person too;
    after many skips it may be suspended.

    Args:
        was_asked: False where the page did not show what was sent: then it is no skip.

    Raises:
        Comparison.DoesNotExist: the voter was never given this lease.
    """
    with _locked_lease(key, voter) as lease:
        ending = Lease.Ending.SKIPPED if was_asked else Lease.Ending.UNASKED
        if transitions.end_lease(lease.comparison, key, ending) and was_asked:
            suspension.after_skip(lease.comparison)
        dispatch.place_returned(voter.campaign_id)


def orphan(voter: Voter, grace: timedelta = ORPHAN_GRACE) -> None:
    """A page of this person is gone: their place goes back soon, unless one comes back or is open still."""
    _orphan(Lease.objects.filter(voter=voter), grace)
    # Another page of the same person, should there be one, adopts the pair again.
    sockets.notify(sockets.voter(voter.pk))


def adopt(voter: Voter) -> None:
    """The person's page is here: their lease keeps the deadline it had."""
    for lease in Lease.objects.filter(voter=voter, ended_at__isnull=True, is_orphan=True):
        expires_at = lease.issued_at + _time_to_answer(voter.campaign)
        Lease.objects.filter(pk=lease.pk, is_orphan=True).update(expires_at=expires_at, is_orphan=False)


def release(voter: Voter) -> None:
    """The grace of `orphan` is over: give back what no page of this person has adopted. The sweep would, later."""
    now = timezone.now()
    left_behind = Lease.objects.filter(voter=voter, ended_at__isnull=True, is_orphan=True, expires_at__lte=now)
    for lease in left_behind.select_related("voter"):
        _expire(lease, now)


def wake(voter: Voter) -> None:
    """The person shows that they are there, after a lease of theirs ran out."""
    # Asked of the database: the caller's voter may be as old as its socket.
    Voter.objects.filter(pk=voter.pk, resting=True).update(resting=False)
    voter.resting = False


def withdraw(voter_ids: Collection[int]) -> None:
    """Give the places of people whose access was withdrawn to others, at once. Not in the transaction that withdraws:
    whoever ends a lease locks its comparison, which nobody does while holding a voter.
    """
    out = Lease.objects.filter(voter__in=voter_ids, ended_at__isnull=True)
    for lease in out.select_related("voter"):
        # As skipped: such a lease takes no vote any more, while an expired one still would.
        skip(lease.key, lease.voter)
    Voter.objects.filter(pk__in=voter_ids).update(online_until=None)


def expire() -> None:
    """End the leases whose time is over; orphan those of people whose pages a crash took away."""
    now = timezone.now()
    _orphan(Lease.objects.filter(voter__online_until__lt=now, is_orphan=False))
    for lease in Lease.objects.filter(ended_at__isnull=True, expires_at__lte=now).select_related("voter"):
        _expire(lease, now)


@retried_after_conflicts
def _expire(lease: Lease, now: datetime) -> None:
    with locked(lease.comparison_id) as comparison:
        # The deadline is asked again: the page may have come back since.
        ended = transitions.end_lease(comparison, lease.key, Lease.Ending.EXPIRED, expires_at__lte=now)
        # A person who is there but did not answer rests; one whose page is gone is served on return.
        if ended and not lease.is_orphan:
            Voter.objects.filter(pk=lease.voter_id).update(resting=True)
        dispatch.place_returned(lease.voter.campaign_id, lease.voter_id)


def refresh_where_nobody_is_asked() -> None:
    """Note the room of comparisons that are passed over although nobody has a lease on them: there are none, unless a
    process has died in between.
    """
    live_ones = Lease.objects.filter(comparison=OuterRef("pk"), ended_at__isnull=True)
    forgotten = Comparison.objects.filter(~Exists(live_ones), verdict__isnull=True, is_askable=False, suspended_at=None)
    for pk in list(forgotten.values_list("pk", flat=True)):
        with locked(pk) as comparison:
            transitions.look_for_room(comparison)
            dispatch.place_returned(comparison.chain.campaign_id)


def _orphan(leases: QuerySet[Lease], grace: timedelta = ORPHAN_GRACE) -> None:
    deadline = timezone.now() + grace
    leases.filter(ended_at__isnull=True, expires_at__gt=deadline).update(expires_at=deadline, is_orphan=True)


def _lease_or_chain(voter: Voter, votes_per_person: int | None) -> Lease | None:
    for _ in range(locks.ATTEMPTS):
        lease = _first_lease(open_comparisons.wanted_by(voter), voter, votes_per_person)
        if lease or not on_demand.are_possible(voter.campaign):
            return lease
        lease, has_passed_over = _lease_on_a_new_chain(voter, votes_per_person)
        if not has_passed_over:
            return lease
        if is_joined():
            pass_over()
            return None
    return None


def _lease_on_a_new_chain(voter: Voter, votes_per_person: int | None) -> tuple[Lease | None, bool]:
    """Open a chain for somebody who would wait, and lease them its first pair; unless there is one for them by now.

    Returns:
        The lease, and whether there is a comparison that somebody else holds at this moment. It is not waited for
        under the campaign's lock, and nothing is opened.
    """
    frozen.prepare(voter.campaign)
    with begin():
        if votes_per_person is not None and not _may_cast_another(voter, votes_per_person):
            return None, False
        if not on_demand.lock(voter.campaign):
            return None, False
        lease, busy = _free_lease(open_comparisons.wanted_by(voter), voter, votes_per_person)
        if lease or busy:
            return lease, not lease
        on_demand.open_for(voter)
        return _free_lease(open_comparisons.wanted_by(voter), voter, votes_per_person)[0], False


def _free_lease(
    wanted: Iterable[tuple[OpenComparison, Judge]], voter: Voter, votes_per_person: int | None
) -> tuple[Lease | None, _Seen]:
    """Lease the first wanted comparison that nobody holds at this moment; return also those that somebody does."""
    busy: _Seen = []
    for seen, judge in wanted:
        if lease := _lease(seen, judge, voter, busy, votes_per_person):
            return lease, busy
    return None, busy


def _first_lease(
    wanted: Iterable[tuple[OpenComparison, Judge]], voter: Voter, votes_per_person: int | None = None
) -> Lease | None:
    lease, busy = _free_lease(wanted, voter, votes_per_person)
    if lease:
        return lease
    if busy and is_joined():
        pass_over()
        return None
    # Told that there is nothing, the person would wait although what holds these ends within milliseconds.
    leases = (_lease(seen, judge, voter, None, votes_per_person) for seen, judge in busy)
    return next(filter(None, leases), None)


def _lease(
    seen: OpenComparison,
    judge: Judge,
    voter: Voter,
    busy: _Seen | None,
    votes_per_person: int | None,
) -> Lease | None:
    """Lease a comparison that was seen to have room, if it still has.

    Args:
        busy: where those are noted that somebody else holds at this moment; None to wait for them.
    """
    with begin():
        row = (sql.PAIR_ONCE_FREE if busy is None else sql.PAIR).row(seen.pk)
        if row is None:
            if busy is not None:
                busy.append((seen, judge))
            return None
        comparison, current, proposal = sql.read_all((sql.OF_COMPARISON, sql.OF_CURRENT, sql.OF_PROPOSAL), row)
        comparison.current, comparison.proposal = current, proposal
        if votes_per_person is not None and not _may_cast_another(voter, votes_per_person):
            return None
        if comparison.suspended_at:
            # Since it was seen.
            return None
        if lease := _lease_as_seen(seen, comparison, judge, voter):
            return lease
        opened = open_comparisons.on(seen.pk, voter.campaign)
        if opened is None:
            return None
        # Looked at again: another page of this person may have answered meanwhile.
        is_for_them = opened.has_room(judge) and not opened.is_barred(voter.pk, judge)
        changes = Changes()
        lease = _given(opened, comparison, judge, voter, changes) if is_for_them else None
        if lease:
            opened.note("live", judge.pk, voter.pk)
        transitions.note_room(comparison, opened, changes)
        changes.make()
        return lease


def _may_cast_another(voter: Voter, votes_per_person: int) -> bool:
    """Look again under the lock of the voter's row: a vote on another page may have been the last one."""
    found = Voter.objects.select_for_update(no_key=True).values_list("votes_cast", flat=True)
    return found.get(pk=voter.pk) < votes_per_person


def _lease_as_seen(seen: OpenComparison, comparison: Comparison, judge: Judge, voter: Voter) -> Lease | None:
    """Lease a comparison that is locked by now, if nothing has happened on it since it was seen to have room: mostly
    nothing has, and it need not be read again.
    """
    unchanged = seen.is_unchanged()
    if unchanged is None or comparison.verdict or seen.has_expired(voter, judge):
        return None
    lease = _new_lease(seen, comparison, judge, voter)
    changes = Changes()
    seen.note("live", judge.pk, voter.pk)
    transitions.note_room(comparison, seen, changes, only_if=unchanged)
    changes.insert(lease, only_if=unchanged)
    changes.make()
    return None if lease._state.adding else lease


def _given(opened: OpenComparison, comparison: Comparison, judge: Judge, voter: Voter, changes: Changes) -> Lease:
    if opened.has_expired(voter, judge):
        # The same pair again under the same key: a vote still on its way from before finds its place.
        expired = comparison.leases.filter(judge=judge.pk, voter=voter, ending=Lease.Ending.EXPIRED)[0]
        now = timezone.now()
        expired.issued_at, expired.expires_at = now, now + _time_to_answer(voter.campaign)
        expired.is_orphan = False
        expired.ended_at = expired.ending = None
        expired.save()
        return expired
    lease = _new_lease(opened, comparison, judge, voter)
    changes.insert(lease)
    return lease


def _new_lease(opened: OpenComparison, comparison: Comparison, judge: Judge, voter: Voter) -> Lease:
    now = timezone.now()
    return Lease(
        comparison=comparison,
        judge_id=judge.pk,
        voter=voter,
        proposal_side=_draw_side(opened, judge),
        issued_at=now,
        expires_at=now + _time_to_answer(voter.campaign),
    )


def _draw_side(opened: OpenComparison, judge: Judge) -> Side:
    """Draw where the proposal stands, anew for every lease: each position bias of a voter meets both orders alike.

    A judge with a fixed order is one of an order pair; between the two, a constant position bias cancels.
    """
    if judge.order != Judge.Order.RANDOM:
        return Side.FIRST if judge.order == Judge.Order.PROPOSAL_FIRST else Side.SECOND
    seed = opened.campaign.seed
    is_first = sampler.shows_proposal_first(seed, opened.index, opened.step, asked=opened.leases)
    return Side.FIRST if is_first else Side.SECOND


def _time_to_answer(campaign: Campaign) -> timedelta:
    return timedelta(seconds=started_campaign(campaign).config.answering.seconds)


@contextmanager
def _locked_lease(key: uuid.UUID, voter: Voter) -> Iterator[Lease]:
    """Open a transaction and yield a lease of a voter with its comparison, all rows locked.

    Args:
        voter: is brought up to date, together with their campaign.

    Raises:
        Comparison.DoesNotExist: the voter was never given this lease.
    """
    with begin():
        row = sql.COMPARISON_OF_LEASE.row(key, voter.pk)
        if row is None:
            raise Comparison.DoesNotExist
        columns = (sql.OF_COMPARISON, sql.OF_CHAIN, sql.OF_CAMPAIGN, sql.OF_LEASE, sql.OF_VOTER)
        comparison, chain, campaign, lease, now, holds_another = sql.read_all(columns, row)
        chain.campaign, comparison.chain, lease.comparison, lease.voter = campaign, chain, comparison, voter
        vars(voter).update(vars(now))
        voter.campaign = campaign
        # Once this one has ended, which every caller sees to.
        voter.holds_a_lease = bool(holds_another)
        yield lease
