"""A model's turn on a comparison: from the question to its votes or ratings, through the same door as people's.

    take_turn    claim as many votes as can be used, ask the endpoint with no lock held, cast what came back
    waiting      the turns that nobody takes: a crash, an endpoint that was down, a message that was lost
    try_again    somebody has seen to what parked a turn

A model has N_i votes on a comparison, each in its slot, and with the slot go its key, its presentation and the number
it is drawn with, if it is: a vote that is asked for twice is stored once. A `Turn` stands while votes are on their
way, so that nobody else is asked for more than the comparison can use. Where the rule rates, a turn is about the
ratings of one object (`rating.py`), and all else is the same.
"""

import uuid
from collections.abc import Iterator
from datetime import timedelta

import numpy as np
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, prefetch_related_objects
from django.utils import timezone

import sampler
from prefmh_web.campaigns import hints, live, loop, plans, rating, recipes, room
from prefmh_web.campaigns.exhibits import exhibit
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Side, State, Turn
from prefmh_web.endpoints import judging as asking
from prefmh_web.endpoints.errors import EndpointError, TryLater

_KEYS = uuid.UUID("6c1c1d8e-6a52-4d5b-9f0e-6f8f7f3b6f10")
# A turn that has not come back after the endpoint's time for a request, and this, was lost in a crash.
_GRACE = timedelta(seconds=30)


def take_turn(comparison_id: int, judge_id: int) -> None:
    """Ask a model for what it still has to say on a comparison. Run twice at once, the second does nothing."""
    claimed = _claim(comparison_id, judge_id)
    if claimed is None:
        return
    comparison, judge, state, slots = claimed
    # Judges are kept in memory as the campaign started with them; where their endpoint is and how it fares changes.
    judge.endpoint.refresh_from_db()
    if state is None:
        _cast(comparison, judge, slots, _ask(comparison, judge, slots))
    else:
        _rate(comparison, judge, state, slots)


def waiting() -> Iterator[tuple[int, int]]:
    """Yield the comparison and the judge of every turn that is to be taken and that nobody is taking."""
    models = Judge.objects.filter(endpoint__isnull=False, campaign__status=Campaign.Status.RUNNING)
    for judge in models:
        not_now = Turn.objects.filter(comparison=OuterRef("pk"), judge=judge).filter(
            Q(until__gt=timezone.now()) | Q(asked=0, until__isnull=True)
        )
        mine = Count("votes", filter=Q(votes__judge=judge))
        open_ones = Comparison.objects.filter(~Exists(not_now), chain__campaign=judge.campaign_id, verdict__isnull=True)
        for comparison_id in open_ones.annotate(mine=mine).filter(mine__lt=judge.budget).values_list("pk", flat=True):
            yield comparison_id, judge.pk


def try_again(campaign: Campaign) -> int:
    """Take up the parked turns of a campaign; return how many there were."""
    parked = Turn.objects.filter(comparison__chain__campaign=campaign, asked=0, until__isnull=True)
    turns = list(parked.select_related("comparison__chain__campaign"))
    with transaction.atomic():
        parked.delete()
        for turn in turns:
            hints.judge(turn.comparison)
    return len(turns)


def _claim(comparison_id: int, judge_id: int) -> tuple[Comparison, Judge, State | None, list[int]] | None:
    """Return what to ask, with a turn that says so; None if there is nothing to ask now.

    The state is the object to rate, None where votes are cast.
    """
    with loop.locked(pk=comparison_id) as comparison:
        campaign = comparison.chain.campaign
        prefetch_related_objects([comparison], "votes", "leases", "turns")
        judge = next((judge for judge in plans.judges_of(campaign) if judge.pk == judge_id and judge.is_model), None)
        mine = next((turn for turn in comparison.turns.all() if turn.judge_id == judge_id), None)
        is_taken = mine is not None and (mine.is_parked or mine.until > timezone.now())
        if judge is None or comparison.verdict or not campaign.is_running or is_taken:
            return None
        state, slots = _wanted(comparison, judge)
        if not slots:
            if campaign.is_rated:
                # Another chain at the same objects may have brought the last rating.
                loop.store_ratings(comparison, ())
            Turn.objects.filter(comparison=comparison, judge=judge).delete()
            return None
        until = timezone.now() + timedelta(seconds=judge.endpoint.timeout_s * asking.MOST_ASKS) + _GRACE
        Turn.objects.update_or_create(
            comparison=comparison, judge=judge, defaults={"asked": len(slots), "until": until, "reason": ""}
        )
        live.nudge(live.watchers(campaign.pk))
    return comparison, judge, state, slots


def _wanted(comparison: Comparison, judge: Judge) -> tuple[State | None, list[int]]:
    if comparison.chain.campaign.is_rated:
        return rating.missing(comparison, judge) or (None, [])
    stored = {vote.slot for vote in comparison.votes.all() if vote.judge_id == judge.pk}
    left = [slot for slot in range(judge.budget) if slot not in stored]
    return None, left[: room.room(comparison, judge, most=len(left))]


def _ask(comparison: Comparison, judge: Judge, slots: list[int]) -> asking.Votes:
    campaign, chain = comparison.chain.campaign, comparison.chain.place
    source = recipes.recipe_of(campaign).judges[judge.place].source
    step = (campaign.recipe["seed"], chain, comparison.step, plans.budgets_of(campaign), judge.place)
    presentations = sampler.presentations_of(*step, judge.order)
    pair = asking.Pair(
        kind=campaign.objects_kind,
        criterion=judge.question,
        current=exhibit(comparison.current, judge.endpoint),
        proposal=exhibit(comparison.proposal, judge.endpoint),
        temperature=source.temperature,
    )
    proposal_first = [presentations[slot] for slot in slots]
    if source.votes == "log-probabilities":
        numbers = sampler.draws_of(*step)
        return asking.votes_by_log_probabilities(
            judge.endpoint, pair, proposal_first, [numbers[slot] for slot in slots], _known(comparison, judge)
        )
    # Nobody can ask a server for the same reply again: these seeds only keep replies apart.
    return asking.votes_by_sampling(judge.endpoint, pair, proposal_first, np.random.default_rng())


def _known(comparison: Comparison, judge: Judge) -> dict[bool, float]:
    """Return what the judge's votes so far were drawn from, by whether the proposal stood first."""
    return {
        vote.proposal_side == Side.LEFT: vote.preference
        for vote in comparison.votes.all()
        if vote.judge_id == judge.pk and vote.preference is not None
    }


def _cast(comparison: Comparison, judge: Judge, slots: list[int], asked: asking.Votes) -> None:
    with loop.locked(pk=comparison.pk) as comparison:
        for vote in asked.cast:
            first, chosen = Side.LEFT, Side.LEFT if vote.for_proposal == vote.proposal_first else Side.RIGHT
            loop.cast_vote(
                comparison,
                key=_key(comparison, judge, slots[vote.place]),
                judge=judge,
                proposal_side=first if vote.proposal_first else first.other,
                chosen_side=chosen,
                elapsed_ms=None if vote.seconds is None else round(1000 * vote.seconds),
                slot=slots[vote.place],
                preference=vote.preference,
                asks=vote.asks,
            )
        _end_turn(comparison, judge, asked.failure)


def _rate(comparison: Comparison, judge: Judge, state: State, slots: list[int]) -> None:
    given, failure = rating.ask(comparison, judge, state, slots)
    with loop.locked(pk=comparison.pk) as comparison:
        loop.store_ratings(comparison, given)
        _end_turn(comparison, judge, failure)


def _end_turn(comparison: Comparison, judge: Judge, failure: EndpointError | None) -> None:
    turns = Turn.objects.filter(comparison=comparison, judge=judge)
    if failure is None or comparison.verdict:
        turns.delete()
    else:
        passes = isinstance(failure, TryLater)
        until = timezone.now() + timedelta(seconds=failure.retry_after) if passes else None
        turns.update(asked=0, until=until, reason=f"{judge.endpoint.name}: {failure.reason}"[:300])
    if comparison.verdict is None and failure is None:
        # People's votes may have come between; and a vote on its way keeps others from being asked.
        hints.judge(comparison)
    live.nudge(live.voters(comparison.chain.campaign_id), live.watchers(comparison.chain.campaign_id))


def _key(comparison: Comparison, judge: Judge, slot: int) -> uuid.UUID:
    return uuid.uuid5(_KEYS, f"{comparison.pk}/{judge.pk}/{slot}")
