"""Turns of models that the site runs itself: all that wait for one judge, in one pass through the model.

    take_turns   claim the waiting turns, let the model read their prompts together with no lock held, cast the votes
    waiting      the judges that somebody has to take turns for: the sweep hints at them

What `turns.py` promises holds here: a vote that is asked for twice is stored once, for it has its slot; nobody is
asked for more than a comparison can use; the turns of a worker that was killed are found once their claims have run
out. One pass is one task, and what is left is hinted at again, so that the worker serves others in between.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import caps, spending
from prefmh_web.campaigns.engine.reading import locked
from prefmh_web.campaigns.engine.renewal import renewed
from prefmh_web.campaigns.model_judges import frozen_judges, local_freezing
from prefmh_web.campaigns.model_judges.kinds.kind import Answers, Asking
from prefmh_web.campaigns.model_judges.kinds.local import LocalProbabilities, Outcome, Prepared, as_endpoint
from prefmh_web.campaigns.model_judges.storing import stored_in_the_end
from prefmh_web.campaigns.model_judges.turn_claims import TurnClaim
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Turn
from prefmh_web.campaigns.started import cheap
from prefmh_web.endpoints.accounting import Tally
from prefmh_web.endpoints.errors import EndpointError, TryLater, Unable
from prefmh_web.endpoints.identity import Admitted, Changed, Identity
from prefmh_web.endpoints.local.models import JudgeHere
from prefmh_web.transport import nudges

MOST_AT_ONCE = 256
"""Comparisons of one pass at most: a claim on each is renewed while the model works."""
_KIND = LocalProbabilities()


@dataclass(frozen=True)
class _Taken:
    """A turn that is ours, with the claim that keeps it so."""

    asking: Asking
    claim: TurnClaim


class _Claims:
    """The claims on all turns of a pass, renewed together."""

    def __init__(self, taken: Sequence[_Taken]) -> None:
        self._claims = [each.claim for each in taken]

    def __str__(self) -> str:
        return f"{len(self._claims)} turns"

    def renew(self) -> None:
        for claim in self._claims:
            claim.renew()


def take_turns(judge_id: int) -> None:
    """Let a model cast the votes that wait for it. Run twice at once, each takes what the other has not."""
    judge = _judges().filter(pk=judge_id).select_related("campaign").first()
    if judge is None:
        return
    open_ones = list(_open_for(judge)[: MOST_AT_ONCE + 1])
    taken = [each for pk in open_ones[:MOST_AT_ONCE] if (each := _claim(pk, judge)) is not None]
    if not taken:
        return
    with renewed(_Claims(taken)):
        outcomes, admitted = _asked(judge, taken)
        for each, outcome in zip(taken, outcomes, strict=True):
            stored_in_the_end(partial(_store, each, outcome, admitted))
    if admitted.change is not None:
        _stop(judge, admitted.change)
    elif len(open_ones) > MOST_AT_ONCE:
        dispatch.local_turns(judge_id)


def waiting() -> Iterator[int]:
    """Yield the judges that some comparison waits for and nobody takes turns for."""
    for judge in _judges():
        if _open_for(judge).exists():
            yield judge.pk


def _judges() -> QuerySet[Judge]:
    return Judge.objects.filter(stopped_because="", campaign__status=Campaign.Status.RUNNING).exclude(local_model="")


def _open_for(judge: Judge) -> QuerySet[Comparison, int]:
    """Return the comparisons that lack votes of a judge which nobody is asking for now."""
    not_now = Turn.objects.filter(judge=judge).filter(Q(until__gt=timezone.now()) | Q(asked=0, until__isnull=True))
    opened = Comparison.objects.filter(chain__campaign=judge.campaign_id, chain__ended_at=None, verdict__isnull=True)
    mine = Count("votes", filter=Q(votes__judge=judge))
    lacking = opened.exclude(pk__in=not_now.values("comparison")).annotate(mine=mine).filter(mine__lt=judge.budget)
    # The one that has waited longest first.
    return lacking.order_by(F("opened_at").asc(), "pk").values_list("pk", flat=True)


def _claim(comparison_id: int, judge: Judge) -> _Taken | None:
    """Return what to ask, with a turn that says so; None if there is nothing to ask now."""
    with locked(comparison_id) as comparison:
        campaign = comparison.chain.campaign
        is_asked = _judges().filter(pk=judge.pk).exists()
        mine = Turn.objects.filter(comparison=comparison, judge=judge).first()
        is_taken = mine is not None and (mine.is_suspended or (mine.until is not None and mine.until > timezone.now()))
        if not is_asked or not comparison.takes_votes or not campaign.is_running or is_taken:
            return None
        asking = _KIND.wanted(comparison, judge)
        if not asking.slots:
            Turn.objects.filter(comparison=comparison, judge=judge).delete()
            return None
        free = as_endpoint(judge.local_model)
        most = partial(_KIND.most_requests, endpoint=free)
        has_cap = caps.is_capped(campaign)
        reserved = caps.reserve(campaign, judge.place, free, len(asking.slots), most, has_cap=has_cap)
        if reserved is None:
            # At the cap, or what is under way may come to it: the sweep looks again.
            return None
        asking = replace(asking, slots=asking.slots[: reserved.count])
        if mine is not None:
            # On their way when whoever asked for them died.
            spending.note_repeated(campaign.pk, judge.place, mine.asked)
        return _Taken(asking, TurnClaim.take(comparison, judge, None, reserved))


def _asked(judge: Judge, taken: Sequence[_Taken]) -> tuple[list[Outcome], Admitted]:
    """Return what came of each turn, and whether these weights are the judge's."""
    admitted = Admitted(frozen_judges.accepted_rows(judge))
    began = time.monotonic()
    try:
        model = local_freezing.loaded(judge.campaign, judge.place)
        identity = local_freezing.identity_of(judge.local_model, model)
        admitted.check(identity)
        prepared = [_KIND.prepared(each.asking, model) for each in taken]
        outcomes = _through_the_model(prepared, model, identity)
    except EndpointError as error:
        return [Outcome(Answers((), (), error), Tally()) for _ in taken], admitted
    rows = sum(outcome.tally.requests for outcome in outcomes) or 1
    each_row = (time.monotonic() - began) / rows
    for outcome in outcomes:
        outcome.tally.seconds = each_row * outcome.tally.requests
    return outcomes, admitted


def _through_the_model(prepared: Sequence[Prepared], model: JudgeHere, identity: Identity) -> list[Outcome]:
    """Return what came of turns; where the model fails on all of them together, each is tried alone."""
    try:
        return _KIND.outcomes(prepared, model, identity)
    except Unable as error:
        if len(prepared) == 1:
            return [Outcome(Answers((), (), error), Tally(requests=1, failed=1))]
        return [outcome for each in prepared for outcome in _through_the_model([each], model, identity)]


def _store(taken: _Taken, outcome: Outcome, admitted: Admitted) -> None:
    judge = taken.asking.judge
    # Before anything is locked: these answers may open the chain's next comparison.
    cheap.prepare(taken.asking.comparison.chain.campaign)
    with locked(taken.asking.comparison.pk) as comparison:
        identities = dict.fromkeys(identity for identity in outcome.answers.identities if identity)
        seen = {identity: frozen_judges.row_of(judge, identity) for identity in identities}
        rows = {identity: row for identity, row in seen.items() if row.accepted_at is not None}
        _KIND.store(taken.asking, comparison, outcome.answers, rows)
        _end_turn(taken, comparison, outcome.answers.failure, admitted)
        # Last: whoever stores another outcome of this judge waits for this row until the end of the transaction.
        spending.record(comparison.chain.campaign_id, judge.place, outcome.tally)


def _end_turn(taken: _Taken, comparison: Comparison, failure: EndpointError | None, admitted: Admitted) -> None:
    campaign, judge = comparison.chain.campaign, taken.asking.judge
    if failure is None or comparison.verdict or admitted.change is not None:
        taken.claim.end()
    else:
        pause = timedelta(seconds=failure.retry_after) if isinstance(failure, TryLater) else None
        until = None if pause is None else timezone.now() + pause
        taken.claim.end(until=until, reason=f"{judge.answered_by}: {failure.reason}"[:300])
    if comparison.verdict is None and failure is None:
        # People's votes may have come between; and a vote on its way keeps others from being asked.
        dispatch.judge(comparison)
    nudges.nudge(nudges.voters(campaign.pk), nudges.watchers(campaign.pk))


def _stop(judge: Judge, change: Changed) -> None:
    frozen_judges.row_of(judge, change.now)
    frozen_judges.stop(judge, f"{judge.answered_by}: {change.reason}")
    nudges.nudge(nudges.watchers(judge.campaign_id))
