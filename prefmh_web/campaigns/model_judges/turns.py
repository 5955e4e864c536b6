"""A model's turn on a comparison: from the question to its votes or ratings, through the same door as people's.

    take_turn    claim as many votes as can be used, ask the endpoint with no lock held, cast what came back
    waiting      the turns that nobody takes: a crash, an endpoint that was down, a message that was lost
    try_again    somebody has seen to what parked a turn, or stopped a judge

A model has N_i votes on a comparison, each in its slot, and with the slot go its key, its presentation and the number
it is drawn with, if it is: a vote that is asked for twice is stored once. A `Turn` stands while votes are on their
way, so that nobody else is asked for more than the comparison can use. Where the rule rates, a turn is about the
ratings of one object (`kinds/ratings.py`), and all else is the same. How a judge is asked was frozen when its campaign
started (`frozen_judges.py`); one that cannot be asked so any more is stopped.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, prefetch_related_objects
from django.utils import timezone

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import capacity, transitions
from prefmh_web.campaigns.model_judges import frozen_judges
from prefmh_web.campaigns.model_judges.kinds import ratings, voting
from prefmh_web.campaigns.model_judges.turn_claims import TurnClaim, kept
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Rating, ReplyIdentity, Side, State, Turn
from prefmh_web.endpoints.errors import EndpointError, TryLater
from prefmh_web.endpoints.identity import Admitted, Identity
from prefmh_web.transport import nudges

_KEYS = uuid.UUID("6c1c1d8e-6a52-4d5b-9f0e-6f8f7f3b6f10")


@dataclass(frozen=True)
class _Taken:
    """A turn that is ours: what to ask, and the claim that keeps it so. `state` is the object to rate, if any."""

    comparison: Comparison
    judge: Judge
    state: State | None
    slots: list[int]
    claim: TurnClaim


def take_turn(comparison_id: int, judge_id: int) -> None:
    """Ask a model for what it still has to say on a comparison. Run twice at once, the second does nothing."""
    taken = _claim(comparison_id, judge_id)
    if taken is None:
        return
    campaign, judge = taken.comparison.chain.campaign, taken.judge
    frozen_judges.ensure_frozen(campaign, judge)
    if reason := frozen_judges.drift(campaign, judge):
        taken.claim.end()
        _stop(campaign, judge, reason)
        return
    admitted = Admitted(frozen_judges.accepted(judge))
    with kept(taken.claim):
        if taken.state is None:
            asked = voting.ask(taken.comparison, judge, taken.slots, admitted)
        else:
            asked = ratings.ask(taken.comparison, judge, taken.state, taken.slots, admitted)
    if taken.state is None:
        _cast(taken, asked, admitted)
    else:
        _rate(taken, *asked, admitted)


def waiting() -> Iterator[tuple[int, int]]:
    """Yield the comparison and the judge of every turn that is to be taken and that nobody is taking."""
    models = Judge.objects.filter(endpoint__isnull=False, stopped_because="", campaign__status=Campaign.Status.RUNNING)
    for judge in models:
        not_now = Turn.objects.filter(comparison=OuterRef("pk"), judge=judge).filter(
            Q(until__gt=timezone.now()) | Q(asked=0, until__isnull=True)
        )
        mine = Count("votes", filter=Q(votes__judge=judge))
        open_ones = Comparison.objects.filter(~Exists(not_now), chain__campaign=judge.campaign_id, verdict__isnull=True)
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
    with transitions.locked(pk=comparison_id) as comparison:
        campaign = comparison.chain.campaign
        prefetch_related_objects([comparison], "votes", "leases", "turns")
        judge = Judge.objects.filter(campaign=campaign, pk=judge_id, endpoint__isnull=False, stopped_because="").first()
        mine = next((turn for turn in comparison.turns.all() if turn.judge_id == judge_id), None)
        is_taken = mine is not None and (mine.is_parked or mine.until > timezone.now())
        if judge is None or comparison.verdict or not campaign.is_running or is_taken:
            return None
        state, slots = _wanted(comparison, judge)
        if not slots:
            if campaign.is_rated:
                # Another chain at the same objects may have brought the last rating.
                transitions.store_ratings(comparison, ())
            Turn.objects.filter(comparison=comparison, judge=judge).delete()
            return None
        if state is not None and _is_being_rated(state, judge):
            # Its ratings serve this chain too; whoever stores them gives the hint.
            return None
        claim = TurnClaim.take(comparison, judge, len(slots), state)
        nudges.nudge(nudges.watchers(campaign.pk))
    return _Taken(comparison, judge, state, slots, claim)


def _wanted(comparison: Comparison, judge: Judge) -> tuple[State | None, list[int]]:
    if comparison.chain.campaign.is_rated:
        return ratings.missing(comparison, judge) or (None, [])
    stored = {vote.slot for vote in comparison.votes.all() if vote.judge_id == judge.pk}
    left = [slot for slot in range(judge.budget) if slot not in stored]
    return None, left[: capacity.room(comparison, judge, most=len(left))]


def _is_being_rated(state: State, judge: Judge) -> bool:
    """Say whether another chain's turn asks for this object's ratings now."""
    # Locked, so that of two chains that come to an object at once, the second sees the first one's turn.
    State.objects.select_for_update(no_key=True).only("pk").get(pk=state.pk)
    return Turn.objects.filter(judge=judge, state=state, asked__gt=0, until__gt=timezone.now()).exists()


def _cast(taken: _Taken, asked: voting.Asked, admitted: Admitted) -> None:
    with transitions.locked(pk=taken.comparison.pk) as comparison:
        rows = _rows_of(taken.judge, [vote.identity for vote in asked.votes.cast])
        for vote in asked.votes.cast:
            row = rows.get(vote.identity) if vote.identity else asked.known_identity(vote.proposal_first)
            if vote.identity and row is None:
                continue
            slot = taken.slots[vote.place]
            first, chosen = Side.LEFT, Side.LEFT if vote.for_proposal == vote.proposal_first else Side.RIGHT
            transitions.cast_vote(
                comparison,
                key=_key(comparison, taken.judge, slot),
                judge=taken.judge,
                proposal_side=first if vote.proposal_first else first.other,
                chosen_side=chosen,
                elapsed_ms=None if vote.seconds is None else round(1000 * vote.seconds),
                slot=slot,
                preference=vote.preference,
                asks=vote.asks,
                identity=row,
            )
        _end_turn(taken, comparison, asked.votes.failure, admitted)


def _rate(taken: _Taken, given: list[tuple[Rating, Identity]], failure: EndpointError | None, admitted: Admitted):
    with transitions.locked(pk=taken.comparison.pk) as comparison:
        rows = _rows_of(taken.judge, [identity for _, identity in given])
        for each, identity in given:
            each.identity = rows.get(identity)
        transitions.store_ratings(comparison, [each for each, _ in given if each.identity])
        _end_turn(taken, comparison, failure, admitted)
        if failure is None:
            for other in _others_at(taken.state, comparison):
                dispatch.judge(other)


def _others_at(state: State, comparison: Comparison) -> list[Comparison]:
    """Return the other open comparisons of an object, which wait for its ratings too."""
    opened = Comparison.objects.filter(Q(current=state) | Q(proposal=state), verdict__isnull=True)
    return list(opened.exclude(pk=comparison.pk).select_related("chain__campaign"))


def _rows_of(judge: Judge, identities: list[Identity | None]) -> dict[Identity, ReplyIdentity]:
    """Return the rows of those identities whose replies count."""
    rows = {identity: frozen_judges.row_of(judge, identity) for identity in dict.fromkeys(identities) if identity}
    return {identity: row for identity, row in rows.items() if row.accepted_at is not None}


def _end_turn(taken: _Taken, comparison: Comparison, failure: EndpointError | None, admitted: Admitted) -> None:
    judge, campaign = taken.judge, comparison.chain.campaign
    if admitted.change is not None:
        frozen_judges.row_of(judge, admitted.change.now)
        taken.claim.end()
        _stop(campaign, judge, admitted.change.reason)
    elif failure is None or comparison.verdict:
        taken.claim.end()
    else:
        passes = isinstance(failure, TryLater)
        until = timezone.now() + timedelta(seconds=failure.retry_after) if passes else None
        taken.claim.end(until=until, reason=f"{judge.answered_by}: {failure.reason}"[:300])
    if comparison.verdict is None and failure is None:
        # People's votes may have come between; and a vote on its way keeps others from being asked.
        dispatch.judge(comparison)
    nudges.nudge(nudges.voters(campaign.pk), nudges.watchers(campaign.pk))


def _stop(campaign: Campaign, judge: Judge, reason: str) -> None:
    frozen_judges.stop(judge, f"{judge.answered_by}: {reason}")
    nudges.nudge(nudges.watchers(campaign.pk))


def _key(comparison: Comparison, judge: Judge, slot: int) -> uuid.UUID:
    return uuid.uuid5(_KEYS, f"{comparison.pk}/{judge.pk}/{slot}")
