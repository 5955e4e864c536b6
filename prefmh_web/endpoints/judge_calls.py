"""Votes and ratings of model judges, and detectors: what a campaign's task and an evaluation call.

    votes_by_sampling            one request a vote, each with its own seed, at the judge's temperature
    votes_by_log_probabilities   one request for each presentation, and the votes drawn from p with the caller's numbers
    votes_by_either              the same; sampled under presentations whose p the server does not tell
    ratings                      one request a rating
    detection                    one request, at temperature 0: is something there

Nothing is raised for what a server or a model does. What was cast is returned and may be stored, also when the rest
failed: each vote's presentation was drawn before, and votes under one presentation are independent, so the missing
ones may be asked another time. `failure` says what to do about them (`errors.py`): a `TryLater` after `retry_after`
seconds, a `NeedsAttention` when somebody has seen to it.

An unparsable reply is asked again, with another seed and under the same presentation, up to `MOST_ASKS` times in all.
That makes a vote one given that the reply is a label; `ModelVote.asks` counts, for the page that shows how often.

Whoever asks may say whose replies count (`identity.Admitted`). A reply of another model is dropped before it is read,
so whether it counts cannot depend on its answer, and nothing more is asked.
"""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

import numpy as np

from prefmh_web.endpoints.calls import Called, Job, call
from prefmh_web.endpoints.client import LABEL_TOKENS, Client, Reply
from prefmh_web.endpoints.errors import EndpointError, NoDistribution, NotTold, Unable, Unparsable
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Admitted, Identity
from prefmh_web.endpoints.servers import Compared, Dialect, Question
from sampler import judges

MOST_ASKS = 3
UNTOLD = (NotTold, NoDistribution)
"""Why p is not known where a vote may be sampled all the same."""
_LARGEST_SEED = 2**31
# Of the token that comes with its log-probabilities, which is not read.
_FIRST_TOKEN_SEEDS = (0, 104_729)

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

    prompt: judges.AnyPrompt
    criterion: str
    current: judges.Exhibit
    proposal: judges.Exhibit
    temperature: float = 1.0
    keeps_reasons: bool = False

    def messages(self, proposal_first: bool) -> judges.Messages:
        """Return what the judge is shown under one presentation."""
        return self.prompt.messages(*judges.in_order(self.current, self.proposal, proposal_first))

    def compared(self, proposal_first: bool) -> Compared:
        """Return the same for a program."""
        return compared(self.criterion, *judges.in_order(self.current, self.proposal, proposal_first))


def compared(criterion: str, first: judges.Exhibit, second: judges.Exhibit) -> Compared:
    """Return a pair as a program is shown it: without words around it."""

    def told(exhibit: judges.Exhibit) -> str:
        return str(judges.picture_part(exhibit.picture)["image_url"]["url"]) if exhibit.picture else exhibit.text

    return Compared(criterion, told(first), told(second))


@dataclass(frozen=True)
class ModelVote:
    """One vote.

    Args:
        place: its place among those asked for.
        proposal_first: its presentation, as it was asked for.
        for_proposal: what it says.
        asks: how many replies it took; 1 unless some were unparsable; 0 if it was drawn from p.
        preference: the probability p of a vote for the proposal that it was drawn from; None if it was sampled.
        identity: what the reply said it is from; None if p was known before.
        seconds: from the first ask to the answer; None if it was drawn from p.
        reason: what the model thought, where the server says it and it is kept; never read as the answer.
    """

    place: int
    proposal_first: bool
    for_proposal: bool
    asks: int
    preference: float | None = None
    identity: Identity | None = field(default=None, compare=False)
    seconds: float | None = None
    reason: str = field(default="", compare=False)


@dataclass(frozen=True)
class ModelRating:
    """One rating; the place is that of its request among those made, and other fields are as in `ModelVote`."""

    place: int
    value: int
    asks: int
    identity: Identity | None = field(default=None, compare=False)


Given = TypeVar("Given", ModelVote, ModelRating)


@dataclass(frozen=True)
class Answers(Generic[Given]):
    """What came of asking for some votes or ratings.

    Args:
        given: those that there are, by place.
        failure: why the others are missing; None if none is.
        untold: presentations whose p the log-probabilities do not tell.
        sound: of each reply with log-probabilities, whether they were those of a distribution.
    """

    given: tuple[Given, ...]
    failure: EndpointError | None
    untold: frozenset[bool] = frozenset()
    sound: tuple[bool, ...] = ()


@dataclass(frozen=True)
class Rated:
    """One judge's question about one object; several criteria in one question make the rating a joint one."""

    prompt: judges.AnyPrompt
    exhibit: judges.Exhibit
    scale: judges.RatingScale
    temperature: float = 1.0


async def votes_by_sampling(
    endpoint: Endpoint,
    pair: Pair,
    proposal_first: Sequence[bool],
    rng: np.random.Generator,
    admitted: Admitted | None = None,
) -> Answers[ModelVote]:
    """Ask for one vote under each of these presentations; each an independent sample.

    Args:
        proposal_first: one entry a vote: whether it shows the proposal as A; see `sampler.judges.presentation`.
        rng: draws the seeds. Not one whose numbers an earlier call had: the same seed gives the same reply.
        admitted: whose replies count; anybody's if None.
    """
    question = question_for(endpoint, pair.temperature, judges.LABELS)

    def job(place: int, first: bool) -> Job[ModelVote]:
        shown = replace(question, messages=pair.messages(first), compared=pair.compared(first))
        seeds = _seeds(rng)

        async def cast(client: Client) -> ModelVote:
            began = time.monotonic()
            label, asks, reply = await _answer(client, shown, seeds, judges.parse_label, admitted)
            is_for, seconds = judges.label_is_for_proposal(label, first), time.monotonic() - began
            reason = reply.reasoning if pair.keeps_reasons else ""
            return ModelVote(place, first, is_for, asks, None, reply.identity, seconds, reason)

        return cast

    jobs = [job(place, bool(first)) for place, first in enumerate(proposal_first)]
    called = await _called(endpoint, jobs, (pair.current, pair.proposal), sampled=True)
    return Answers(called.results, called.failure)


async def votes_by_log_probabilities(
    endpoint: Endpoint,
    pair: Pair,
    proposal_first: Sequence[bool],
    uniforms: Sequence[float],
    known: Mapping[bool, float] | None = None,
    admitted: Admitted | None = None,
    left_out: Collection[bool] = (),
) -> Answers[ModelVote]:
    """Ask for p once under each presentation that occurs, and draw the votes from it.

    The votes have the law of `votes_by_sampling` (`sampler.judges.replies` says under which
    assumptions), so a caller may turn to that when p cannot be had: whether it can depends on the pair alone.
    `untold` says for which presentations that is so.

    A reply whose log-probabilities are no distribution is not counted, nor is its token: that would have another law.
    It is asked for once more; if that fails too, p is not told.

    Args:
        proposal_first: one entry a vote.
        uniforms: on [0, 1), one a vote, each vote's own: the same numbers would give the same votes.
        known: the probability of a vote for the proposal that an earlier call found for this very pair, by
            presentation; not asked again.
        admitted: whose replies count; anybody's if None.
        left_out: presentations under which none is drawn.
    """
    known = {first: p for first, p in (known or {}).items() if first not in left_out}
    wanted = sorted({bool(first) for first in proposal_first} - set(known) - set(left_out))
    sound: list[bool] = []
    jobs = [_preference_job(pair, first, confines(endpoint), admitted, sound) for first in wanted]
    called = await _called(endpoint, jobs, (pair.current, pair.proposal), sampled=False)
    by_order = dict(zip(wanted, called.outcomes, strict=True))
    untold = frozenset(first for first, outcome in by_order.items() if isinstance(outcome, UNTOLD))
    told: dict[bool, tuple[float, Identity | None]] = {first: (p, None) for first, p in known.items()}
    told |= {first: outcome for first, outcome in by_order.items() if not isinstance(outcome, EndpointError)}
    cast = tuple(
        ModelVote(place, bool(first), judges.drawn_vote(uniform, told[first][0]), 0, *told[first])
        for place, (first, uniform) in enumerate(zip(proposal_first, uniforms, strict=True))
        if first in told
    )
    # What p cannot tell, sampling can: an error that it cannot help with comes first.
    others = [outcome for outcome in called.errors if not isinstance(outcome, UNTOLD)]
    failure = others[0] if others else called.failure
    return Answers(cast, failure, untold, tuple(sound))


async def votes_by_either(
    endpoint: Endpoint,
    pair: Pair,
    proposal_first: Sequence[bool],
    uniforms: Sequence[float],
    rng: np.random.Generator,
    *,
    known: Mapping[bool, float] | None = None,
    sampled: Collection[bool] = (),
    admitted: Admitted | None = None,
) -> Answers[ModelVote]:
    """Draw the votes from p; sample those under a presentation whose p the server does not tell.

    A server tells the log-probabilities of its twenty likeliest tokens. Where a label is not among them, p is not
    known, but the model can still be asked for its vote. Either way a vote has the law of a sampled one. Which way is
    taken is settled before any vote under the presentation is drawn, by the log-probabilities alone, so it cannot
    depend on an answer.

    Args:
        endpoint: votes are sampled where *Test* has seen that it samples plainly.
        proposal_first, uniforms, known, admitted: as in `votes_by_log_probabilities`.
        rng: as in `votes_by_sampling`.
        sampled: presentations of this pair that votes have been sampled under before: p is not asked for again.
    """
    left_out = sampled if endpoint.samples_plainly else ()
    drawn = await votes_by_log_probabilities(endpoint, pair, proposal_first, uniforms, known, admitted, left_out)
    if isinstance(drawn.failure, UNTOLD) and not endpoint.samples_plainly:
        why = endpoint.sampling_words or "whether it truncates is not tested"
        told = f"{drawn.failure.reason}; and a vote cannot be sampled instead: {why}"
        return replace(drawn, failure=NotTold(told))
    untold = drawn.untold | frozenset(left_out)
    rest = [place for place, first in enumerate(proposal_first) if first in untold]
    if not rest or (drawn.failure is not None and not isinstance(drawn.failure, UNTOLD)):
        return drawn
    votes = await votes_by_sampling(endpoint, pair, [proposal_first[place] for place in rest], rng, admitted)
    cast = [*drawn.given, *(replace(vote, place=rest[vote.place]) for vote in votes.given)]
    return replace(drawn, given=tuple(sorted(cast, key=lambda vote: vote.place)), failure=votes.failure)


async def ratings(
    endpoint: Endpoint, rated: Rated, count: int, rng: np.random.Generator, admitted: Admitted | None = None
) -> Answers[ModelRating]:
    """Ask for `count` ratings of one object; each an independent sample. `rng` as in `votes_by_sampling`."""
    messages = rated.prompt.messages(rated.exhibit)
    asked = replace(question_for(endpoint, rated.temperature, rated.scale.answers), messages=messages)
    parse = partial(judges.parse_rating, scale=rated.scale)
    jobs = [_rating_job(asked, place, rng, parse, admitted) for place in range(count)]
    called = await _called(endpoint, jobs, (rated.exhibit,), sampled=True)
    return Answers(called.results, called.failure)


async def detection(
    endpoint: Endpoint, question: str, exhibit: judges.Exhibit, rng: np.random.Generator
) -> Answers[ModelRating]:
    """Ask greedily whether something is in an object: the value is 1 for yes, or 0 for no.

    A server that gives the same reply whatever the seed is as good as any here.

    Args:
        question: whole, as `judges.detection_prompt` takes it.
        rng: draws the seeds, which a greedy reply should not depend on.
    """
    messages = judges.detection_prompt(question).messages(exhibit)
    asked = replace(question_for(endpoint, 0.0, judges.YES_OR_NO), messages=messages)
    job = _rating_job(asked, 0, rng, lambda reply: int(judges.parse_yes_or_no(reply)))
    called = await _called(endpoint, [job], (exhibit,), sampled=None)
    return Answers(called.results, called.failure)


def _rating_job(
    question: Question,
    place: int,
    rng: np.random.Generator,
    parse: Callable[[str | None], int],
    admitted: Admitted | None = None,
) -> Job[ModelRating]:
    seeds = _seeds(rng)

    async def rate(client: Client) -> ModelRating:
        value, asks, reply = await _answer(client, question, seeds, parse, admitted)
        return ModelRating(place, value, asks, reply.identity)

    return rate


def question_for(endpoint: Endpoint, temperature: float, choices: Sequence[str]) -> Question:
    """Return what is asked for one of some answers, confined to them where the server can do that."""
    confined = choices if confines(endpoint) else ()
    return Question(endpoint.model, (), LABEL_TOKENS, temperature, choices=confined, thinking=endpoint.thinking_tokens)


async def _answer(
    client: Client,
    question: Question,
    seeds: Sequence[int],
    parse: Callable[[str | None], Answer],
    admitted: Admitted | None = None,
) -> tuple[Answer, int, Reply]:
    """Return the answer, the number of replies it took, and the last of them."""
    for asks, seed in enumerate(seeds, start=1):
        reply = await _admitted_reply(client, replace(question, seed=seed), admitted)
        try:
            return parse(reply.text), asks, reply
        except judges.UnparsableReplyError as error:
            why = client.without_key(str(error))
            client.unparsable += 1
    raise Unparsable(f"no answer in {len(seeds)} replies; the last one: {why}")


async def _admitted_reply(client: Client, question: Question, admitted: Admitted | None) -> Reply:
    if admitted is None:
        return await client.ask(question)
    admitted.check()
    reply = await client.ask(question)
    admitted.check(reply.identity)
    return reply


def _preference_job(
    pair: Pair, first: bool, confined: bool, admitted: Admitted | None, sound: list[bool]
) -> Job[tuple[float, Identity]]:
    """Return the job that asks for p under one presentation, and notes of each reply whether it was sound."""
    messages = pair.messages(first)

    async def ask_once(client: Client, seed: int) -> tuple[float, Identity]:
        question = Question(client.endpoint.model, messages, seed=seed, log_probabilities=True)
        try:
            reply = await _admitted_reply(client, question, admitted)
            told = judges.label_preference(reply.tokens, pair.temperature, confined=confined)
        except judges.NoPreferenceError as error:
            sound.append(True)
            raise NotTold(str(error)) from None
        except (judges.NoDistributionError, NoDistribution) as error:
            sound.append(False)
            raise NoDistribution(str(error)) from None
        sound.append(True)
        return judges.preference_for_proposal(told.first, first), reply.identity

    async def ask(client: Client) -> tuple[float, Identity]:
        first_seed, second_seed = _FIRST_TOKEN_SEEDS
        try:
            return await ask_once(client, first_seed)
        except NoDistribution:
            return await ask_once(client, second_seed)

    return ask


async def _called(
    endpoint: Endpoint,
    jobs: Sequence[Job[Answer]],
    shown: Sequence[judges.Exhibit],
    *,
    sampled: bool | None,
) -> Called[Answer]:
    """Run jobs, unless the endpoint was seen to be unable to do them.

    Args:
        sampled: True where replies must vary, False where log-probabilities are read, None where neither matters.
    """
    reason = ""
    if sampled and endpoint.can_vary is False:
        reason = f"{endpoint.name} gives the same reply whatever the seed: its votes would be copies"
    elif sampled is None and not Dialect(endpoint.dialect).server.sets_temperature:
        reason = f"{endpoint.name} takes no temperature but 1, and a detector is asked at 0"
    elif sampled is False and endpoint.can_log_probabilities is False:
        reason = f"{endpoint.name} returns no log-probabilities"
    elif endpoint.can_images is False and any(exhibit.picture for exhibit in shown):
        reason = f"{endpoint.name} does not see pictures"
    return Called((Unable(reason),) * len(jobs)) if reason else await call(endpoint, jobs)


def confines(endpoint: Endpoint) -> bool:
    """Say whether replies are confined: where the server knows how, unless it was seen not to."""
    return Dialect(endpoint.dialect).server.confined is not None and endpoint.can_confine is not False


def _seeds(rng: np.random.Generator) -> tuple[int, ...]:
    """Draw a seed for each ask, far from all others: servers use neighbouring seeds for other things."""
    return tuple(int(rng.random() * _LARGEST_SEED) for _ in range(MOST_ASKS))
