"""Models' turns on comparisons: from the question to its votes or ratings, through the same door as people's.

    work         stores what came back, and claims what is to be asked next, all in one transaction
    keep         keeps claims for another while
    reserved     how much has been claimed at endpoints with limits a minute
    waiting      the turns that nobody takes: a crash, an endpoint that was down, a message that was lost
    try_again    somebody has seen to what suspended a turn, or stopped a judge

A model has N_i votes on a comparison, each in its slot, and with the slot go its key, its presentation and the number
it is drawn with, if it is: a vote that is asked for twice is stored once. A `Turn` stands while votes are on their
way, so that nobody else is asked for more than the comparison can use; it has an owner and ends by itself soon after
its owner's process does. Where the rule rates, a turn is about the ratings of one object (`kinds/ratings.py`), and all
else is the same. How a judge is asked was frozen when its campaign started (`freezing.py`); one that cannot be asked so
any more is stopped. No transaction is open while a model is asked: `asker.py` does that.
"""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, Sum
from django.utils import timezone

from prefmh_web.campaigns import dispatch, frozen, objects
from prefmh_web.campaigns.engine import open_comparisons, reading, sql, transactions, usage
from prefmh_web.campaigns.engine.open_comparisons import Seen
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.model_judges import freezing, frozen_judges
from prefmh_web.campaigns.model_judges.kinds import Answers, Ask, Asking, JudgeKind, Rows, kind_of
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Turn
from prefmh_web.endpoints import accounting
from prefmh_web.endpoints.errors import EndpointError, TryLater
from prefmh_web.endpoints.identity import Admitted, Identity
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.transport import sockets

CLAIM_S = 60.0
"""How long a turn is kept from others once its owner is silent; clocks must agree to within this time."""
RENEW_EVERY_S = CLAIM_S / 3

# So many replies with log-probabilities are looked back at, and of these so large a share may be no distribution.
_LOOKED_AT, _MOST_UNSOUND = 200, 0.01

Wanted = tuple[int, int]
"""A comparison and a judge."""


@dataclass(frozen=True)
class Taken:
    """A turn that is ours: what asks for it, and the claim that keeps it so.

    Args:
        turn: the key of its row.
        known: the identities whose replies count, as the turn begins.
    """

    asking: Asking
    kind: JudgeKind
    turn: int
    endpoint: Endpoint
    known: Rows
    ask: Ask

    @property
    def wanted(self) -> Wanted:
        """Which comparison and judge."""
        return self.asking.comparison.pk, self.asking.judge.pk


@dataclass(frozen=True)
class Answered:
    """What came of a turn, and what it took."""

    taken: Taken
    answers: Answers
    admitted: Admitted
    tally: accounting.Tally


def work(answered: Sequence[Answered], wanted: Collection[Wanted], owner: uuid.UUID) -> list[Taken]:
    """Store what came of some turns, and claim others: both in one transaction.

    A turn that somebody else takes, or that has nothing to ask now, is left out. Run twice, nothing is stored twice.

    Args:
        owner: who claims them; unlike any other process.
    """
    for each in answered:
        # Before anything is locked: these answers may open the chain's next comparison.
        frozen.prepare(each.taken.asking.comparison.chain.campaign)
    batch = _Batch(answered, wanted, owner)
    claims, _ = transactions.together(batch.done)
    # What is shown is read with no lock held: first the rows of all, then pictures from their files.
    for campaign in {claim.asking.comparison.chain.campaign for claim, _ in claims}:
        mine = [claim.asking.comparison for claim, _ in claims if claim.asking.comparison.chain.campaign == campaign]
        objects.rows_of(campaign, {key for each in mine for key in (each.current_id, each.proposal_id)})
    return [batch.begun(claim, turn) for claim, turn in claims]


def keep(turns: Sequence[int], owner: uuid.UUID) -> None:
    """Keep claimed turns for another while."""
    sql.KEEP.change(_claim_end(), list(turns), owner)


def reserved() -> list[tuple[Endpoint, int]]:
    """Return for how many votes or ratings claims hold, at each endpoint that is limited a minute."""
    limited = Q(requests_a_minute__isnull=False) | Q(tokens_a_minute__isnull=False)
    held = Q(judges__turns__asked__gt=0, judges__turns__until__gt=timezone.now())
    found = Endpoint.objects.filter(limited, held).annotate(held=Sum("judges__turns__asked"))
    return [(endpoint, endpoint.held) for endpoint in found]


def waiting() -> Iterator[Wanted]:
    """Yield the comparison and the judge of every turn that is to be taken and that nobody is taking."""
    models = Judge.objects.filter(endpoint__isnull=False, stopped_because="", campaign__status=Campaign.Status.RUNNING)
    for judge in models:
        not_now = Turn.objects.filter(comparison=OuterRef("pk"), judge=judge).filter(
            Q(until__gt=timezone.now()) | Q(asked=0, until__isnull=True)
        )
        mine = Count("votes", filter=Q(votes__judge=judge))
        open_ones = Comparison.objects.filter(~Exists(not_now), chain__campaign=judge.campaign_id, verdict__isnull=True)
        open_ones = open_ones.filter(chain__ended_at=None)
        wanting = open_ones.annotate(mine=mine).filter(mine__lt=judge.max_votes)
        for comparison_id in wanting.values_list("pk", flat=True):
            yield comparison_id, judge.pk


def try_again(campaign: Campaign, *, accepting: bool = False) -> int:
    """Take up the suspended turns of a campaign, and ask its stopped judges again; return how many there were.

    Args:
        accepting: whether a model that a stopped judge's server has turned to counts as that judge from now on.
    """
    suspended = Turn.objects.filter(comparison__chain__campaign=campaign, asked=0, until__isnull=True)
    turns = list(suspended.select_related("comparison__chain__campaign"))
    with transaction.atomic():
        suspended.delete()
        going_on = frozen_judges.go_on(campaign, accepting=accepting)
        comparisons = {turn.comparison for turn in turns}
        if going_on:
            comparisons.update(Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True))
        for comparison in comparisons:
            dispatch.judge(comparison)
        sockets.nudge(sockets.watchers(campaign.pk))
    return len(turns) + going_on


def _claim_end() -> datetime:
    return timezone.now() + timedelta(seconds=CLAIM_S)


@dataclass(frozen=True)
class _Claim:
    """A turn that is to be claimed."""

    asking: Asking
    kind: JudgeKind
    endpoint: Endpoint
    reserved: usage.Reserved

    def values(self, owner: uuid.UUID) -> tuple[object, ...]:
        """Return what stands in its row."""
        asking, reserved = self.asking, self.reserved
        state_id = None if asking.state is None else asking.state.pk
        claimed = reserved.count, state_id, _claim_end(), "", timezone.now(), reserved.requests, reserved.cost, owner
        return asking.comparison.pk, asking.judge.pk, *claimed


@dataclass
class _Batch:
    """One transaction: its comparisons are locked in the order of their keys, and read together."""

    answered: Sequence[Answered]
    wanted: Collection[Wanted]
    owner: uuid.UUID
    comparisons: dict[int, Comparison] = field(default_factory=dict)
    asked: dict[int, tuple[Judge, Endpoint, bool] | None] = field(default_factory=dict)
    known: dict[int, Rows] = field(default_factory=dict)
    over: list[int] = field(default_factory=list)
    is_recorded: bool = False

    def done(self) -> list[tuple[_Claim, int]]:
        """Do it, from the beginning; return the claims, and the keys of their turns."""
        self.asked, self.known, self.over = {}, {}, []
        self.is_recorded = False
        keys = {each.taken.asking.comparison.pk for each in self.answered} | {key for key, _ in self.wanted}
        self.comparisons = reading.locked_all(keys)
        seen = open_comparisons.seen(list(self.comparisons.values()))
        for each in sorted(self.answered, key=lambda each: each.taken.wanted):
            if each.taken.asking.comparison.pk in self.comparisons:
                self._store(each, seen)
        if self.over:
            sql.GIVE_UP.change(self.over, self.owner)
        claimed = self._claimed(seen)
        # Last: whoever stores another outcome of these judges waits for these rows until the end of the transaction.
        self._record()
        return claimed

    def _store(self, each: Answered, seen: Seen) -> None:
        asking, answers = each.taken.asking, each.answers
        comparison = self.comparisons[asking.comparison.pk]
        rows = _rows_of(asking.judge, answers.identities, each.taken.known)
        each.taken.kind.store(asking, comparison, answers, rows, seen)
        self._end(each, comparison)

    def _end(self, each: Answered, comparison: Comparison) -> None:
        judge, campaign, answers = each.taken.asking.judge, comparison.chain.campaign, each.answers
        failure = answers.failure
        opened_again = comparison.verdict is None and failure is None
        if (change := each.admitted.change) is not None:
            frozen_judges.row_of(judge, change.now)
            self.over.append(each.taken.turn)
            _stop(campaign, judge, change.reason)
        elif reason := _unsound(campaign, judge, answers.sound):
            self.over.append(each.taken.turn)
            _stop(campaign, judge, reason)
        elif failure is None or comparison.verdict:
            self.over.append(each.taken.turn)
        else:
            _put_off(each.taken.turn, self.owner, judge, failure)
        if opened_again:
            # People's votes may have come between; and a vote on its way keeps others from being asked.
            dispatch.judge(comparison)
        sockets.nudge(sockets.voters(campaign.pk), sockets.watchers(campaign.pk))

    def _record(self) -> None:
        """Count what the answers took, once."""
        if not self.is_recorded:
            self.is_recorded = True
            for (campaign_id, place), tally in sorted(self._tallies().items()):
                usage.record(campaign_id, place, tally)

    def _tallies(self) -> dict[tuple[int, int], accounting.Tally]:
        found: defaultdict[tuple[int, int], accounting.Tally] = defaultdict(accounting.Tally)
        for each in self.answered:
            asking = each.taken.asking
            found[asking.comparison.chain.campaign_id, asking.judge.place].merge(each.tally)
        return found

    def _claimed(self, seen: Seen) -> list[tuple[_Claim, int]]:
        before = self._turns()
        claims, unseen, keys = list[_Claim](), list[_Claim](), dict[Wanted, int]()
        for claim in filter(None, (self._claim(wanted, before, seen) for wanted in sorted(self.wanted))):
            claims.append(claim)
            unseen.append(claim)
            if claim.reserved.requests or claim.asking.state is not None:
                # The next one must see what is set aside under a cap, and which object is being rated.
                keys |= sql.take([each.values(self.owner) for each in unseen])
                unseen = []
        keys |= sql.take([each.values(self.owner) for each in unseen])
        for campaign_id in {claim.asking.comparison.chain.campaign_id for claim in claims}:
            sockets.nudge(sockets.watchers(campaign_id))
        return [(claim, keys[claim.asking.comparison.pk, claim.asking.judge.pk]) for claim in claims]

    def _turns(self) -> dict[Wanted, Turn]:
        keys = [key for key, _ in self.wanted if key in self.comparisons]
        rows = sql.TURNS.rows(keys) if keys else []
        turns = map(sql.OF_TURN.read, rows)
        return {(turn.comparison_id, turn.judge_id): turn for turn in turns if turn.pk not in self.over}

    def _claim(self, wanted: Wanted, turns: dict[Wanted, Turn], seen: Seen) -> _Claim | None:
        """Return what to ask, if there is something to ask now."""
        comparison = self.comparisons.get(wanted[0])
        if comparison is None or not comparison.takes_votes or not comparison.chain.campaign.is_running:
            return None
        campaign, before = comparison.chain.campaign, turns.get(wanted)
        if (before is not None and _is_taken(before)) or (asked := self._asked(campaign, wanted[1])) is None:
            return None
        judge, endpoint, has_cap = asked
        kind = kind_of(started_campaign(campaign).config, judge.place)
        if not objects.may_be_judged(comparison):
            # Whoever stores the numbers that it is shown gives the hint.
            return None
        asking = kind.wanted(comparison, judge, seen)
        if asking is None:
            # Whoever asks for it now gives the hint.
            return None
        if not asking.slots:
            Turn.objects.filter(comparison=comparison, judge=judge).delete()
            return None
        most_requests = partial(kind.most_requests, endpoint=endpoint)
        if has_cap or usage.has_site_cap():
            # What these answers took is not set aside any more.
            self._record()
        reserved = usage.reserve(campaign, judge.place, endpoint, len(asking.slots), most_requests, has_cap=has_cap)
        if reserved is None:
            # At the cap, or what is under way may come to it: the sweep looks again.
            return None
        if before is not None:
            # On their way when whoever asked for them died.
            usage.note_repeated(campaign.pk, judge.place, before.asked)
        if (opened := seen.opened.get(comparison.pk)) is not None:
            opened.note("turn", judge.pk, None, reserved.count)
        return _Claim(replace(asking, slots=asking.slots[: reserved.count]), kind, endpoint, reserved)

    def _asked(self, campaign: Campaign, judge_id: int) -> tuple[Judge, Endpoint, bool] | None:
        """Return a judge that may be asked, read once; one that cannot be asked as it was frozen is stopped."""
        if judge_id not in self.asked:
            found = frozen_judges.to_be_asked(campaign, judge_id)
            if found is not None and (reason := freezing.drift(campaign, found[0], found[1])):
                _stop(campaign, found[0], reason)
                found = None
            self.asked[judge_id] = found
            if found is not None:
                self.known[judge_id] = frozen_judges.accepted_rows(found[0])
        return self.asked[judge_id]

    def begun(self, claim: _Claim, turn: int) -> Taken:
        """Return a claimed turn with what asks for it."""
        judge, endpoint = claim.asking.judge, claim.endpoint
        ask = claim.kind.asks(claim.asking, frozen_judges.asked_endpoint(judge, endpoint))
        return Taken(claim.asking, claim.kind, turn, endpoint, self.known[judge.pk], ask)


def _is_taken(mine: Turn) -> bool:
    """Say whether somebody is asking already, or is to wait."""
    return mine.is_suspended or (mine.until is not None and mine.until > timezone.now())


def _rows_of(judge: Judge, identities: Sequence[Identity | None], known: Rows) -> Rows:
    """Return the rows of those identities whose replies count.

    Args:
        known: those that counted when the turn began, and so count now.
    """
    found = {identity for identity in identities if identity}
    rows = {identity: known.get(identity) or frozen_judges.row_of(judge, identity) for identity in found}
    return {identity: row for identity, row in rows.items() if row.accepted_at is not None}


def _put_off(turn: int, owner: uuid.UUID, judge: Judge, failure: EndpointError) -> None:
    """Let a turn say why its votes are missing, and when they are asked for again, if they are by themselves."""
    pause = timedelta(seconds=failure.retry_after) if isinstance(failure, TryLater) else None
    until = None if pause is None else timezone.now() + pause
    mine = Turn.objects.filter(pk=turn, owner=owner, asked__gt=0)
    mine.update(asked=0, state=None, until=until, reason=f"{judge.answered_by}: {failure.reason}"[:300])


# Of each judge of a started campaign: whether its last replies with log-probabilities were sound.
_lately: defaultdict[tuple[int, datetime | None], deque[bool]] = defaultdict(lambda: deque(maxlen=_LOOKED_AT))


def _unsound(campaign: Campaign, judge: Judge, sound: Sequence[bool]) -> str:
    """Take in replies with log-probabilities; return why the judge is to be stopped, empty if it is not."""
    if not sound:
        return ""
    lately = _lately[judge.pk, campaign.started_at]
    lately.extend(sound)
    failed = lately.count(False)
    if failed <= _MOST_UNSOUND * _LOOKED_AT:
        return ""
    lately.clear()
    return (
        f"{failed} of its last {_LOOKED_AT} replies, or fewer, had log-probabilities that are no distribution. None of "
        "them was counted. Mend the server, test it, then ask again"
    )


def _stop(campaign: Campaign, judge: Judge, reason: str) -> None:
    frozen_judges.stop(judge, f"{judge.answered_by}: {reason}")
    sockets.nudge(sockets.watchers(campaign.pk))
