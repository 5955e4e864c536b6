"""Votes and ratings of model judges, and detectors: what a campaign's task and an evaluation call.

    votes       sampled, one request a vote, each with its own seed; or drawn from p with the caller's numbers, one
                request for each presentation, and sampled where the server does not tell p
    ratings     one request a rating
    detection   one request, at temperature 0: is something there

Nothing is raised for what a server or a model does. What was cast is returned and may be stored, also when the rest
failed: each vote's presentation was drawn before, and votes under one presentation are independent, so the missing
ones may be asked another time. `failure` says what to do about them (`errors.py`): a `TryLater` after `retry_after`
seconds, a `NeedsAttention` when somebody has seen to it.

An unparsable reply is asked again, with another seed and under the same presentation, up to `MAX_ATTEMPTS` times in
all. That makes a vote one given that the reply is a label; `ModelAnswer.attempts` counts, for the page that shows it.

Whoever asks may say whose replies count (`replies.Admitted`). A reply of another model is dropped before it is read,
so whether it counts cannot depend on its answer, and nothing more is asked.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

import numpy as np

from prefmh_web.endpoints.calls import CallResults, Job, call
from prefmh_web.endpoints.client import LABEL_TOKENS, Client
from prefmh_web.endpoints.errors import EndpointError, NoDistribution, NotReported, Unable, Unparsable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Admitted, Identity
from prefmh_web.endpoints.servers import ChatRequest, ComparedPair, Dialect
from sampler import judges

MAX_ATTEMPTS = 3
UNREPORTED = (NotReported, NoDistribution)
"""Why p is not known where a vote may be sampled all the same."""
_LARGEST_SEED = 2**31
FIRST_TOKEN_SEEDS = (0, 104_729)
"""For one reply, and for another where its log-probabilities are no distribution."""

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Pair:
    """One judge's question about one comparison.

    Args:
        prompt: the words around the objects.
        criterion: the judge's one question, for a program, which is sent no other words.
        current, proposal: x and x'.
        temperature: of the votes.
        keeps_reasons: whether sampled votes come with what the model thought.
    """

    prompt: judges.Prompt
    criterion: str
    current: judges.ShownObject
    proposal: judges.ShownObject
    temperature: float = 1.0
    keeps_reasons: bool = False

    def messages(self, proposal_first: bool) -> judges.Messages:
        """Return what the judge is shown under one presentation."""
        return self.prompt.messages(*judges.in_order(self.current, self.proposal, proposal_first))

    def compared(self, proposal_first: bool) -> ComparedPair:
        """Return the same for a program."""
        return compared(self.criterion, *judges.in_order(self.current, self.proposal, proposal_first))


def compared(criterion: str, first: judges.ShownObject, second: judges.ShownObject) -> ComparedPair:
    """Return a pair as a program is shown it: without words around it."""

    def told(shown: judges.ShownObject) -> str:
        return str(judges.picture_part(shown.picture)["image_url"]["url"]) if shown.picture else shown.text

    return ComparedPair(criterion, told(first), told(second))


@dataclass(frozen=True)
class RatingRequest:
    """One judge's question about one object; several criteria in one question make the rating a joint one."""

    prompt: judges.Prompt
    shown: judges.ShownObject
    scale: judges.RatingScale
    temperature: float = 1.0


@dataclass(frozen=True)
class ModelAnswer:
    """One vote, or one rating.

    Args:
        index: its index among those asked for.
        value: of a vote 1 where it is for the proposal, else 0; of a rating its number.
        attempts: how many replies it took; 1 unless some were unparsable; 0 if it was drawn from p.
        proposal_first: a vote's presentation, as it was asked for.
        preference: the probability p of a vote for the proposal that it was drawn from; None if it was sampled.
        identity: what the reply said it is from; None if p was known before.
        seconds: from the first ask to the answer; None if it was drawn from p.
        reason: what the model thought, where the server says it and it is kept; never read as the answer.
    """

    index: int
    value: int
    attempts: int
    proposal_first: bool = False
    preference: float | None = None
    identity: Identity | None = field(default=None, compare=False)
    seconds: float | None = field(default=None, compare=False)
    reason: str = field(default="", compare=False)


@dataclass(frozen=True)
class Answers:
    """What came of asking for some votes or ratings.

    Args:
        given: those that there are, by index.
        failure: why the others are missing; None if none is.
        sound: of each reply with log-probabilities, whether they were those of a distribution.
    """

    given: tuple[ModelAnswer, ...]
    failure: EndpointError | None
    sound: tuple[bool, ...] = ()


async def votes(
    endpoint: Endpoint,
    pair: Pair,
    proposal_first: Sequence[bool],
    rng: np.random.Generator,
    uniforms: Sequence[float] | None = None,
    *,
    known: Mapping[bool, float] | None = None,
    sampled: Collection[bool] = (),
    admitted: Admitted | None = None,
) -> Answers:
    """Ask for one vote under each of these presentations; each an independent sample.

    With `uniforms`, p is asked for once under each presentation that occurs, and the votes are drawn from it. They have
    the distribution of sampled votes (`sampler.judges.replies` says under which assumptions). A server tells the
    log-probabilities of its twenty likeliest tokens; where a label is not among them, p is not known, but the model can
    still be asked for its vote. Which way is taken is settled before any vote under the presentation is drawn, by the
    log-probabilities alone, so it cannot depend on an answer.

    Args:
        endpoint: votes are sampled in place of p where *Test* has seen that it does not truncate.
        proposal_first: one entry a vote: whether it shows the proposal as A; see `sampler.judges.presentation`.
        rng: draws the seeds. Not one whose numbers an earlier call had: the same seed gives the same reply.
        uniforms: on [0, 1), one a vote, each vote's own: the same numbers would give the same votes.
        known: the probability of a vote for the proposal that an earlier call found for this very pair, by
            presentation; not asked again.
        sampled: presentations of this pair that votes have been sampled under before: p is not asked for again.
        admitted: whose replies count; anybody's if None.
    """
    order = {index: bool(first) for index, first in enumerate(proposal_first)}
    if uniforms is None:
        return await _sampled(endpoint, pair, order, rng, admitted)
    left_out = sampled if endpoint.samples_untruncated else ()
    to_draw = {index: first for index, first in order.items() if first not in left_out}
    drawn = await _drawn(endpoint, pair, to_draw, uniforms, known or {}, admitted)
    if isinstance(drawn.failure, UNREPORTED) and not endpoint.samples_untruncated:
        why = endpoint.sampling_evidence or "whether it truncates is not tested"
        return replace(
            drawn, failure=NotReported(f"{drawn.failure.reason}; and a vote cannot be sampled instead: {why}")
        )
    rest = order.keys() - {given.index for given in drawn.given}
    if not rest or (drawn.failure is not None and not isinstance(drawn.failure, UNREPORTED)):
        return drawn
    others = await _sampled(endpoint, pair, {index: order[index] for index in sorted(rest)}, rng, admitted)
    together = sorted((*drawn.given, *others.given), key=lambda given: given.index)
    return replace(drawn, given=tuple(together), failure=others.failure)


async def ratings(
    endpoint: Endpoint, rated: RatingRequest, count: int, rng: np.random.Generator, admitted: Admitted | None = None
) -> Answers:
    """Ask for `count` ratings of one object; each an independent sample. `rng` as in `votes`."""
    messages = rated.prompt.messages(rated.shown)
    asked = replace(question_for(endpoint, rated.temperature, rated.scale.answers), messages=messages)
    parse = partial(judges.parse_rating, scale=rated.scale)
    jobs = [_answer(asked, parse, rng, index) for index in range(count)]
    return await _answers(endpoint, jobs, (rated.shown,), admitted)


async def detection(endpoint: Endpoint, question: str, shown: judges.ShownObject, rng: np.random.Generator) -> Answers:
    """Ask greedily whether something is in an object: the value is 1 for yes, or 0 for no.

    A server that gives the same reply whatever the seed is as good as any here.

    Args:
        question: whole, as `judges.detection_prompt` takes it.
        rng: draws the seeds, which a greedy reply should not depend on.
    """
    messages = judges.detection_prompt(question).messages(shown)
    asked = replace(question_for(endpoint, 0.0, judges.YES_OR_NO), messages=messages)
    return await _answers(endpoint, [_answer(asked, judges.parse_yes_or_no, rng)], (shown,), varies=False)


async def _sampled(
    endpoint: Endpoint, pair: Pair, order: Mapping[int, bool], rng: np.random.Generator, admitted: Admitted | None
) -> Answers:
    """Ask for a vote at each index, one request each, at the judge's temperature."""
    question = question_for(endpoint, pair.temperature, judges.LABELS)

    def job(index: int, first: bool) -> Job[ModelAnswer]:
        shown = replace(question, messages=pair.messages(first), compared=pair.compared(first))

        def parse(reply: str | None) -> bool:
            return judges.label_is_for_proposal(judges.parse_label(reply), first)

        return _answer(shown, parse, rng, index, first, keeps_reasons=pair.keeps_reasons)

    jobs = [job(index, first) for index, first in order.items()]
    return await _answers(endpoint, jobs, (pair.current, pair.proposal), admitted)


async def _drawn(
    endpoint: Endpoint,
    pair: Pair,
    order: Mapping[int, bool],
    uniforms: Sequence[float],
    known: Mapping[bool, float],
    admitted: Admitted | None,
) -> Answers:
    """Ask for p under each presentation that occurs, and draw the votes from it.

    A reply whose log-probabilities are no distribution is not counted, nor is its token: that would have another
    distribution. It is asked for once more; if that fails too, p is not told.
    """
    wanted, sound = sorted(set(order.values()) - set(known)), list[bool]()
    jobs = [_preference(pair, first, constrains(endpoint), sound) for first in wanted]
    unreported = "returns no log-probabilities" if endpoint.can_log_probabilities is False else ""
    called = await _called(endpoint, jobs, unreported, (pair.current, pair.proposal), admitted)
    told: dict[bool, tuple[float, Identity | None]] = {first: (p, None) for first, p in known.items()}
    for first, outcome in zip(wanted, called.outcomes, strict=True):
        if not isinstance(outcome, EndpointError):
            told[first] = outcome
    given = tuple(
        ModelAnswer(index, judges.drawn_vote(uniforms[index], told[first][0]), 0, first, *told[first])
        for index, first in order.items()
        if first in told
    )
    # What p cannot tell, sampling can: an error that it cannot help with comes first.
    others = [error for error in called.errors if not isinstance(error, UNREPORTED)]
    return Answers(given, others[0] if others else called.failure, tuple(sound))


def question_for(endpoint: Endpoint, temperature: float, choices: Sequence[str]) -> ChatRequest:
    """Return what is asked for one of some answers, constrained to them where the server can do that."""
    constrained = choices if constrains(endpoint) else ()
    return ChatRequest(
        endpoint.model, (), LABEL_TOKENS, temperature, choices=constrained, thinking=endpoint.thinking_tokens
    )


def _answer(
    question: ChatRequest,
    parse: Callable[[str | None], int],
    rng: np.random.Generator,
    index: int = 0,
    proposal_first: bool = False,
    *,
    keeps_reasons: bool = False,
) -> Job[ModelAnswer]:
    """Return the job that asks a question until the reply is an answer, with other seeds."""
    seeds = [int(rng.random() * _LARGEST_SEED) for _ in range(MAX_ATTEMPTS)]

    async def answer(client: Client) -> ModelAnswer:
        began = time.monotonic()
        for attempts, seed in enumerate(seeds, start=1):
            reply = await client.ask(replace(question, seed=seed))
            try:
                value = int(parse(reply.text))
            except judges.UnparsableReplyError as error:
                why = client.without_key(str(error))
                client.unparsable += 1
                continue
            reason, seconds = reply.reasoning if keeps_reasons else "", time.monotonic() - began
            return ModelAnswer(index, value, attempts, proposal_first, None, reply.identity, seconds, reason)
        raise Unparsable(f"no answer in {len(seeds)} replies; the last one: {why}")

    return answer


def _preference(pair: Pair, first: bool, constrained: bool, sound: list[bool]) -> Job[tuple[float, Identity]]:
    """Return the job that asks for p under one presentation, and notes of each reply whether it was sound."""
    messages = pair.messages(first)

    async def ask_once(client: Client, seed: int) -> tuple[float, Identity]:
        question = ChatRequest(client.endpoint.model, messages, seed=seed, log_probabilities=True)
        try:
            reply = await client.ask(question)
        except NoDistribution:
            sound.append(False)
            raise
        sound.append(True)
        try:
            told = judges.label_preference(reply.tokens, pair.temperature, constrained=constrained)
        except judges.NoPreferenceError as error:
            raise NotReported(str(error)) from None
        return judges.preference_for_proposal(told.first, first), reply.identity

    async def ask(client: Client) -> tuple[float, Identity]:
        first_seed, second_seed = FIRST_TOKEN_SEEDS
        try:
            return await ask_once(client, first_seed)
        except NoDistribution:
            return await ask_once(client, second_seed)

    return ask


async def _answers(
    endpoint: Endpoint,
    jobs: Sequence[Job[ModelAnswer]],
    shown: Sequence[judges.ShownObject],
    admitted: Admitted | None = None,
    *,
    varies: bool = True,
) -> Answers:
    """Run jobs whose replies must vary with their seeds, or those of a detector, which is asked at temperature 0."""
    unable = ""
    if varies and endpoint.can_vary is False:
        unable = "gives the same reply whatever the seed: its votes would be copies"
    elif not varies and not Dialect(endpoint.dialect).server.sets_temperature:
        unable = "takes no temperature but 1, and a detector is asked at 0"
    called = await _called(endpoint, jobs, unable, shown, admitted)
    return Answers(called.results, called.failure)


async def _called(
    endpoint: Endpoint,
    jobs: Sequence[Job[Answer]],
    unable: str,
    shown: Sequence[judges.ShownObject],
    admitted: Admitted | None,
) -> CallResults[Answer]:
    """Run jobs, unless the endpoint was seen to be unable to do them: why in words, empty if it was not."""
    if endpoint.can_images is False and any(each.picture for each in shown):
        unable = unable or "does not see pictures"
    if unable:
        return CallResults((Unable(f"{endpoint.name} {unable}"),) * len(jobs))
    return await call(endpoint, jobs, admitted)


def constrains(endpoint: Endpoint) -> bool:
    """Say whether replies are constrained: where the server knows how, unless it was seen not to."""
    return Dialect(endpoint.dialect).server.constrained is not None and endpoint.can_constrain is not False
