"""What a model judge is, the ways to ask it for its answers on a comparison, and how they are stored.

prompt_as_of_now, question_of    in which words, and with which parameters, this version of the program asks
frozen_as                        all of that as plain data, stored at the start and exported as judges.json
drift                            why a judge cannot be asked as it was frozen any more
asked_endpoint                   the endpoint with what its test saw then; keys, prices and limits are those of now
row_of                           which model a reply said it is from, as a row that votes and ratings name
stop                             ask a judge no more, until somebody has seen to it
wanted, asks, store              what a judge still has to answer on a comparison, what asks for it, what came of it

The ways to ask:

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
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import sql, transitions
from prefmh_web.campaigns.engine.open_comparisons import ComparisonSnapshot
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Comparison, Judge, Rating, ReplyIdentity, Side, State, Turn, Vote
from prefmh_web.campaigns.objects import shown_object
from prefmh_web.endpoints import judge_calls, truth
from prefmh_web.endpoints.judge_calls import Answers, ModelAnswer
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Identity
from prefmh_web.endpoints.servers import CHAT, ChatRequest, ComparedPair, Dialect
from sampler import judges as model_judges

UNVERIFIED = "distribution of the sampler not verified"
UNTESTED = "log-probabilities not tested against replies"

# An endpoint's fields that decide what its replies are. Its key, prices, limits and waiting times do not.
_WHERE = ("base_url", "model", "dialect")
_PROFILE = ("can_vary", "can_constrain", "can_log_probabilities", "can_images", "samples_untruncated", "context_tokens")


def model_source(config: sampler.ChainConfig, index: int) -> sampler.ModelSource:
    """Return who answers one of a config's judges.

    Raises:
        TypeError: it is not a model.
    """
    return _model(config.judges[index])


def _model(judge: sampler.JudgeConfig) -> sampler.ModelSource:
    if not isinstance(judge.source, sampler.ModelSource):
        raise TypeError(f"the judge of “{judge.question}” is not a model")
    return judge.source


def uses_log_probabilities(source: sampler.ModelSource, rule: sampler.RuleConfig) -> bool:
    """Say whether votes are drawn from the probability that the server tells for each label."""
    return source.votes == "log-probabilities" and rule.evidence != "ratings"


def prompt_as_of_now(campaign: Campaign, index: int) -> model_judges.Prompt:
    """Return the words in which a judge of a campaign's config is asked, as `prompt_of` does."""
    config = campaign.config
    kind = campaign.object_kind.name
    return prompt_of(config.judges[index], config.rule, kind, has_context=bool(config.context))


def prompt_of(
    judge: sampler.JudgeConfig, rule: sampler.RuleConfig, kind: str, *, has_context: bool
) -> model_judges.Prompt:
    """Return the words in which a model is asked: its researcher's, or those of this version of the program.

    Args:
        kind: of the objects.
        has_context: whether columns of a list are shown with them.
    """
    source = _model(judge)
    scale = rule.scale if isinstance(rule, sampler.PointwiseConfig) else None
    if source.prompt:
        numbers = (scale.lowest, scale.highest) if scale else None
        return model_judges.Prompt(source.prompt, " ".join(judge.question.split()), 1 if scale else 2, numbers)
    is_drawn = source.vision is not None and source.vision.molecules == "picture"
    shown = {"has_context": has_context, "is_drawn": is_drawn}
    if scale is None:
        return model_judges.pairwise_prompt(kind, judge.question, **shown)
    return model_judges.rating_prompt(kind, judge.question, scale, **shown)


def question_of(
    source: sampler.ModelSource,
    rule: sampler.RuleConfig,
    endpoint: Endpoint,
    messages: Sequence[dict[str, Any]] = (),
    *,
    seed: int = 0,
    compared: ComparedPair | None = None,
) -> ChatRequest:
    """Return one request of a judge.

    Args:
        compared: the pair that the messages show, for a program; None where an object is rated.
    """
    if uses_log_probabilities(source, rule):
        return ChatRequest(endpoint.model, messages, log_probabilities=True, compared=compared)
    choices = rule.scale.answers if isinstance(rule, sampler.PointwiseConfig) else model_judges.LABELS
    asked = judge_calls.question_for(endpoint, source.temperature, choices)
    return replace(asked, messages=messages, seed=seed, compared=compared)


def frozen_as(campaign: Campaign, index: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return what a campaign's judge is, as plain data.

    Args:
        index: which judge of the config.
        endpoint: as it is now.
    """
    source, prompt = model_source(campaign.config, index), prompt_as_of_now(campaign, index)
    profile = {name: getattr(endpoint, name) for name in _PROFILE}
    # By what *Test* saw, whichever version of the program has stored it.
    profile["samples_untruncated"], profile["sampling"] = truth.untruncated(endpoint)
    found = {
        "frozen_at": timezone.now().isoformat(timespec="seconds"),
        "endpoint": endpoint.name,
        **{name: str(getattr(endpoint, name)) for name in _WHERE},
        "profile": profile,
        **_request(campaign.config, index, endpoint),
        "negotiated": endpoint.profile or None,
        "distribution": _doubt(source, endpoint) or None,
        "max_attempts": judge_calls.MAX_ATTEMPTS,
        "thinking_tokens": endpoint.thinking_tokens,
        "vision": source.vision and source.vision.model_dump(mode="json"),
        "prompt": prompt.stored(),
        "prompt_version": source.prompt and source.prompt.version,
    }
    first_token = ChatRequest(endpoint.model, log_probabilities=True)
    server = Dialect(endpoint.dialect).server
    by_p = server.settled(first_token) if source.votes == "log-probabilities" else None
    return {name: value for name, value in found.items() if value is not None} | {"first_token_request": by_p}


def drift(campaign: Campaign, judge: Judge, now: Endpoint) -> str:
    """Return why a frozen judge of a started campaign cannot be asked as it was frozen; empty if it can.

    Args:
        now: the row of its endpoint as it is now.
    """
    frozen = _frozen(judge)
    for name, words in (("base_url", "address"), ("model", "model"), ("dialect", "kind of server")):
        if getattr(now, name) != frozen[name]:
            return (
                f"the endpoint “{now.name}” has another {words} now, {getattr(now, name)}; the campaign was started "
                f"with {frozen[name]}. Put that back, then ask again"
            )
    if why := truth.differs(now):
        return why
    request = _request(started_campaign(campaign).config, judge.index, asked_endpoint(judge, now))
    if any(request.get(name) != frozen.get(name) for name in ("request", "path")):
        return (
            "this version of the program would send other sampling parameters than those that the campaign was "
            "started with. Go on with the version that started it"
        )
    return ""


def asked_endpoint(judge: Judge, now: Endpoint) -> Endpoint:
    """Return the endpoint of a frozen judge as it was frozen. Not to be saved.

    Args:
        now: its row as it is now, with the address, the model and the kind of then (`drift`).
    """
    endpoint, frozen = copy(now), _frozen(judge)
    for name in _PROFILE:
        setattr(endpoint, name, frozen["profile"].get(name))
    endpoint.sampling_evidence = frozen["profile"].get("sampling", "")
    endpoint.thinking_tokens = frozen.get("thinking_tokens")
    return endpoint


def frozen_prompt(judge: Judge) -> model_judges.Prompt:
    """Return the words in which a frozen judge is asked.

    Raises:
        ValueError: it is not frozen.
    """
    return model_judges.stored_prompt(_frozen(judge)["prompt"])


def using(endpoint: Endpoint, name: str) -> list[Campaign]:
    """Return the campaigns that have started, are not finished, and ask an endpoint; and those that have it write, when
    they are finished, too: extended, they would go on with what it is by then, and nothing of it is frozen.

    Args:
        name: the endpoint's, by which a config names its writer.
    """
    started = (Campaign.Status.RUNNING, Campaign.Status.PAUSED)
    asks = Q(judges__endpoint=endpoint, status__in=started)
    writes = Q(owner=endpoint.owner_id, config_data__space__kind="model-texts", config_data__space__model=name)
    writes &= Q(status__in=(*started, Campaign.Status.FINISHED))
    return list(Campaign.objects.filter(asks | writes).distinct())


def accepted_rows(judge: Judge) -> dict[Identity, ReplyIdentity]:
    """Return whose replies count, with their rows; empty while no reply has come, and the first decides."""
    accepted = map(sql.OF_IDENTITY.read, sql.IDENTITIES.rows(judge.pk))
    return {Identity(row.model, row.system_fingerprint): row for row in accepted}


def row_of(judge: Judge, identity: Identity) -> ReplyIdentity:
    """Return the row of an identity, made if it is new; accepted if the judge has no other."""
    found = judge.identities.filter(**vars(identity)).first()
    if found is not None:
        return found
    with transaction.atomic():
        # Locked: of two first replies at once, one decides.
        Judge.objects.select_for_update(no_key=True).get(pk=judge.pk)
        is_first = not judge.identities.filter(accepted_at__isnull=False).exists()
        return store_identity(judge, identity, timezone.now() if is_first else None)


def stop(judge: Judge, reason: str) -> None:
    """Ask a judge no more, until somebody has seen to it; the page and `doctor` show the reason."""
    Judge.objects.filter(pk=judge.pk).update(stopped_because=f"{judge.answered_by}: {reason}"[:500])


def _frozen(judge: Judge) -> dict[str, Any]:
    if judge.frozen is None:
        raise ValueError(f"judge {judge.pk} is not frozen")
    frozen: dict[str, Any] = judge.frozen
    return frozen


def _doubt(source: sampler.ModelSource, endpoint: Endpoint) -> str:
    """Return what is not known of the distribution of a judge's votes; empty where *Test* has seen it."""
    if source.votes == "sampled":
        return UNVERIFIED if truth.why_untestable(endpoint) else ""
    return "" if truth.was_tested(endpoint) else UNTESTED


def _request(config: sampler.ChainConfig, index: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return the body of a request for one reply, without its messages and its seed; and what the bodies of some
    servers do not hold at their top: where a request goes, and its temperature.
    """
    source = model_source(config, index)
    server = Dialect(endpoint.dialect).server
    # Where the server does not tell p, votes may be sampled.
    sampled = source.model_copy(update={"votes": "sampled"})
    request = server.settled(question_of(sampled, config.rule, endpoint))
    path = server.path(endpoint.model)
    found: dict[str, Any] = {"request": request} | ({} if path == CHAT else {"path": path})
    return found if "temperature" in request else found | {"temperature": source.temperature}


def store_identity(judge: Judge, identity: Identity, accepted_at: datetime | None) -> ReplyIdentity:
    """Return the row of an identity, made if it is new: as accepted since this moment, or not."""
    row, _ = ReplyIdentity.objects.get_or_create(judge=judge, **vars(identity), defaults={"accepted_at": accepted_at})
    return row


_KEYS = uuid.UUID("6c1c1d8e-6a52-4d5b-9f0e-6f8f7f3b6f10")

Rows = Mapping[Identity, ReplyIdentity]
"""Those identities whose replies count, with their rows."""


@dataclass(frozen=True)
class MissingAnswers:
    """Which of a frozen judge's answers on a comparison to ask for.

    `slots` are the indices of the answers among the judge's N, and `has_stored` says whether there are answers in
    others; `state` is the object to rate, where objects are rated.
    """

    comparison: Comparison
    judge: Judge
    slots: Sequence[int]
    state: State | None = None
    has_stored: bool = False


@dataclass(frozen=True)
class AnswerRequest:
    """How a model is asked.

    Args:
        answers: asks it, on the loop on which servers are asked, given `admitted`.
        requests: how many it begins with.
        known_from: by presentation, the identity of the earlier reply that p is known from, if it is.
    """

    answers: Callable[..., Awaitable[Answers]]
    requests: int
    known_from: Mapping[bool, ReplyIdentity | None] = field(default_factory=dict)


def max_requests(config: sampler.ChainConfig, index: int, endpoint: Endpoint, answers: int) -> int:
    """Return how many requests so many answers take at most, every unreadable reply asked again included.

    Args:
        endpoint: as it was frozen, once the campaign has started: by that it is asked.
    """
    replies = judge_calls.MAX_ATTEMPTS * answers
    if not uses_log_probabilities(model_source(config, index), config.rule):
        return replies
    # For each order of the pair; and where p is not told, votes may be sampled.
    return len(judge_calls.FIRST_TOKEN_SEEDS) * min(answers, 2) + (replies if endpoint.samples_untruncated else 0)


def wanted(comparison: Comparison, judge: Judge, seen: ComparisonSnapshot) -> MissingAnswers | None:
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
    return MissingAnswers(comparison, judge, left[:room], has_stored=bool(stored))


def asks(asking: MissingAnswers, endpoint: Endpoint, rows: Mapping[int, State]) -> AnswerRequest:
    """Return what asks the endpoint: all that the database has to say is read before. Nothing is stored yet.

    Args:
        rows: the objects of the comparison, and perhaps others, by their keys.
    """
    if asking.state is None:
        return _asks_for_votes(asking, endpoint, rows)
    return _asks_for_ratings(asking, asking.state, endpoint)


def store(
    asking: MissingAnswers,
    ask: AnswerRequest,
    comparison: Comparison,
    answers: Answers,
    identities: Rows,
    seen: ComparisonSnapshot,
) -> None:
    """Store answers, on the locked comparison; those whose identity does not count are dropped."""
    # Where p was known before, the identity is that of the reply that told it.
    rows = [
        _row(asking, given, identities[given.identity] if given.identity else ask.known_from.get(given.proposal_first))
        for given in answers.given
        if given.identity is None or given.identity in identities
    ]
    if asking.state is None:
        transitions.cast_votes(comparison, rows, seen)
        return
    transitions.store_ratings(comparison, rows)
    if answers.failure is None:
        # The other open comparisons of the object wait for its ratings, too.
        at_it = Comparison.objects.filter(Q(current=asking.state) | Q(proposal=asking.state), verdict__isnull=True)
        for other in at_it.exclude(pk=comparison.pk).select_related("chain__campaign"):
            dispatch.judge(other)


def _row(asking: MissingAnswers, given: ModelAnswer, identity: ReplyIdentity | None) -> Any:
    """Return a vote or a rating as it is to be stored."""
    judge, slot, first = asking.judge, asking.slots[given.index], Side.FIRST
    if asking.state is not None:
        stored = {"slot": slot, "value": given.value, "attempts": given.attempts, "identity": identity}
        return Rating(state=asking.state, judge=judge, **stored)
    return Vote(
        key=uuid.uuid5(_KEYS, f"{asking.comparison.pk}/{judge.pk}/{slot}"),
        judge_id=judge.pk,
        proposal_side=first if given.proposal_first else first.other,
        chosen_side=first if given.value == given.proposal_first else first.other,
        elapsed_ms=None if given.seconds is None else round(1000 * given.seconds),
        slot=slot,
        preference=given.preference,
        attempts=given.attempts,
        identity=identity,
        reason=given.reason[: Vote.LONGEST_REASON + 1],
    )


def _asks_for_votes(asking: MissingAnswers, endpoint: Endpoint, rows: Mapping[int, State]) -> AnswerRequest:
    """Return what asks for a vote in each slot, each in the order of presentation that was drawn for it."""
    started, index = started_campaign(asking.comparison.chain.campaign), asking.judge.index
    config, source = started.config, model_source(started.config, index)
    # What random numbers of these votes are drawn for.
    step = started.seed, asking.comparison.chain.index, asking.comparison.step, started.max_votes, index
    drawn = sampler.presentations_of(*step, config.judges[index].order)
    order = [drawn[slot] for slot in asking.slots]
    voting = partial(
        judge_calls.votes,
        endpoint,
        _pair(asking, endpoint, source, rows),
        order,
        # For the seeds of requests, which only keep replies apart: nobody can ask a server for the same reply again.
        np.random.default_rng(),
    )
    if not uses_log_probabilities(source, config.rule):
        return AnswerRequest(voting, len(order))
    numbers = sampler.draws_of(*step)
    told, sampled = _told_before(asking)
    known = {first: vote.preference for first, vote in told.items() if vote.preference is not None}
    voting = partial(voting, [numbers[slot] for slot in asking.slots], known=known, sampled=sampled)
    return AnswerRequest(voting, len(set(order) - set(known)), {first: vote.identity for first, vote in told.items()})


def _told_before(asking: MissingAnswers) -> tuple[dict[bool, Vote], set[bool]]:
    """Return, by whether the proposal stood first: a vote that tells p, and which orders have been sampled."""
    if not asking.has_stored:
        return {}, set()
    mine = asking.comparison.votes.filter(judge=asking.judge).select_related("identity")
    told = {vote.proposal_side == Side.FIRST: vote for vote in mine if vote.preference is not None}
    return told, {vote.proposal_side == Side.FIRST for vote in mine if vote.preference is None}


def _pair(
    asking: MissingAnswers, endpoint: Endpoint, source: sampler.ModelSource, rows: Mapping[int, State]
) -> judge_calls.Pair:
    """Return the question that a judge is asked."""
    comparison, prompt = asking.comparison, frozen_prompt(asking.judge)
    return judge_calls.Pair(
        prompt=prompt,
        criterion=asking.judge.question,
        current=shown_object(rows[comparison.current_id], endpoint, prompt, source.vision),
        proposal=shown_object(rows[comparison.proposal_id], endpoint, prompt, source.vision),
        temperature=source.temperature,
        keeps_reasons=source.reasons,
    )


def _wanted_ratings(comparison: Comparison, judge: Judge) -> MissingAnswers | None:
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
            return MissingAnswers(comparison, judge, left, state)
    transitions.store_ratings(comparison, ())
    return MissingAnswers(comparison, judge, ())


def _slots_left(state: State, judge: Judge) -> list[int]:
    stored = set(Rating.objects.filter(state=state, judge=judge).values_list("slot", flat=True))
    return [slot for slot in range(judge.max_votes) if slot not in stored]


def _is_being_rated(state: State, judge: Judge) -> bool:
    """Say whether another chain's turn asks for this object's ratings now."""
    # Locked, so that of two chains that come to an object at once, the second sees the first one's turn.
    State.objects.select_for_update(no_key=True).only("pk").get(pk=state.pk)
    return Turn.objects.filter(judge=judge, state=state, asked__gt=0, until__gt=timezone.now()).exists()


def _asks_for_ratings(asking: MissingAnswers, state: State, endpoint: Endpoint) -> AnswerRequest:
    """Return what asks for ratings of an object; fewer may come, and the others are asked for another time."""
    judge, config = asking.judge, started_campaign(asking.comparison.chain.campaign).config
    source, prompt = model_source(config, judge.index), frozen_prompt(judge)
    if not isinstance(config.rule, sampler.PointwiseConfig):
        raise TypeError(f"rule {config.rule.kind} takes no ratings")
    shown = shown_object(state, endpoint, prompt, source.vision)
    rated = judge_calls.RatingRequest(prompt, shown, config.rule.scale, source.temperature)

    count = len(asking.slots)
    return AnswerRequest(partial(judge_calls.ratings, endpoint, rated, count, np.random.default_rng()), count)
