"""The ways to ask a model for its answers on a comparison, and how they are stored.

    sampled              a vote is the label that the model replies with
    log-probabilities    a vote is drawn from the probability p that the server tells for each label, with a number that
                         a replay draws again
    ratings              the model rates one object alone, where the rule compares ratings

A vote has its slot, and with it its key and in which order the pair is shown. With log-probabilities a judge samples
its votes on a pair, in one order, when the server does not tell p there. Once it has sampled one it samples all of that
pair and order: nothing about the answers decides it.

An object is rated N times by each judge, once and for all: a chain carries the ratings of its state along, and of a
catalog's objects no chain asks for them again; while one chain's turn asks, another that meets the object waits for
what it brings. One object a turn, the current state's before the proposal's.

Nothing here holds a lock while a model is asked. To add a way: name it in `sampler.ModelSource`, and say here what it
asks and what it stores.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from django.db.models import Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import transitions
from prefmh_web.campaigns.engine.open_comparisons import Seen
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.model_judges import frozen_judges
from prefmh_web.campaigns.models import Comparison, Judge, Rating, ReplyIdentity, Side, State, Turn, Vote
from prefmh_web.campaigns.objects import exhibit, rows_of
from prefmh_web.endpoints import judge_calls
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Admitted, Identity

_KEYS = uuid.UUID("6c1c1d8e-6a52-4d5b-9f0e-6f8f7f3b6f10")

Rows = Mapping[Identity, ReplyIdentity]
"""Those identities whose replies count, with their rows."""


@dataclass(frozen=True)
class Asking:
    """Which of a frozen judge's answers on a comparison to ask for.

    `slots` are the places of the answers among the judge's N, and `has_stored` says whether there are answers in
    others; `state` is the object to rate, where objects are rated.
    """

    comparison: Comparison
    judge: Judge
    slots: Sequence[int]
    state: State | None = None
    has_stored: bool = False


@dataclass(frozen=True)
class Answers:
    """What came back: votes or ratings, each after what its reply said it was from, None where p was known before;
    why others are missing; of replies with log-probabilities, whether they were those of a distribution.
    """

    given: Sequence[tuple[Identity | None, Any]]
    failure: EndpointError | None
    sound: Sequence[bool] = ()


@dataclass(frozen=True)
class Ask:
    """What asks a model, on the loop on which servers are asked, and how many requests it begins with."""

    answers: Callable[[Admitted], Awaitable[Answers]]
    requests: int


def most_requests(config: sampler.ChainConfig, place: int, endpoint: Endpoint, answers: int) -> int:
    """Return how many requests so many answers take at most, every unreadable reply asked again included."""
    replies = judge_calls.MOST_ASKS * answers
    if not frozen_judges.tells_p(frozen_judges.model_source(config, place), config.rule):
        return replies
    # One for each order of the pair; and where p is not told, votes may be sampled.
    return min(answers, 2) + (replies if endpoint.samples_plainly else 0)


def wanted(comparison: Comparison, judge: Judge, seen: Seen) -> Asking | None:
    """Return what a judge still has to answer on a locked comparison, without slots if that is nothing; None where
    another turn brings it.
    """
    if started_campaign(comparison.chain.campaign).config.rule.evidence == "ratings":
        return _wanted_ratings(comparison, judge)
    stored = seen.slots.get((comparison.pk, judge.pk), set())
    left = [slot for slot in range(judge.max_votes) if slot not in stored]
    # As many as the comparison can use from this judge.
    opened = seen.opened.get(comparison.pk)
    room = opened.room(judge.pk, most=len(left)) if opened else 0
    return Asking(comparison, judge, left[:room], has_stored=bool(stored))


def asks(asking: Asking, endpoint: Endpoint) -> Ask:
    """Return what asks the endpoint: all that the database has to say is read before. Nothing is stored yet."""
    if asking.state is None:
        return _asks_for_votes(asking, endpoint)
    return _asks_for_ratings(asking, asking.state, endpoint)


def store(asking: Asking, comparison: Comparison, answers: Answers, rows: Rows, seen: Seen) -> None:
    """Store answers, on the locked comparison; those whose identity does not count are dropped."""
    counting = []
    for identity, given in answers.given:
        if identity is not None and identity in rows:
            given.identity = rows[identity]
        if identity is None or identity in rows:
            counting.append(given)
    if asking.state is None:
        transitions.cast_votes(comparison, counting, seen)
        return
    transitions.store_ratings(comparison, counting)
    if answers.failure is None:
        # The other open comparisons of the object wait for its ratings, too.
        at_it = Comparison.objects.filter(Q(current=asking.state) | Q(proposal=asking.state), verdict__isnull=True)
        for other in at_it.exclude(pk=comparison.pk).select_related("chain__campaign"):
            dispatch.judge(other)


def _asks_for_votes(asking: Asking, endpoint: Endpoint) -> Ask:
    """Return what asks for a vote in each slot, each in the order of presentation that was drawn for it."""
    started, place = started_campaign(asking.comparison.chain.campaign), asking.judge.place
    config, source = started.config, frozen_judges.model_source(started.config, place)
    # What random numbers of these votes are drawn for.
    step = started.seed, asking.comparison.chain.place, asking.comparison.step, started.budgets, place
    pair = _pair(asking, endpoint, source)
    drawn = sampler.presentations_of(*step, config.judges[place].order)
    order = [drawn[slot] for slot in asking.slots]
    known_from: dict[bool, ReplyIdentity | None] = {}
    # For the seeds of requests, which only keep replies apart: nobody can ask a server for the same reply again.
    rng, requests = np.random.default_rng(), len(order)
    voting = partial(judge_calls.votes_by_sampling, endpoint, pair, order, rng)
    if frozen_judges.tells_p(source, config.rule):
        numbers = sampler.draws_of(*step)
        told, sampled = _told_before(asking)
        known = {first: vote.preference for first, vote in told.items() if vote.preference is not None}
        known_from = {first: vote.identity for first, vote in told.items()}
        uniforms = [numbers[slot] for slot in asking.slots]
        requests = len(set(order) - set(known))
        voting = partial(
            judge_calls.votes_by_either, endpoint, pair, order, uniforms, rng, known=known, sampled=sampled
        )

    async def ask(admitted: Admitted) -> Answers:
        votes = await voting(admitted=admitted)
        given = [(vote.identity, _vote(asking, vote, known_from.get(vote.proposal_first))) for vote in votes.cast]
        return Answers(given, votes.failure, votes.sound)

    return Ask(ask, requests)


def _told_before(asking: Asking) -> tuple[dict[bool, Vote], set[bool]]:
    """Return, by whether the proposal stood first: a vote that tells p, and which orders have been sampled."""
    if not asking.has_stored:
        return {}, set()
    mine = asking.comparison.votes.filter(judge=asking.judge).select_related("identity")
    told = {vote.proposal_side == Side.FIRST: vote for vote in mine if vote.preference is not None}
    return told, {vote.proposal_side == Side.FIRST for vote in mine if vote.preference is None}


def _pair(asking: Asking, endpoint: Endpoint, source: sampler.ModelSource) -> judge_calls.Pair:
    """Return the question that a judge is asked."""
    campaign, comparison = asking.comparison.chain.campaign, asking.comparison
    rows = rows_of(campaign, {comparison.current_id, comparison.proposal_id})
    prompt = frozen_judges.frozen_prompt(asking.judge)
    return judge_calls.Pair(
        kind=started_campaign(campaign).object_kind.name,
        criterion=asking.judge.question,
        current=exhibit(rows[comparison.current_id], endpoint, prompt, source.vision),
        proposal=exhibit(rows[comparison.proposal_id], endpoint, prompt, source.vision),
        temperature=source.temperature,
        prompt=prompt,
        keeps_reasons=source.reasons,
    )


def _vote(asking: Asking, vote: judge_calls.ModelVote, known_from: ReplyIdentity | None) -> Vote:
    """Return a vote as it is to be stored.

    Args:
        known_from: the identity of the earlier reply that p is known from, if it is.
    """
    slot, first = asking.slots[vote.place], Side.FIRST
    return Vote(
        key=uuid.uuid5(_KEYS, f"{asking.comparison.pk}/{asking.judge.pk}/{slot}"),
        judge_id=asking.judge.pk,
        proposal_side=first if vote.proposal_first else first.other,
        chosen_side=first if vote.for_proposal == vote.proposal_first else first.other,
        elapsed_ms=None if vote.seconds is None else round(1000 * vote.seconds),
        slot=slot,
        preference=vote.preference,
        asks=vote.asks,
        identity=known_from,
        reason=vote.reason[: Vote.LONGEST_REASON + 1],
    )


def _wanted_ratings(comparison: Comparison, judge: Judge) -> Asking | None:
    """Return the object to rate next and its empty slots; None while another chain's turn asks for its ratings.

    Where nothing is missing, another chain at the same objects may have brought the last rating.
    """
    for state in (comparison.current, comparison.proposal):
        if not _slots_left(state, judge):
            continue
        if _is_being_rated(state, judge):
            # Its ratings serve this chain too; whoever stores them gives the hint.
            return None
        # Looked at again: a turn that was over before we looked for it has brought its ratings meanwhile.
        if left := _slots_left(state, judge):
            return Asking(comparison, judge, left, state)
    transitions.store_ratings(comparison, ())
    return Asking(comparison, judge, ())


def _slots_left(state: State, judge: Judge) -> list[int]:
    stored = set(Rating.objects.filter(state=state, judge=judge).values_list("slot", flat=True))
    return [slot for slot in range(judge.max_votes) if slot not in stored]


def _is_being_rated(state: State, judge: Judge) -> bool:
    """Say whether another chain's turn asks for this object's ratings now."""
    # Locked, so that of two chains that come to an object at once, the second sees the first one's turn.
    State.objects.select_for_update(no_key=True).only("pk").get(pk=state.pk)
    return Turn.objects.filter(judge=judge, state=state, asked__gt=0, until__gt=timezone.now()).exists()


def _asks_for_ratings(asking: Asking, state: State, endpoint: Endpoint) -> Ask:
    """Return what asks for ratings of an object; fewer may come, and the others are asked for another time."""
    judge, campaign = asking.judge, asking.comparison.chain.campaign
    config = started_campaign(campaign).config
    source = frozen_judges.model_source(config, judge.place)
    if not isinstance(config.rule, sampler.PointwiseConfig):
        raise TypeError(f"rule {config.rule.kind} takes no ratings")
    prompt = frozen_judges.frozen_prompt(judge)
    rated = judge_calls.Rated(
        kind=campaign.object_kind.name,
        criterion=judge.question,
        exhibit=exhibit(state, endpoint, prompt, source.vision),
        scale=config.rule.scale,
        temperature=source.temperature,
        prompt=prompt,
    )

    async def ask(admitted: Admitted) -> Answers:
        asked = await judge_calls.ratings(endpoint, rated, len(asking.slots), np.random.default_rng(), admitted)
        answers = zip(asking.slots, asked.given, asked.asks, asked.identities, strict=False)
        given = [
            (identity, Rating(state=state, judge=judge, slot=slot, value=value, asks=asks))
            for slot, value, asks, identity in answers
        ]
        return Answers(given, asked.failure)

    return Ask(ask, len(asking.slots))
