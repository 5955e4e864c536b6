"""A model's turn on a comparison: from the question to its votes or ratings, through the same door as people's.

    take_turn    claim as many votes as can be used, ask the endpoint with no lock held, cast what came back
    waiting      the turns that nobody takes: a crash, an endpoint that was down, a message that was lost
    try_again    somebody has seen to what parked a turn, or stopped a judge

A model has N_i votes on a comparison, each in its slot, and with the slot go its key, its presentation and the number
it is drawn with, if it is: a vote that is asked for twice is stored once. A `Turn` stands while votes are on their
way, so that nobody else is asked for more than the comparison can use. Where the rule rates, a turn is about the
ratings of one object (`kinds/ratings.py`), and all else is the same. How a judge is asked was frozen when its campaign
started (`freezing.py`); one that cannot be asked so any more is stopped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine.reading import locked
from prefmh_web.campaigns.model_judges import freezing, frozen_judges
from prefmh_web.campaigns.model_judges.kinds import Answers, Asking, JudgeKind, kind_of
from prefmh_web.campaigns.model_judges.turn_claims import TurnClaim, kept
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, ReplyIdentity, Turn
from prefmh_web.campaigns.started import cheap, started_campaign
from prefmh_web.endpoints.errors import EndpointError, TryLater
from prefmh_web.endpoints.identity import Admitted, Identity
from prefmh_web.transport import nudges


@dataclass(frozen=True)
class _Taken:
    """A turn that is ours: what to ask, and the claim that keeps it so."""

    asking: Asking
    kind: JudgeKind
    claim: TurnClaim


def take_turn(comparison_id: int, judge_id: int) -> None:
    """Ask a model for what it still has to say on a comparison. Run twice at once, the second does nothing."""
    taken = _claim(comparison_id, judge_id)
    if taken is None:
        return
    campaign, judge = taken.asking.comparison.chain.campaign, taken.asking.judge
    freezing.ensure_frozen(campaign, judge)
    if reason := freezing.drift(campaign, judge):
        taken.claim.end()
        _stop(campaign, judge, reason)
        return
    admitted = Admitted(frozen_judges.accepted(judge))
    with kept(taken.claim):
        answers = taken.kind.ask(taken.asking, frozen_judges.asked_endpoint(judge), admitted)
    _store(taken, answers, admitted)


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
        for comparison_id in open_ones.annotate(mine=mine).filter(mine__lt=judge.budget).values_list("pk", flat=True):
            yield comparison_id, judge.pk


def try_again(campaign: Campaign, *, accepting: bool = False) -> int:
    """Take up the parked turns of a campaign, and ask its stopped judges again; return how many there were.

    Args:
        accepting: whether a model that a stopped judge's server has turned to counts as that judge from now on.
    """
    parked = Turn.objects.filter(comparison__chain__campaign=campaign, asked=0, until__isnull=True)
    turns = list(parked.select_related("comparison__chain__campaign"))
    with transaction.atomic():
        parked.delete()
        going_on = frozen_judges.go_on(campaign, accepting=accepting)
        comparisons = {turn.comparison for turn in turns}
        if going_on:
            comparisons.update(Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True))
        for comparison in comparisons:
            dispatch.judge(comparison)
        nudges.nudge(nudges.watchers(campaign.pk))
    return len(turns) + going_on


def _claim(comparison_id: int, judge_id: int) -> _Taken | None:
    """Return what to ask, with a turn that says so; None if there is nothing to ask now."""
    with locked(comparison_id) as comparison:
        campaign = comparison.chain.campaign
        judge = Judge.objects.filter(campaign=campaign, pk=judge_id, endpoint__isnull=False, stopped_because="").first()
        mine = Turn.objects.filter(comparison=comparison, judge=judge_id).first()
        is_taken = mine is not None and (mine.is_parked or (mine.until is not None and mine.until > timezone.now()))
        if judge is None or not comparison.takes_votes or not campaign.is_running or is_taken:
            return None
        kind = kind_of(started_campaign(campaign).recipe, judge.place)
        asking = kind.wanted(comparison, judge)
        if asking is None:
            # Whoever asks for it now gives the hint.
            return None
        if not asking.slots:
            Turn.objects.filter(comparison=comparison, judge=judge).delete()
            return None
        claim = TurnClaim.take(comparison, judge, len(asking.slots), asking.state)
        nudges.nudge(nudges.watchers(campaign.pk))
    return _Taken(asking, kind, claim)


def _store(taken: _Taken, answers: Answers, admitted: Admitted) -> None:
    # Before anything is locked: these answers may open the chain's next comparison.
    cheap.prepare(taken.asking.comparison.chain.campaign)
    with locked(taken.asking.comparison.pk) as comparison:
        rows = _rows_of(taken.asking.judge, answers.identities)
        taken.kind.store(taken.asking, comparison, answers, rows)
        _end_turn(taken, comparison, answers.failure, admitted)


def _rows_of(judge: Judge, identities: Sequence[Identity | None]) -> dict[Identity, ReplyIdentity]:
    """Return the rows of those identities whose replies count."""
    rows = {identity: frozen_judges.row_of(judge, identity) for identity in dict.fromkeys(identities) if identity}
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
    nudges.nudge(nudges.voters(campaign.pk), nudges.watchers(campaign.pk))


def _stop(campaign: Campaign, judge: Judge, reason: str) -> None:
    frozen_judges.stop(judge, f"{judge.answered_by}: {reason}")
    nudges.nudge(nudges.watchers(campaign.pk))
