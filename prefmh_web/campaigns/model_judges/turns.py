"""A model's turn on a comparison: from the question to its votes or ratings, through the same door as people's.

    take_turn    claim as many votes as can be used, ask the endpoint with no lock held, cast what came back
    waiting      the turns that nobody takes: a crash, an endpoint that was down, a message that was lost
    try_again    somebody has seen to what suspended a turn, or stopped a judge

A model has N_i votes on a comparison, each in its slot, and with the slot go its key, its presentation and the number
it is drawn with, if it is: a vote that is asked for twice is stored once. A `Turn` stands while votes are on their
way, so that nobody else is asked for more than the comparison can use. Where the rule rates, a turn is about the
ratings of one object (`kinds/ratings.py`), and all else is the same. How a judge is asked was frozen when its campaign
started (`freezing.py`); one that cannot be asked so any more is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from prefmh_web.campaigns import dispatch, frozen, objects
from prefmh_web.campaigns.engine import sql, usage
from prefmh_web.campaigns.engine.reading import locked
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.model_judges import freezing, frozen_judges
from prefmh_web.campaigns.model_judges.kinds import Answers, Asking, JudgeKind, Rows, kind_of
from prefmh_web.campaigns.model_judges.storing import stored_in_the_end
from prefmh_web.campaigns.model_judges.turn_claims import TurnClaim, kept
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Turn
from prefmh_web.endpoints import accounting
from prefmh_web.endpoints.calls import unless_full
from prefmh_web.endpoints.errors import EndpointError, TryLater
from prefmh_web.endpoints.identity import Admitted, Identity
from prefmh_web.endpoints.limits import alike
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.transport import sockets


@dataclass(frozen=True)
class _Taken:
    """A turn that is ours: what to ask, and the claim that keeps it so."""

    asking: Asking
    kind: JudgeKind
    claim: TurnClaim
    endpoint: Endpoint


def take_turn(comparison_id: int, judge_id: int) -> int:
    """Ask a model for what it still has to say on a comparison. Run twice at once, the second does nothing.

    Returns:
        For how many votes, or ratings, it was asked.
    """
    taken = _claim(comparison_id, judge_id)
    if taken is None:
        return 0
    campaign, judge = taken.asking.comparison.chain.campaign, taken.asking.judge
    if reason := freezing.drift(campaign, judge, taken.endpoint):
        taken.claim.end()
        _stop(campaign, judge, reason)
        return 0
    known = frozen_judges.accepted_rows(judge)
    admitted = Admitted(known)
    with kept(taken.claim), accounting.tallied() as tally, alike(judge.pk), unless_full():
        answers = taken.kind.ask(taken.asking, frozen_judges.asked_endpoint(judge, taken.endpoint), admitted)
    stored_in_the_end(partial(_store, taken, answers, admitted, known, tally))
    return len(taken.asking.slots)


def waiting() -> Iterator[tuple[int, int]]:
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


def _claim(comparison_id: int, judge_id: int) -> _Taken | None:
    """Return what to ask, with a turn that says so; None if there is nothing to ask now."""
    with locked(comparison_id) as comparison:
        campaign = comparison.chain.campaign
        asked = frozen_judges.to_be_asked(campaign, judge_id)
        if asked is None or not comparison.takes_votes or not campaign.is_running:
            return None
        before = _turn_of(comparison, judge_id)
        if before is not None and _is_taken(before):
            return None
        judge, endpoint, has_cap = asked
        kind = kind_of(started_campaign(campaign).config, judge.place)
        if not objects.may_be_judged(comparison):
            # Whoever stores the numbers that it is shown gives the hint.
            return None
        asking = kind.wanted(comparison, judge)
        if asking is None:
            # Whoever asks for it now gives the hint.
            return None
        if not asking.slots:
            Turn.objects.filter(comparison=comparison, judge=judge).delete()
            return None
        most_requests = partial(kind.most_requests, endpoint=endpoint)
        reserved = usage.reserve(campaign, judge.place, endpoint, len(asking.slots), most_requests, has_cap=has_cap)
        if reserved is None:
            # At the cap, or what is under way may come to it: the sweep looks again.
            return None
        asking = replace(asking, slots=asking.slots[: reserved.count])
        if before is not None:
            # On their way when whoever asked for them died.
            usage.note_repeated(campaign.pk, judge.place, before.asked)
        claim = TurnClaim.take(comparison, judge, asking.state, reserved)
        sockets.nudge(sockets.watchers(campaign.pk))
    return _Taken(asking, kind, claim, endpoint)


def _turn_of(comparison: Comparison, judge_id: int) -> Turn | None:
    row = sql.TURN.row(comparison.pk, judge_id)
    return None if row is None else sql.OF_TURN.read(row)


def _is_taken(mine: Turn) -> bool:
    """Say whether somebody is asking already, or is to wait."""
    return mine.is_suspended or (mine.until is not None and mine.until > timezone.now())


def _store(taken: _Taken, answers: Answers, admitted: Admitted, known: Rows, tally: accounting.Tally) -> None:
    # Before anything is locked: these answers may open the chain's next comparison.
    frozen.prepare(taken.asking.comparison.chain.campaign)
    with locked(taken.asking.comparison.pk) as comparison:
        rows = _rows_of(taken.asking.judge, answers.identities, known)
        taken.kind.store(taken.asking, comparison, answers, rows)
        _end_turn(taken, comparison, answers.failure, admitted)
        # Last: whoever stores another outcome of this judge waits for this row until the end of the transaction.
        usage.record(comparison.chain.campaign_id, taken.asking.judge.place, tally)


def _rows_of(judge: Judge, identities: Sequence[Identity | None], known: Rows) -> Rows:
    """Return the rows of those identities whose replies count.

    Args:
        known: those that counted when the turn began, and so count now.
    """
    found = {identity for identity in identities if identity}
    rows = {identity: known.get(identity) or frozen_judges.row_of(judge, identity) for identity in found}
    return {identity: row for identity, row in rows.items() if row.accepted_at is not None}


def _end_turn(taken: _Taken, comparison: Comparison, failure: EndpointError | None, admitted: Admitted) -> None:
    judge, campaign = taken.asking.judge, comparison.chain.campaign
    if admitted.change is not None:
        frozen_judges.row_of(judge, admitted.change.now)
        taken.claim.end()
        _stop(campaign, judge, admitted.change.reason)
    elif failure is None or comparison.verdict:
        taken.claim.end()
    else:
        pause = timedelta(seconds=failure.retry_after) if isinstance(failure, TryLater) else None
        until = None if pause is None else timezone.now() + pause
        taken.claim.end(until=until, reason=f"{judge.answered_by}: {failure.reason}"[:300])
    if comparison.verdict is None and failure is None:
        # People's votes may have come between; and a vote on its way keeps others from being asked.
        dispatch.judge(comparison)
    sockets.nudge(sockets.voters(campaign.pk), sockets.watchers(campaign.pk))


def _stop(campaign: Campaign, judge: Judge, reason: str) -> None:
    frozen_judges.stop(judge, f"{judge.answered_by}: {reason}")
    sockets.nudge(sockets.watchers(campaign.pk))
