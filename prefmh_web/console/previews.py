"""What a model judge of a setup would be sent about a sample pair, while its researcher writes the setup; and what
asking models for a whole campaign will take: requests, tokens and price, before it starts and while it runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Max
from django.db.models.functions import Length
from pydantic import ValidationError

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.lifecycle.model_start import wants_own_pairs
from prefmh_web.campaigns.model_judges.judges import prompt_as_of_now, prompt_of, question_of, tells_p
from prefmh_web.campaigns.models import Campaign, ModelUsage, State
from prefmh_web.campaigns.monitoring.judging import money
from prefmh_web.endpoints import probe, truth
from prefmh_web.endpoints.client import exact_request
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.judge_calls import compared
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.probe import Most
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.objects import OBJECT_KINDS, ObjectKind
from sampler import judges as model_judges
from sampler.declared import Declared

# The seed of the sample; each request has its own.
SAMPLE_SEED = 1
_PICTURE = re.compile(r"(base64,|\"data\":\s?\")([A-Za-z0-9+/]{80})[A-Za-z0-9+/=]+")


class _Asked(Declared):
    """What a preview rests on."""

    space: sampler.SpaceConfig
    rule: sampler.RuleConfig
    judge: sampler.JudgeConfig


def preview_of(described: Mapping[str, Any] | None, owner: User, campaign: Campaign | None) -> dict[str, Any] | None:
    """Return what stands below a question's prompt, as the question stands in the fields; None where no model answers
    it: the `requests`, or the `problems` for which there are none, each with its field; and what is `known` between
    double braces.

    Args:
        described: the space, the rule and the question, as plain data.
    """
    source = {} if described is None else described["judge"].get("source", {})
    endpoint = Endpoint.objects.filter(owner=owner, name=source.get("endpoint") or "").first()
    if endpoint is None:
        return None
    try:
        asked = _Asked.model_validate(described)
    except ValidationError as error:
        found = sampler.problems_in(error, described)
        return {"problems": [(problem.path.rpartition(".")[2], problem.message) for problem in found]}
    kind = OBJECT_KINDS[asked.space.objects]
    columns = [(each.column, each.label) for each in getattr(asked.space, "context", ())]
    measures = sampler.property_names(asked.space.model_dump(mode="json"))
    fitting = model_judges.Fitting(asked.rule.objects_shown, [label for _, label in columns], measures)
    known = model_judges.known_places(fitting)
    problems = [("Objects", "A model hears no recordings. Let people judge them.")] if kind.medium == "sound" else []
    template = asked.judge.source.prompt if isinstance(asked.judge.source, sampler.ModelSource) else None
    problems += model_judges.template_problems(template, fitting) if template else []
    if problems:
        return {"problems": problems, "known": known}
    prompt = prompt_of(asked.judge, asked.rule, kind.name, has_context=bool(columns))
    rows = _rows_of(campaign, kind)
    exhibits = [objects.exhibit(row, endpoint, prompt, context=_context(row, columns)) for row in rows]
    exhibits = exhibits or _samples(kind, endpoint, columns, prompt)
    of = f"Two of your {kind.nouns}" if rows else f"Sample {kind.nouns}, until your own are there"
    try:
        requests = [*_requests(asked, endpoint, prompt, exhibits)]
    except (EndpointError, ValueError) as error:
        return {"problems": [("Prompt", getattr(error, "reason", str(error)))], "known": known}
    return {
        "known": known,
        "requests": requests,
        "version": prompt.template.version,
        "of": of,
        "is_own": template is not None,
    }


def _context(row: State, columns: Sequence[tuple[str, str]]) -> model_judges.Context:
    return tuple(model_judges.ContextLine(label, row.columns.get(column, "")) for column, label in columns)


def _requests(
    asked: _Asked, endpoint: Endpoint, prompt: model_judges.Prompt, exhibits: Sequence[model_judges.Exhibit]
) -> Iterator[dict[str, Any]]:
    """Yield each request: in which order the objects stand, what the model reads, and the body, its pictures cut."""
    source, rates = asked.judge.source, asked.rule.evidence == "ratings"
    assert isinstance(source, sampler.ModelSource)
    first, second = exhibits
    orders = {"One object first": (first, second), "The other first": (second, first)}
    for order, shown in {"One object": (first,)}.items() if rates else orders.items():
        pair = None if rates else compared(asked.judge.question, *shown)
        messages = prompt.messages(*shown)
        question = question_of(source, asked.rule, endpoint, messages, seed=SAMPLE_SEED, compared=pair)
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
    rows = list(campaign.states.select_related("campaign").order_by("place")[:2])
    return rows if len(rows) == 2 else []


def _samples(
    kind: ObjectKind, endpoint: Endpoint, columns: Sequence[tuple[str, str]], prompt: model_judges.Prompt
) -> list[model_judges.Exhibit]:
    context = tuple(model_judges.ContextLine(label, f"(what stands in “{column}”)") for column, label in columns)
    named = set(prompt.measures) - {label for _, label in columns}
    measures = tuple(model_judges.ContextLine(name, "0.500") for name in sorted(named))
    shown = (kind.exhibit(each, sees_pictures=bool(endpoint.can_images)) for each in kind.samples)
    return [replace(each, context=context, measures=measures) for each in shown]


def versions_of(campaign: Campaign) -> list[tuple[int, str, str]]:
    """Return of each model of a readable setup its place, its question, and the version of its prompt."""
    config = campaign.config
    return [
        (place, judge.question, prompt_as_of_now(campaign, place).template.version)
        for place, judge in enumerate(config.judges)
        if isinstance(judge.source, sampler.ModelSource)
    ]


def presets_as_json() -> str:
    """Return what a choice of each preset fills in, by its name, as JSON for the page's script."""
    found = {
        name: {"question": each.question, "system": each.template.system, "user": each.template.user}
        for name, each in model_judges.PRESETS.items()
    }
    return json.dumps(found, ensure_ascii=False)


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
    for place, judge in enumerate(config.judges):
        source = judge.source
        if isinstance(source, sampler.ModelSource) and source.endpoint in endpoints:
            endpoint = endpoints[source.endpoint]
            most, needed = _most_requests(campaign, judge, source), _needed(config, judge, source)
            is_at_once = source.all_at_once and config.rule.evidence != "ratings"
            expected = most if is_at_once and not tells_p(source, config.rule) else needed
            yield _estimate(campaign, place, endpoint, most, expected) | {
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


def _estimate(campaign: Campaign, place: int, endpoint: Endpoint, most: int, expected: float | None) -> dict[str, Any]:
    tokens = _tokens(campaign, place, endpoint)
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
    found = probe.most(endpoint, truth.MOST_TRUE, longest)
    # What objects take that are still to be made, or are pictures, is not known.
    return found if longest and campaign.object_kind.name in ("texts", "markdown") else Most(found.requests, None)


def _most_requests(campaign: Campaign, judge: sampler.JudgeConfig, source: sampler.ModelSource) -> int:
    config = campaign.config
    steps = config.chains_at_most * config.steps
    if config.rule.evidence == "ratings":
        # An object keeps its ratings: each proposal is rated, and each start.
        rated = steps + config.chains_at_most
        objects = rated if config.generates else min(rated, campaign.states.count())
        return objects * judge.votes
    if tells_p(source, config.rule):
        # One for each order in which the pair is shown.
        return steps * (1 if judge.order.startswith("proposal") else min(2, judge.votes))
    return steps * judge.votes


def _needed(config: sampler.ChainConfig, judge: sampler.JudgeConfig, source: sampler.ModelSource) -> float | None:
    """Return the mean number of requests with early stopping that can be needed, where the rule has that figure."""
    is_alone = len(config.judges) == 1 and judge.votes <= _LARGEST_BUDGET
    if not is_alone or config.rule.evidence == "ratings" or tells_p(source, config.rule):
        return None
    votes = sampler.step_votes((judge.votes,))
    return None if votes is None else votes * config.chains_at_most * config.steps


def _tokens(campaign: Campaign, place: int, endpoint: Endpoint) -> Tokens | None:
    usage, totals = campaign.model_usage.filter(place=place).first(), endpoint.totals
    seen = "mean of the endpoint’s requests so far, its test included; Start measures this campaign’s"
    for counted, where in ((usage, "measured in this campaign"), (totals, seen)):
        if counted and counted.answered and counted.tokens_in + counted.tokens_out:
            return Tokens(counted.tokens_in / counted.answered, counted.tokens_out / counted.answered, where)
    return None


def _picture_tokens(campaign: Campaign, source: sampler.ModelSource, endpoint: Endpoint) -> int:
    is_drawn = source.vision is not None and source.vision.molecules in ("picture", "both")
    is_shown = campaign.object_kind.medium == "picture" or is_drawn
    return Dialect(endpoint.dialect).server.picture_tokens if is_shown else 0
