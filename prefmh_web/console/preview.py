"""What people and models will see of a draft, and what asking models will take.

Objects and pairs that no campaign has stored: samples of each kind, and what voters would see of a draft. A page names
each object by a signed address, so that nobody makes this site draw what it has not chosen itself. A pair is drawn as
the campaign itself would, from its config and seed, and nothing is written. Where a model makes the objects there is
nothing to compute: nobody is asked for a preview.

What a model judge of a setup would be sent about a sample pair, while its researcher writes the setup; and what asking
models for a whole campaign will take: requests, tokens and price, before it starts and while it runs.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
from django.contrib.auth.models import User
from django.core import signing
from django.db.models import Max
from django.db.models.functions import Length
from django.urls import reverse
from pydantic import ValidationError

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.lifecycle.model_start import wants_own_pairs
from prefmh_web.campaigns.model_judges.judges import prompt_as_of_now, prompt_of, question_of, uses_log_probabilities
from prefmh_web.campaigns.models import Campaign, ModelUsage, Side, State
from prefmh_web.campaigns.monitoring.judging import money
from prefmh_web.campaigns.objects import Pair
from prefmh_web.endpoints import probe, truth
from prefmh_web.endpoints.client import exact_request
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.judge_calls import compared
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import Most
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.objects import OBJECT_KINDS, ObjectKind, StoredObject
from prefmh_web.objects.kind import Pixels
from sampler import judges as model_judges

_SALT = "prefmh_web.console.preview"
# In the place of a code: what a diffusion model begins with, and which of a kind's samples it is.
NOISE, _NOISE_SIDE = "noise", 64
_SAMPLES = ("sample 1", "sample 2")
_SAMPLE_SEED = 5


@dataclass(frozen=True)
class PreviewObject:
    """An object.

    Args:
        kind: the name of its kind.
        content: as a stored one has it.
        code: of a pattern, what the decoder makes it of; of a sample, which of them it is; empty for other objects.
        other: the content of the object that it is seen beside.
    """

    kind: str
    content: str
    code: str = ""
    other: str = ""

    @property
    def address(self) -> str:
        """Where its picture is, for the kinds that have one."""
        described = (self.kind, self.content, self.code, self.other)
        return reverse("console:preview-picture", args=[signing.dumps(described, salt=_SALT, compress=True)])

    @property
    def templates(self) -> list[str]:
        """What draws it on the card of its kind: the first that there is."""
        return [f"objects/{self.kind}/card.html", f"objects/{self.kind}/thumbnail.html"]

    @property
    def option(self) -> Mapping[str, Any]:
        """What a voter's card shows of it."""
        return OBJECT_KINDS[self.kind].options(self.content, self.content)[0]

    @property
    def stored(self) -> StoredObject:
        """The object as presenters take it."""
        if self.code in _SAMPLES:
            return OBJECT_KINDS[self.kind].samples[_SAMPLES.index(self.code)]
        return StoredObject(self.content, pixels=partial(_decoded, self.code) if self.code else None)


OF_NOISE = PreviewObject("images", NOISE, NOISE)


def sample(kind: str, number: int = 0) -> PreviewObject:
    """Return one of the two objects, 0 or 1, by which a kind is shown where a campaign has none yet."""
    return PreviewObject(kind, OBJECT_KINDS[kind].samples[number].content, _SAMPLES[number])


def read(signed: str) -> PreviewObject:
    """Return the object of an address.

    Raises:
        BadSignature: the address is none of ours.
    """
    return PreviewObject(*signing.loads(signed, salt=_SALT))


def _decoded(code: str) -> Pixels:
    if code == NOISE:
        noise = np.random.default_rng(_SAMPLE_SEED).normal(128, 48, (_NOISE_SIDE, _NOISE_SIDE, 3))
        return noise.clip(0, 255).astype(np.uint8).repeat(4, axis=0).repeat(4, axis=1)
    space = _space_of_patterns()
    pixels: Pixels = space.pixels(space.decode(code))
    return pixels


@lru_cache
def _space_of_patterns() -> Any:
    return sampler.ImagesConfig().build()


# Of a step that needs no vote, the next one is drawn: so many at most, and for so long.
_MAX_STEPS, _LONGEST_S = 200, 1.0
# Moves between two pairs, at most: more would take too long for a page.
_MAX_MOVES = 512
_OF_PEOPLE = ("people", "panelist")


class NotComputable(Exception):  # noqa: N818 - no error, but what a page tells
    """There is no pair to show before the start; the message says why."""


def asks_people(campaign: Campaign) -> bool:
    """Whether people answer some of the questions of a campaign."""
    config = campaign.config
    return config.rule.asks_judges and any(judge.source.kind in _OF_PEOPLE for judge in config.judges)


def first_pair_of(campaign: Campaign) -> dict[str, Any] | None:
    """Return the first pair of a draft as voters will see it; None where no people are asked."""
    return pair_of(campaign, 0) if asks_people(campaign) else None


def pair_of(campaign: Campaign, number: int, question: str = "") -> dict[str, Any]:
    """Return what templates show of a pair of a readable draft that asks people, the first one of the chain of this
    number; with a `note` why these are samples, empty where they are the campaign's own.

    Args:
        number: of the chain; there may be more than the campaign has. Its questions come in turn.
        question: another one than that.
    """
    questions = [judge.question for judge in campaign.config.judges if judge.source.kind in _OF_PEOPLE]
    question, note = question or questions[number % len(questions)], ""
    try:
        pair = _first_pair(campaign, number, question)
    except NotComputable as reason:
        note, pair = str(reason), Pair(question, *_samples(campaign.config.space))
    if np.random.default_rng([campaign.seed, number]).integers(2):
        pair = pair.swapped()
    return {"note": note} | shown_of(pair, campaign)


def shown_of(pair: Pair, campaign: Campaign) -> dict[str, Any]:
    """Return what templates show of a pair of a draft, whose objects are in its list or nowhere."""
    kind = campaign.object_kind

    def address(side: Side) -> str:
        row, other = (pair.first, pair.second) if side == Side.FIRST else (pair.second, pair.first)
        if isinstance(row, State) and row.pk and kind.medium != "words":
            return reverse("console:picture", args=[row.pk])
        return PreviewObject(kind.name, row.content, getattr(row, "code", ""), other.content).address

    return objects.shown(pair, campaign, address)


def _samples(space: sampler.SpaceConfig) -> tuple[State, State]:
    of_noise = space.kind == "model-images"
    samples = (OF_NOISE if of_noise else sample(space.objects, number) for number in (0, 1))
    first, second = (State(content=each.content, code=each.code) for each in samples)
    return first, second


def _first_pair(campaign: Campaign, chain: int, question: str) -> Pair:
    """Return the two objects of the first step of a chain that needs a vote.

    Raises:
        NotComputable: a model makes the objects, the walk is too long, or no step that is looked at needs a vote.
    """
    config = campaign.config
    kernel: Any = config.kernel
    if isinstance(config.space, (sampler.ServedTextsConfig, sampler.ServedImagesConfig)):
        raise NotComputable("A model makes the objects once the campaign has started. These only hold their place.")
    if kernel.kind == "walk" and max(each.length for each in kernel.length) > _MAX_MOVES:
        raise NotComputable("So many moves between two pairs take a while, so these are samples.")
    try:
        plan = plan_of(campaign)
    except sampler.ConfigError as error:
        raise NotComputable(f"The first pair cannot be drawn yet: {error}.") from error
    drawn = _first_asked(plan, chain)
    rows = _row(campaign, plan, drawn.current), _row(campaign, plan, drawn.proposal)
    return Pair(question, *rows, *(objects.context_of(row, config) for row in rows))


def _first_asked(plan: sampler.Plan[Any], chain: int) -> sampler.Comparison[Any]:
    position, until = sampler.begin(plan, chain), time.monotonic() + _LONGEST_S
    for _ in range(_MAX_STEPS):
        drawn = sampler.ask(plan, position)
        verdict = sampler.tell(drawn, sampler.Tally.empty(len(drawn.max_votes)))
        if verdict is sampler.Verdict.UNDECIDED and not drawn.is_identity:
            return drawn
        position = sampler.advance(position, drawn, verdict)
        if time.monotonic() > until:
            break
    raise NotComputable("The first steps of this chain need no vote, so these are samples.")


def _row(campaign: Campaign, plan: sampler.Plan[Any], state: Any) -> State:
    if not campaign.config.generates:
        return State.objects.get(campaign=campaign, index=state)
    space: Any = plan.space
    return State(content=space.content(state), code=space.encode(state))


# The seed of the sample; each request has its own.
SAMPLE_SEED = 1
# What a question does not rest on.
_REST = {"kernel": {"kind": "independent"}, "chains": 1, "steps": 1, "seed": 0}
_PICTURE = re.compile(r"(base64,|\"data\":\s?\")([A-Za-z0-9+/]{80})[A-Za-z0-9+/=]+")


def preview_of(described: Mapping[str, Any] | None, owner: User, campaign: Campaign | None) -> dict[str, Any] | None:
    """Return what stands below a question's prompt, as the question stands in the fields; None where no model answers
    it: the `requests`, or the `problems` for which there are none, each with its field; and what is `known` between
    double braces.

    Args:
        described: the space, the rule and the question as the only one of `judges`, as plain data.
    """
    source = {} if described is None else described["judges"][0].get("source", {})
    endpoint = Endpoint.objects.filter(owner=owner, name=source.get("endpoint") or "").first()
    if endpoint is None:
        return None
    try:
        config = sampler.ChainConfig.model_validate(_REST | dict(described or {}))
    except ValidationError as error:
        found = sampler.problems_in(error, described)
        return {"problems": [(problem.path.rpartition(".")[2], problem.message) for problem in found]}
    kind, [judge] = OBJECT_KINDS[config.space.objects], config.judges
    known = model_judges.known_placeholders(config.fitting)
    template = judge.source.prompt if isinstance(judge.source, sampler.ModelSource) else None
    if problems := [*model_judges.template_problems(template, config.fitting)] if template else []:
        return {"problems": problems, "known": known}
    prompt = prompt_of(judge, config.rule, kind.name, has_context=bool(config.context))
    rows = _rows_of(campaign, kind)
    try:
        shown = [objects.shown_object(row, endpoint, prompt, context=objects.context_of(row, config)) for row in rows]
        requests = [*_requests(config, endpoint, prompt, shown or _samples_shown(kind, endpoint, config, prompt))]
    except (EndpointError, ValueError) as error:
        return {"problems": [("Prompt", getattr(error, "reason", str(error)))], "known": known}
    return {
        "known": known,
        "requests": requests,
        "version": prompt.template.version,
        "of": f"Two of your {kind.nouns}" if rows else f"Sample {kind.nouns}, until your own are there",
        "is_own": template is not None,
    }


def _requests(
    config: sampler.ChainConfig,
    endpoint: Endpoint,
    prompt: model_judges.Prompt,
    shown_objects: Sequence[model_judges.ShownObject],
) -> Iterator[dict[str, Any]]:
    """Yield each request: in which order the objects stand, what the model reads, and the body, its pictures cut."""
    [judge], rates = config.judges, config.rule.evidence == "ratings"
    assert isinstance(judge.source, sampler.ModelSource)
    first, second = shown_objects
    orders = {"One object first": (first, second), "The other first": (second, first)}
    for order, shown in {"One object": (first,)}.items() if rates else orders.items():
        pair = None if rates else compared(judge.question, *shown)
        messages = prompt.messages(*shown)
        question = question_of(judge.source, config.rule, endpoint, messages, seed=SAMPLE_SEED, compared=pair)
        path, body = exact_request(endpoint, question)
        cut = _PICTURE.sub(r"\1\2…", body)
        yield {
            "order": order,
            "messages": [_read(each) for each in question.messages],
            "path": path,
            "body": cut,
            "size": len(body.encode()),
            "has_cut_picture": cut != body,
        }


def _read(message: dict[str, Any]) -> tuple[str, str]:
    """Return a message as the model reads it, with a word for each picture."""
    content = message["content"]
    if isinstance(content, str):
        return message["role"], content
    return message["role"], "".join(part["text"] if part["type"] == "text" else "[picture]" for part in content)


def _rows_of(campaign: Campaign | None, kind: ObjectKind) -> list[State]:
    """Return two objects of the draft; none where it has none yet, or others than those that were chosen."""
    if campaign is None or campaign.object_kind.name != kind.name:
        return []
    rows = list(campaign.states.select_related("campaign").order_by("index")[:2])
    return rows if len(rows) == 2 else []


def _samples_shown(
    kind: ObjectKind, endpoint: Endpoint, config: sampler.ChainConfig, prompt: model_judges.Prompt
) -> list[model_judges.ShownObject]:
    context = tuple(
        model_judges.ContextLine(each.label, f"(what stands in “{each.column}”)") for each in config.context
    )
    named = set(prompt.measures) - {each.label for each in config.context}
    measures = tuple(model_judges.ContextLine(name, "0.500") for name in sorted(named))
    shown = (kind.shown_object(each, sees_pictures=bool(endpoint.can_images)) for each in kind.samples)
    return [replace(each, context=context, measures=measures) for each in shown]


def versions_of(campaign: Campaign) -> list[tuple[int, str, str]]:
    """Return of each model of a readable setup its index, its question, and the version of its prompt."""
    config = campaign.config
    return [
        (index, judge.question, prompt_as_of_now(campaign, index).template.version)
        for index, judge in enumerate(config.judges)
        if isinstance(judge.source, sampler.ModelSource)
    ]


# Of more votes, the mean takes seconds to compute.
_LARGEST_BUDGET = 64


@dataclass(frozen=True)
class Tokens:
    """What a request has on average, and where that was seen."""

    read: float
    written: float
    seen: str

    def __str__(self) -> str:
        return f"{self.read:.0f} in, {self.written:.0f} out ({self.seen})"


def estimates_of(campaign: Campaign) -> Iterator[dict[str, Any]]:
    """Yield what each model of a campaign will take, a judge each or the writing of texts, for the template
    `console/_model_estimate.html`; nothing where none is asked.

    ``most`` are the requests if no step is decided early and every reply can be read, ``expected`` their mean where it
    is known, over all preferences from 0 to 1 alike, for base ratio 1. Where all votes are asked for at once,
    ``wasted`` of these bring a vote that no step needs. ``test`` is what Start takes for a test with this campaign's
    own pairs, where it makes one. ``picture_tokens`` are those of one picture of a prompt at most, as the documentation
    of the server's kind says; 0 where there is none, or it does not say.
    """
    if not asks_models(campaign):
        return
    config = campaign.config
    endpoints = {endpoint.name: endpoint for endpoint in Endpoint.objects.filter(owner=campaign.owner_id)}
    if isinstance(config.space, sampler.ServedTextsConfig) and config.space.model in endpoints:
        # Both texts that a step may lead to are written while it is open, and each takes two requests.
        most = 4 * config.chains_at_most * config.steps
        yield _estimate(campaign, ModelUsage.PROPOSALS, endpoints[config.space.model], most, None)
    for index, judge in enumerate(config.judges):
        source = judge.source
        if isinstance(source, sampler.ModelSource) and source.endpoint in endpoints:
            endpoint = endpoints[source.endpoint]
            most, needed = _max_requests(campaign, judge, source), _needed(config, judge, source)
            is_at_once = source.all_at_once and config.rule.evidence != "ratings"
            expected = most if is_at_once and not uses_log_probabilities(source, config.rule) else needed
            yield _estimate(campaign, index, endpoint, most, expected) | {
                "question": judge.question,
                "picture_tokens": _picture_tokens(campaign, source, endpoint),
                "is_at_once": is_at_once,
                "wasted": None if needed is None else round(most - needed),
                "test": _test(campaign, endpoint),
            }


def asks_models(campaign: Campaign) -> bool:
    """Say whether a campaign asks models of endpoints, or has them write."""
    return campaign.backend == "served-texts" or any(
        isinstance(judge.source, sampler.ModelSource) for judge in campaign.config.judges
    )


def _estimate(campaign: Campaign, index: int, endpoint: Endpoint, most: int, expected: float | None) -> dict[str, Any]:
    tokens = _tokens(campaign, index, endpoint)
    return {
        "endpoint": endpoint,
        "most": most,
        "expected": None if expected is None else round(expected),
        "tokens": tokens,
        "hours": _hours(endpoint, campaign.config.chains_at_most, most, expected),
        "price": _price(endpoint, tokens, most, expected),
    }


def _hours(endpoint: Endpoint, chains: int, most: int, expected: float | None) -> str:
    """Return how long requests take at the endpoint's measured speed, as many at a time as it takes and chains ask."""
    seconds = endpoint.totals.mean_seconds
    if seconds is None:
        return "not measured yet"
    each = seconds / max(1, min(endpoint.concurrency, chains)) / 3600
    about = "" if expected is None else f", {each * expected:.2g} expected"
    return f"at most {each * most:.2g}{about}"


def _price(endpoint: Endpoint, tokens: Tokens | None, most: int, expected: float | None) -> str:
    """Return what requests cost at most, and as expected; “price unknown” rather than a wrong figure."""
    if endpoint.input_price is None or endpoint.output_price is None:
        return "price unknown: the endpoint has none"
    if endpoint.input_price == endpoint.output_price == 0:
        return "nothing"
    if tokens is None:
        return "price unknown until a request has been made"
    each = (tokens.read * endpoint.input_price + tokens.written * endpoint.output_price) / 1e6
    about = "" if expected is None else f", {money(each * expected)} expected"
    return f"at most {money(each * most)}{about}"


def _test(campaign: Campaign, endpoint: Endpoint) -> Most | None:
    if not campaign.is_draft or not wants_own_pairs(campaign, endpoint):
        return None
    longest = campaign.states.aggregate(longest=Max(Length("content"), default=0))["longest"]
    found = probe.most(endpoint, truth.MAX_TRUTH, longest)
    # What objects take that are still to be made, or are pictures, is not known.
    return found if longest and campaign.object_kind.name in ("texts", "markdown") else Most(found.requests, None)


def _max_requests(campaign: Campaign, judge: sampler.JudgeConfig, source: sampler.ModelSource) -> int:
    config = campaign.config
    steps = config.chains_at_most * config.steps
    if config.rule.evidence == "ratings":
        # An object keeps its ratings: each proposal is rated, and each start.
        rated = steps + config.chains_at_most
        objects = rated if config.generates else min(rated, campaign.states.count())
        return objects * judge.votes
    if uses_log_probabilities(source, config.rule):
        # One for each order in which the pair is shown.
        return steps * (1 if judge.order.startswith("proposal") else min(2, judge.votes))
    return steps * judge.votes


def _needed(config: sampler.ChainConfig, judge: sampler.JudgeConfig, source: sampler.ModelSource) -> float | None:
    """Return the mean number of requests with early stopping that can be needed, where the rule has that figure."""
    is_alone = len(config.judges) == 1 and judge.votes <= _LARGEST_BUDGET
    if not is_alone or config.rule.evidence == "ratings" or uses_log_probabilities(source, config.rule):
        return None
    votes = sampler.step_votes((judge.votes,))
    return None if votes is None else votes * config.chains_at_most * config.steps


def _tokens(campaign: Campaign, index: int, endpoint: Endpoint) -> Tokens | None:
    usage, totals = campaign.model_usage.filter(judge_index=index).first(), endpoint.totals
    seen = "mean of the endpoint’s requests so far, its test included; Start measures this campaign’s"
    for counted, where in ((usage, "measured in this campaign"), (totals, seen)):
        if counted and counted.answered and counted.tokens_in + counted.tokens_out:
            return Tokens(counted.tokens_in / counted.answered, counted.tokens_out / counted.answered, where)
    return None


def _picture_tokens(campaign: Campaign, source: sampler.ModelSource, endpoint: Endpoint) -> int:
    is_drawn = source.vision is not None and source.vision.molecules in ("picture", "both")
    is_shown = campaign.object_kind.medium == "picture" or is_drawn
    return Dialect(endpoint.dialect).server.picture_tokens if is_shown else 0
