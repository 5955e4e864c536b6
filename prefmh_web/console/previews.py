"""What a model judge of a setup would be sent about a sample pair, while its researcher writes the setup."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User
from pydantic import ValidationError

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.model_judges.frozen_judges import prompt_as_of_now, prompt_of, question_of
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.endpoints.client import exact_request
from prefmh_web.endpoints.errors import EndpointError
from prefmh_web.endpoints.judge_calls import compared
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Question
from prefmh_web.objects import OBJECT_KINDS, ObjectKind
from sampler import judges as model_judges
from sampler.declared import Declared

# The seed of the sample; each request has its own.
SAMPLE_SEED = 1
_PICTURE = re.compile(r"(base64,|\"data\":\s?\")([A-Za-z0-9+/]{80})[A-Za-z0-9+/=]+")


@dataclass(frozen=True)
class Shown:
    """One request: in which order the objects stand, what the model reads, and the body.

    Args:
        messages: role and text of each.
        body: as it is sent, but for pictures, which are cut.
        size: bytes of the whole body.
    """

    order: str
    messages: list[tuple[str, str]]
    path: str
    body: str
    size: int

    @property
    def has_cut_picture(self) -> bool:
        """Whether the body on the page leaves out most of a picture."""
        return self.size > len(self.body.encode())


@dataclass(frozen=True)
class Preview:
    """What stands below a question's prompt.

    Args:
        problems: why there is nothing to show: each with the field that it is about.
        known: what may stand between double braces.
        version: of the words; empty where there are problems.
        of: where the sample objects are from.
    """

    problems: list[tuple[str, str]]
    known: list[str]
    requests: list[Shown]
    version: str = ""
    of: str = ""
    is_own: bool = False


class _Asked(Declared):
    """What a preview rests on."""

    space: sampler.SpaceConfig
    rule: sampler.RuleConfig
    judge: sampler.JudgeConfig


def preview_of(described: Mapping[str, Any] | None, owner: User, campaign: Campaign | None) -> Preview | None:
    """Return the preview of one question as it stands in the fields; None where no model answers it.

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
        found = [
            (problem.path.rpartition(".")[2], problem.message) for problem in sampler.problems_in(error, described)
        ]
        return Preview(found, [], [])
    kind = OBJECT_KINDS[asked.space.objects]
    columns = [(each.column, each.label) for each in getattr(asked.space, "context", ())]
    measures = sampler.property_names(asked.space.model_dump(mode="json"))
    fitting = model_judges.Fitting(asked.rule.objects_shown, [label for _, label in columns], measures)
    known = model_judges.known_places(fitting)
    problems = [("Objects", "A model hears no recordings. Let people judge them.")] if kind.medium == "sound" else []
    template = asked.judge.source.prompt if isinstance(asked.judge.source, sampler.ModelSource) else None
    problems += model_judges.template_problems(template, fitting) if template else []
    if problems:
        return Preview(problems, known, [])
    prompt = prompt_of(asked.judge, asked.rule, kind.name, has_context=bool(columns))
    rows = _rows_of(campaign, kind)
    exhibits = [objects.exhibit_of(kind, row, endpoint, _context(row, columns), prompt) for row in rows]
    exhibits = exhibits or _samples(kind, endpoint, columns, prompt)
    of = f"Two of your {kind.nouns}" if rows else f"Sample {kind.nouns}, until your own are there"
    try:
        requests = [*_requests(asked, endpoint, prompt, exhibits)]
    except (EndpointError, ValueError) as error:
        return Preview([("Prompt", getattr(error, "reason", str(error)))], known, [])
    return Preview([], known, requests, model_judges.prompt_version(prompt), of, template is not None)


def _context(row: State, columns: Sequence[tuple[str, str]]) -> model_judges.Context:
    return tuple(model_judges.ContextLine(label, row.columns.get(column, "")) for column, label in columns)


def _requests(
    asked: _Asked, endpoint: Endpoint, prompt: model_judges.AnyPrompt, exhibits: Sequence[model_judges.Exhibit]
) -> list[Shown]:
    first, second = exhibits
    rates = asked.rule.evidence == "ratings"
    orders: dict[str, tuple[model_judges.Exhibit, ...]] = {"One object": (first,)}
    if not rates:
        orders = {"One object first": (first, second), "The other first": (second, first)}
    source = asked.judge.source
    assert isinstance(source, sampler.ModelSource)
    found = []
    for order, shown in orders.items():
        pair = None if rates else compared(asked.judge.question, *shown)
        messages = prompt.messages(*shown)
        question = question_of(source, asked.rule, endpoint, messages, seed=SAMPLE_SEED, compared=pair)
        found.append(_shown(order, question, endpoint))
    return found


def _shown(order: str, question: Question, endpoint: Endpoint) -> Shown:
    path, body = exact_request(endpoint, question)
    cut = _PICTURE.sub(r"\1\2…", body)
    return Shown(order, [_read(each) for each in question.messages], path, cut, len(body.encode()))


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
    kind: ObjectKind, endpoint: Endpoint, columns: Sequence[tuple[str, str]], prompt: model_judges.AnyPrompt
) -> list[model_judges.Exhibit]:
    context = tuple(model_judges.ContextLine(label, f"(what stands in “{column}”)") for column, label in columns)
    named = set(model_judges.named_in(prompt)) - {label for _, label in columns}
    measures = tuple(model_judges.ContextLine(name, "0.500") for name in sorted(named))
    shown = (kind.exhibit(each, sees_pictures=bool(endpoint.can_images)) for each in kind.samples)
    return [replace(each, context=context, measures=measures) for each in shown]


def versions_of(campaign: Campaign) -> list[tuple[int, str, str]]:
    """Return of each model of a readable setup its place, its question, and the version of its prompt."""
    config = campaign.config
    return [
        (place, judge.question, model_judges.prompt_version(prompt_as_of_now(campaign, place)))
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
