"""Models' turns on comparisons: from the question to its votes or ratings, through the same door as people's.

    work         stores what came back, and claims what is to be asked next, all in one transaction
    keep         keeps claims for another while
    reserved     how much has been claimed at endpoints with limits a minute
    waiting      the turns that nobody takes: a crash, an endpoint that was down, a message that was lost
    try_again    somebody has seen to what suspended a turn, or stopped a judge

A model has N_i votes on a comparison, each in its slot, and with the slot go its key, its presentation and the number
it is drawn with, if it is: a vote that is asked for twice is stored once. A `Turn` stands while votes are on their
way, so that nobody else is asked for more than the comparison can use; it has an owner and ends by itself soon after
its owner's process does. Where the rule rates, a turn is about the ratings of one object, and all else is the same. How
a judge is asked was frozen when its campaign started (`judges.py`); one that cannot be asked so any more is stopped. No
transaction is open while a model is asked: `asker.py` does that.
"""

from __future__ import annotations

import uuid
from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, Sum
from django.utils import timezone

from prefmh_web.campaigns import dispatch, frozen, objects
from prefmh_web.campaigns.engine import locks, open_comparisons, sql, usage
from prefmh_web.campaigns.engine.locks import claim_end
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.model_judges import judges
from prefmh_web.campaigns.model_judges.judges import AnswerRequest, MissingAnswers, Rows
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, ReplyIdentity, State, Turn
from prefmh_web.endpoints.errors import EndpointError, TryLater
from prefmh_web.endpoints.judge_calls import Answers
from prefmh_web.endpoints.limits import Tally
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Admitted
from prefmh_web.transport import sockets

# How many recent replies with log-probabilities are examined, and how large a share of them may be no distribution.
_LOOKED_AT, _MAX_UNSOUND = 200, 0.01

TurnKey = tuple[int, int]
"""A comparison and a judge."""


@dataclass
class ClaimedTurn:
    """A turn that is ours: what is asked, and the claim that keeps it so.

    Args:
        endpoint: its row as it was read with the claim.
        reserved: what it may come to under a cap.
        known: the identities whose replies count, as the turn begins.
        turn: the key of its row.
        ask: what asks for it.
    """

    asking: MissingAnswers
    endpoint: Endpoint
    reserved: usage.Reservation
    known: Rows
    turn: int = field(init=False)
    ask: AnswerRequest = field(init=False)

    @property
    def wanted(self) -> TurnKey:
        """Which comparison and judge."""
        return self.asking.comparison.pk, self.asking.judge.pk

    @property
    def campaign(self) -> Campaign:
        """Whose turn it is."""
        return self.asking.comparison.chain.campaign


@dataclass(frozen=True)
class TurnResult:
    """What came of a turn, and what it took."""

    taken: ClaimedTurn
    answers: Answers
    admitted: Admitted
    tally: Tally


def work(answered: Sequence[TurnResult], wanted: Collection[TurnKey], owner: uuid.UUID) -> list[ClaimedTurn]:
    """Store what came of some turns, and claim others: both in one transaction.

    A turn that somebody else takes, or that has nothing to ask now, is left out. Run twice, nothing is stored twice.

    Args:
        owner: who claims them; unlike any other process.
    """
    for each in answered:
        # Before anything is locked: these answers may open the chain's next comparison.
        frozen.prepare(each.taken.campaign)
    taken, _ = locks.together(lambda: _Batch(answered, wanted, owner).done())
    # What is shown is read with no lock held: first the rows of all, then pictures from their files.
    rows: dict[int, State] = {}
    for campaign in {each.campaign for each in taken}:
        mine = [each.asking.comparison for each in taken if each.campaign == campaign]
        rows |= objects.rows_of(campaign, {key for each in mine for key in (each.current_id, each.proposal_id)})
    for claim in taken:
        claim.ask = judges.asks(claim.asking, judges.asked_endpoint(claim.asking.judge, claim.endpoint), rows)
    return taken


def keep(turns: Sequence[int], owner: uuid.UUID) -> None:
    """Keep claimed turns for another while."""
    sql.KEEP.change(claim_end(), list(turns), owner)


def reserved() -> list[tuple[Endpoint, int]]:
    """Return for how many votes or ratings claims hold, at each endpoint that is limited a minute."""
    limited = Q(requests_per_minute__isnull=False) | Q(tokens_per_minute__isnull=False)
    held = Q(judges__turns__asked__gt=0, judges__turns__until__gt=timezone.now())
    found = Endpoint.objects.filter(limited, held).annotate(held=Sum("judges__turns__asked"))
    return [(endpoint, endpoint.held) for endpoint in found]


def waiting() -> Iterator[TurnKey]:
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
        stopped = campaign.judges.exclude(stopped_because="")
        if accepting:
            # Replies of the models seen count from now on. The record says which votes they gave.
            new = ReplyIdentity.objects.filter(judge__in=stopped, accepted_at__isnull=True)
            new.update(accepted_at=timezone.now())
        going_on = stopped.update(stopped_because="")
        comparisons = {turn.comparison for turn in turns}
        if going_on:
            comparisons.update(Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True))
        for comparison in comparisons:
            dispatch.judge(comparison)
        sockets.notify(sockets.watchers(campaign.pk))
    return len(turns) + going_on


class _Batch:
    """One transaction: its comparisons are locked in the order of their keys, and read together."""

    def __init__(self, answered: Sequence[TurnResult], wanted: Collection[TurnKey], owner: uuid.UUID) -> None:
        self._answered, self._owner = answered, owner
        self._wanted, keys = sorted(wanted), {each.taken.wanted[0] for each in answered} | {key for key, _ in wanted}
        self._comparisons = locks.locked_all(keys)
        self._seen = open_comparisons.seen(list(self._comparisons.values()))
        self._judges: dict[int, tuple[Judge, Endpoint, bool, Rows] | None] = {}

    def done(self) -> list[ClaimedTurn]:
        """Do it, and return what was claimed."""
        over = [
            each.taken.turn
            for each in sorted(self._answered, key=lambda each: each.taken.wanted)
            if each.taken.wanted[0] in self._comparisons and self._store(each)
        ]
        if over:
            sql.GIVE_UP.change(over, self._owner)
        tallies: defaultdict[tuple[int, int], Tally] = defaultdict(Tally)
        for each in self._answered:
            tallies[each.taken.campaign.pk, each.taken.asking.judge.index].merge(each.tally)
        # In one order: whoever stores another outcome of these judges waits for their rows.
        for (campaign_id, index), tally in sorted(tallies.items()):
            usage.record(campaign_id, index, tally)
        return self._claimed()

    def _store(self, each: TurnResult) -> bool:
        """Store what came of a turn; True if it is over, and not to be taken up again later."""
        asking, answers = each.taken.asking, each.answers
        judge, comparison = asking.judge, self._comparisons[asking.comparison.pk]
        campaign, failure = comparison.chain.campaign, answers.failure
        identities = _counting(judge, answers, each.taken.known)
        judges.store(asking, each.taken.ask, comparison, answers, identities, self._seen)
        if (opened := self._seen.opened.get(comparison.pk)) is not None:
            # Its votes are there now, or come another time: none is promised to whoever looks for room beside it.
            opened.note_turn_over(judge.pk)
        if comparison.verdict is None and failure is None:
            # People's votes may have come between; and a vote on its way keeps others from being asked.
            dispatch.judge(comparison)
        dispatch.refresh(campaign)
        stops = ""
        if (change := each.admitted.change) is not None:
            judges.row_of(judge, change.now)
            stops = change.reason
        stops = stops or _unsound(campaign, judge, answers.sound)
        if stops:
            judges.stop(judge, stops)
        elif failure is not None and not comparison.verdict:
            _put_off(each.taken.turn, self._owner, judge, failure)
            return False
        return True

    def _claimed(self) -> list[ClaimedTurn]:
        rows = sql.TURNS.rows([key for key, _ in self._wanted]) if self._wanted else []
        turns = map(sql.OF_TURN.read, rows)
        before = {(turn.comparison_id, turn.judge_id): turn for turn in turns}
        claims, keys = list[ClaimedTurn](), dict[TurnKey, int]()
        for wanted in self._wanted:
            claim = self._claim(wanted, before.get(wanted))
            if claim is None:
                continue
            claims.append(claim)
            if claim.reserved.requests or claim.asking.state is not None:
                # The next one must see what is set aside under a cap, and which object is being rated.
                keys |= sql.take([_row(each, self._owner) for each in claims[len(keys) :]])
        keys |= sql.take([_row(each, self._owner) for each in claims[len(keys) :]])
        for claim in claims:
            claim.turn = keys[claim.wanted]
        sockets.notify(*{sockets.watchers(claim.campaign.pk) for claim in claims})
        return claims

    def _claim(self, wanted: TurnKey, before: Turn | None) -> ClaimedTurn | None:
        """Return what to ask, if there is something to ask now.

        Args:
            before: the turn as it stands, if it does.
        """
        comparison = self._comparisons.get(wanted[0])
        if comparison is None or not comparison.takes_votes or not comparison.chain.campaign.is_running:
            return None
        # Somebody is asking already, or it is to wait; or whoever stores the numbers that it is shown gives the hint.
        is_taken = before is not None and (before.is_suspended or (before.until and before.until > timezone.now()))
        campaign = comparison.chain.campaign
        if is_taken or (found := self._judge(campaign, wanted[1])) is None or not objects.may_be_judged(comparison):
            return None
        judge, endpoint, has_cap, known = found
        if before is not None and before.asked:
            # Whoever asked has died.
            usage.note_lost(campaign.pk, judge.index, before)
        asking = judges.wanted(comparison, judge, self._seen)
        if asking is None:
            # Whoever asks for it now gives the hint.
            return None
        if not asking.slots:
            Turn.objects.filter(comparison=comparison, judge=judge).delete()
            return None

        def max_requests(answers: int) -> int:
            asked = judges.asked_endpoint(judge, endpoint)
            return judges.max_requests(started_campaign(campaign).config, judge.index, asked, answers)

        reserved = usage.reserve(campaign, judge.index, endpoint, len(asking.slots), max_requests, has_cap=has_cap)
        if reserved is None:
            # At the cap, or what is under way may come to it: the sweep looks again.
            return None
        if (opened := self._seen.opened.get(comparison.pk)) is not None:
            opened.note("turn", judge.pk, None, reserved.count)
        return ClaimedTurn(replace(asking, slots=asking.slots[: reserved.count]), endpoint, reserved, known)

    def _judge(self, campaign: Campaign, judge_id: int) -> tuple[Judge, Endpoint, bool, Rows] | None:
        """Return a judge that may be asked, its endpoint as its row is now, whether its campaign has a cap, and whose
        replies count; read once. One that cannot be asked as it was frozen is stopped.
        """
        if judge_id not in self._judges:
            self._judges[judge_id] = None
            row = sql.JUDGE.row(judge_id, campaign.pk)
            if row is not None:
                judge, endpoint, has_cap = sql.read_all((sql.OF_JUDGE, sql.OF_ENDPOINT), row)
                if reason := judges.drift(campaign, judge, endpoint):
                    judges.stop(judge, reason)
                    sockets.notify(sockets.watchers(campaign.pk))
                else:
                    self._judges[judge_id] = judge, endpoint, bool(has_cap), judges.accepted_rows(judge)
        return self._judges[judge_id]


def _row(claim: ClaimedTurn, owner: uuid.UUID) -> tuple[object, ...]:
    """Return what stands in the row of a turn that is claimed, as `sql.take` wants it."""
    reserved, state = claim.reserved, claim.asking.state
    claimed = reserved.count, None if state is None else state.pk, claim_end(), ""
    return *claim.wanted, *claimed, reserved.requests, reserved.cost, owner


def _counting(judge: Judge, answers: Answers, known: Rows) -> Rows:
    """Return the rows of those identities whose replies count.

    Args:
        known: those that counted when the turn began, and so count now.
    """
    found = {given.identity for given in answers.given if given.identity}
    rows = {identity: known.get(identity) or judges.row_of(judge, identity) for identity in found}
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
    if failed <= _MAX_UNSOUND * _LOOKED_AT:
        return ""
    lately.clear()
    return (
        f"{failed} of its last {_LOOKED_AT} replies, or fewer, had log-probabilities that are no distribution. None of "
        "them was counted. Fix the server, test it, then ask again"
    )
