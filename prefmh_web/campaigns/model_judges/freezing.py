"""Fixing what a model judge is: where it is asked, in which words, and how its reply is drawn.

    frozen_as        all of that as plain data, stored with the judge and exported as judges.json
    drift            why a judge cannot be asked as it was frozen any more

`frozen_judges.py` reads what is stored here.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

import sampler
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.model_judges.frozen_judges import (
    PROFILE,
    WHERE,
    asked_endpoint,
    frozen_of,
    model_source,
)
from prefmh_web.campaigns.model_judges.kinds import kind_of
from prefmh_web.campaigns.models import Campaign, Judge
from prefmh_web.endpoints import truth
from prefmh_web.endpoints.client import LABEL_TOKENS
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.judge_calls import MOST_ASKS, confines
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.protocol import CHAT
from prefmh_web.endpoints.servers import Dialect, Question, Server
from sampler import judges as model_judges

UNVERIFIED = "law of the sampler not verified"
UNTESTED = "log-probabilities not tested against replies"


def frozen_as(campaign: Campaign, place: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return what a campaign's judge is, as plain data.

    Args:
        place: which judge of the config.
        endpoint: as it is now.
    """
    config = campaign.config
    source = model_source(config, place)
    prompt = prompt_as_of_now(campaign, config, place)
    profile = {name: getattr(endpoint, name) for name in PROFILE}
    # By what *Test* saw, whichever version of the program has stored it.
    profile["samples_plainly"], profile["sampling"] = truth.plainness(endpoint)
    return {
        "frozen_at": timezone.now().isoformat(timespec="seconds"),
        "endpoint": endpoint.name,
        **{name: str(getattr(endpoint, name)) for name in WHERE},
        "profile": profile,
        "request": (request := _request(config, place, endpoint)),
        **_beside(endpoint, source, request),
        **({"negotiated": endpoint.profile} if endpoint.profile else {}),
        **({"law": law} if (law := _doubt(source, endpoint)) else {}),
        "first_token_request": _first_token_request(endpoint, source) if source.votes == "log-probabilities" else None,
        "most_asks": MOST_ASKS,
        **({} if endpoint.thinking_tokens is None else {"thinking_tokens": endpoint.thinking_tokens}),
        **({"vision": source.vision.model_dump(mode="json")} if source.vision else {}),
        "prompt": prompt.stored(),
        # Our own words follow from the prompt, and their records stay as they were.
        **({"prompt_version": model_judges.prompt_version(prompt)} if source.prompt else {}),
    }


def drift(campaign: Campaign, judge: Judge, now: Endpoint) -> str:
    """Return why a frozen judge of a started campaign cannot be asked as it was frozen; empty if it can.

    Args:
        now: the row of its endpoint as it is now.
    """
    frozen = frozen_of(judge)
    for name, words in (("base_url", "address"), ("model", "model")):
        if getattr(now, name) != frozen[name]:
            return (
                f"the endpoint “{now.name}” has another {words} now, {getattr(now, name)}; the campaign was started "
                f"with {frozen[name]}. Put that back, then ask again"
            )
    config, asked = started_campaign(campaign).config, asked_endpoint(judge, now)
    request = _request(config, judge.place, asked)
    path = _beside(asked, model_source(config, judge.place), request).get("path")
    if request != frozen["request"] or path != frozen.get("path"):
        return (
            "this version of the program would send other sampling parameters than those that the campaign was "
            "started with. Go on with the version that started it"
        )
    return ""


def prompt_as_of_now(campaign: Campaign, config: sampler.ChainConfig, place: int) -> model_judges.AnyPrompt:
    """Return the words in which one of a config's judges is asked: its own, or those of this version of the program."""
    question, kind = config.judges[place].question, kind_of(config, place)
    source = config.judges[place].source
    if isinstance(source, sampler.ModelSource) and source.prompt:
        return kind.own_prompt(source.prompt, question, config.rule)
    prompt = kind.prompt(campaign.object_kind.name, question, config.rule, has_context=bool(config.context))
    vision = source.vision if isinstance(source, sampler.ModelSource) else None
    return prompt if vision is None else vision.worded(prompt)


def server_of(endpoint: Endpoint, source: sampler.ModelSource) -> Server:
    """Return how the server of an endpoint is asked by one judge: in a chat, or to complete its prompt.

    Raises:
        Unable: it takes chats only.
    """
    server = Dialect(endpoint.dialect).server
    if source.prompt is None or not source.prompt.completion:
        return server
    if (found := server.completing()) is None:
        raise Unable(f"a server of the kind {Dialect(endpoint.dialect).label} takes chats only, and completes no text")
    return found


def _doubt(source: sampler.ModelSource, endpoint: Endpoint) -> str:
    """Return what is not known of the law of a judge's votes; empty where *Test* has seen it."""
    if source.votes == "sampled":
        return UNVERIFIED if truth.why_untold(endpoint) else ""
    return "" if truth.was_tested(endpoint) else UNTESTED


def _request(config: sampler.ChainConfig, place: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return the body of a request for one reply, without its messages and its seed."""
    choices = kind_of(config, place).choices(config.rule) if confines(endpoint) else ()
    source = model_source(config, place)
    question = Question(
        endpoint.model,
        max_tokens=LABEL_TOKENS,
        temperature=source.temperature,
        choices=choices,
        thinking=endpoint.thinking_tokens,
    )
    return server_of(endpoint, source).settled(question)


def _beside(endpoint: Endpoint, source: sampler.ModelSource, request: dict[str, Any]) -> dict[str, Any]:
    """Return what the bodies of some servers do not hold at their top: where a request goes, and its temperature."""
    path = server_of(endpoint, source).path(endpoint.model).text
    told = {} if path == CHAT.text else {"path": path}
    return told if "temperature" in request else told | {"temperature": source.temperature}


def _first_token_request(endpoint: Endpoint, source: sampler.ModelSource) -> dict[str, Any]:
    return server_of(endpoint, source).settled(Question(endpoint.model, log_probabilities=True))
