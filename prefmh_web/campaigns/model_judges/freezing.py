"""Fixing what a model judge is: where it is asked, in which words, and how its reply is drawn.

    frozen_as        all of that as plain data, stored with the judge and exported as judges.json
    drift            why a judge cannot be asked as it was frozen any more
    ensure_frozen    for a campaign that a version without this started: its copy says so

`frozen_judges.py` reads what is stored here.
"""

from __future__ import annotations

from typing import Any

from django.utils import timezone

import sampler
from prefmh_web.campaigns.model_judges.frozen_judges import (
    PROFILE,
    WHERE,
    asked_endpoint,
    endpoint_now,
    frozen_of,
    model_source,
)
from prefmh_web.campaigns.model_judges.kinds import kind_of
from prefmh_web.campaigns.models import Campaign, Judge
from prefmh_web.endpoints import dialects
from prefmh_web.endpoints.client import LABEL_TOKENS
from prefmh_web.endpoints.judge_calls import MOST_ASKS, confines
from prefmh_web.endpoints.models import Endpoint
from sampler import judges as model_judges

AT_THE_START = "when the campaign started"
LATER = "at the first turn after an upgrade; how it was asked before is not known"


def frozen_as(campaign: Campaign, place: int, endpoint: Endpoint, how: str) -> dict[str, Any]:
    """Return what a campaign's judge is, as plain data.

    Args:
        place: which judge of the recipe.
        endpoint: as it is now.
        how: `AT_THE_START` or `LATER`.
    """
    recipe = campaign.parsed_recipe
    source = model_source(recipe, place)
    profile = {name: getattr(endpoint, name) for name in PROFILE}
    if endpoint.samples_plainly is not None:
        profile["sampling"] = endpoint.sampling_words
    return {
        "frozen": how,
        "frozen_at": timezone.now().isoformat(timespec="seconds"),
        "endpoint": endpoint.name,
        **{name: str(getattr(endpoint, name)) for name in WHERE},
        "profile": profile,
        "request": _request(recipe, place, endpoint),
        "first_token_request": _first_token_request(endpoint) if source.votes == "log-probabilities" else None,
        "most_asks": MOST_ASKS,
        "prompt": prompt_as_of_now(campaign, recipe, place).stored(),
    }


def drift(campaign: Campaign, judge: Judge) -> str:
    """Return why a frozen judge cannot be asked as it was frozen; empty if it can."""
    now, frozen = endpoint_now(judge), frozen_of(judge)
    for name, words in (("base_url", "address"), ("model", "model")):
        if getattr(now, name) != frozen[name]:
            return (
                f"the endpoint “{now.name}” has another {words} now, {getattr(now, name)}; the campaign was started "
                f"with {frozen[name]}. Put that back, then ask again"
            )
    recipe, asked = campaign.parsed_recipe, asked_endpoint(judge)
    if _request(recipe, judge.place, asked) != frozen["request"]:
        return (
            "this version of the program would send other sampling parameters than those that the campaign was "
            "started with. Go on with the version that started it"
        )
    return ""


def ensure_frozen(campaign: Campaign, judge: Judge) -> None:
    """Freeze a judge that a version without frozen judges started, as its endpoint is now."""
    if judge.frozen is None:
        frozen = frozen_as(campaign, judge.place, endpoint_now(judge), LATER)
        # A guarded update: of two turns at once, the first one's copy stays.
        Judge.objects.filter(pk=judge.pk, frozen__isnull=True).update(frozen=frozen)
        judge.refresh_from_db(fields=("frozen",))


def prompt_as_of_now(campaign: Campaign, recipe: sampler.Recipe, place: int) -> model_judges.Prompt:
    """Return the words in which this version of the program asks one of a recipe's judges."""
    question = recipe.judges[place].question
    return kind_of(recipe, place).prompt(campaign.object_kind.name, question, recipe.rule)


def _request(recipe: sampler.Recipe, place: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return the body of a request for one reply, without its messages and its seed."""
    fields = dialects.sampling(endpoint.dialect, model_source(recipe, place).temperature, 0)
    if confines(endpoint):
        fields |= dialects.confined(endpoint.dialect, kind_of(recipe, place).choices(recipe.rule))
    return _without_what_varies(
        dialects.chat(endpoint.dialect, endpoint.model, [], max_tokens=LABEL_TOKENS, fields=fields)
    )


def _first_token_request(endpoint: Endpoint) -> dict[str, Any]:
    fields = dialects.sampling(endpoint.dialect, 1.0, 0) | dialects.log_probabilities()
    return _without_what_varies(dialects.chat(endpoint.dialect, endpoint.model, [], max_tokens=1, fields=fields))


def _without_what_varies(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in ("messages", "seed")}
