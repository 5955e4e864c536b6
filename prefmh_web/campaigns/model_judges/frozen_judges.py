"""What a model judge is, fixed when its campaign starts: where it is asked, in which words, and how its reply is drawn.

    frozen_as       all of that as plain data, stored with the judge and exported as judges.json
    asked_endpoint  the endpoint as it was then, whatever its row says now; keys, prices and limits are those of now
    drift           why the judge cannot be asked as it was frozen any more
    row_of          which model a reply said it is from, as a row that votes and ratings name

A campaign that was started by a version without this gets its frozen copy at its next turn, and the copy says so.
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns import recipes
from prefmh_web.campaigns.models import Campaign, Judge, ReplyIdentity
from prefmh_web.endpoints import dialects
from prefmh_web.endpoints.client import LABEL_TOKENS
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.judge_calls import MOST_ASKS, confines
from prefmh_web.endpoints.models import Endpoint
from sampler import judges as model_judges

AT_THE_START = "when the campaign started"
LATER = "at the first turn after an upgrade; how it was asked before is not known"
# An endpoint's fields that decide what its replies are. Its key, prices, limits and waiting times do not.
_WHERE = ("base_url", "model", "dialect")
_PROFILE = ("can_vary", "can_confine", "can_log_probabilities", "can_images", "samples_plainly", "context_tokens")


def frozen_as(campaign: Campaign, place: int, endpoint: Endpoint, how: str) -> dict[str, Any]:
    """Return what a campaign's judge is, as plain data.

    Args:
        place: which judge of the recipe.
        endpoint: as it is now.
        how: `AT_THE_START` or `LATER`.
    """
    recipe = recipes.recipe_of(campaign)
    source = recipe.judges[place].source
    profile = {name: getattr(endpoint, name) for name in _PROFILE}
    if endpoint.samples_plainly is not None:
        profile["sampling"] = endpoint.sampling_words
    return {
        "frozen": how,
        "frozen_at": timezone.now().isoformat(timespec="seconds"),
        "endpoint": endpoint.name,
        **{name: str(getattr(endpoint, name)) for name in _WHERE},
        "profile": profile,
        "request": _request(campaign, recipe, place, endpoint),
        "first_token_request": _first_token_request(endpoint) if source.votes == "log-probabilities" else None,
        "most_asks": MOST_ASKS,
        "prompt": prompt_as_of_now(campaign, recipe, place).stored(),
    }


def asked_endpoint(judge: Judge) -> Endpoint:
    """Return the endpoint of a frozen judge as it was frozen. Not to be saved."""
    endpoint = Endpoint.objects.get(pk=judge.endpoint_id)
    for name in _WHERE:
        setattr(endpoint, name, judge.frozen[name])
    for name in _PROFILE:
        setattr(endpoint, name, judge.frozen["profile"].get(name))
    endpoint.sampling_words = judge.frozen["profile"].get("sampling", "")
    return endpoint


def prompt_of(judge: Judge) -> model_judges.Prompt:
    """Return the words in which a frozen judge is asked."""
    return model_judges.Prompt.of(judge.frozen["prompt"])


def drift(campaign: Campaign, judge: Judge) -> str:
    """Return why a frozen judge cannot be asked as it was frozen; empty if it can."""
    now = Endpoint.objects.get(pk=judge.endpoint_id)
    for name, words in (("base_url", "address"), ("model", "model")):
        if getattr(now, name) != judge.frozen[name]:
            return (
                f"the endpoint “{now.name}” has another {words} now, {getattr(now, name)}; the campaign was started "
                f"with {judge.frozen[name]}. Put that back, then ask again"
            )
    recipe, asked = recipes.recipe_of(campaign), asked_endpoint(judge)
    if _request(campaign, recipe, judge.place, asked) != judge.frozen["request"]:
        return (
            "this version of the program would send other sampling parameters than those that the campaign was "
            "started with. Go on with the version that started it"
        )
    return ""


def using(endpoint: Endpoint, name: str) -> list[Campaign]:
    """Return the campaigns that have started, are not finished, and ask an endpoint or have it write.

    Args:
        name: the endpoint's, by which a recipe names its writer.
    """
    started = (Campaign.Status.RUNNING, Campaign.Status.PAUSED)
    asks = Q(judges__endpoint=endpoint)
    writes = Q(owner=endpoint.owner_id, recipe__space__kind="model-texts", recipe__space__model=name)
    return list(Campaign.objects.filter(asks | writes, status__in=started).distinct())


def ensure_frozen(campaign: Campaign, judge: Judge) -> None:
    """Freeze a judge that a version without frozen judges started, as its endpoint is now."""
    if judge.frozen is None:
        frozen = frozen_as(campaign, judge.place, Endpoint.objects.get(pk=judge.endpoint_id), LATER)
        # A guarded update: of two turns at once, the first one's copy stays.
        Judge.objects.filter(pk=judge.pk, frozen__isnull=True).update(frozen=frozen)
        judge.refresh_from_db(fields=("frozen",))


def accepted(judge: Judge) -> frozenset[Identity]:
    """Return whose replies count; empty while no reply has come, and the first decides."""
    found = judge.identities.filter(accepted_at__isnull=False)
    return frozenset(Identity(*names) for names in found.values_list("model", "system_fingerprint"))


def accept_at_start(judge: Judge, seen: Collection[Identity]) -> None:
    """Take the identities that were seen in the test at the start as the judge's own."""
    for identity in seen:
        _store(judge, identity, timezone.now())


def row_of(judge: Judge, identity: Identity) -> ReplyIdentity:
    """Return the row of an identity, made if it is new; accepted if the judge has no other."""
    found = judge.identities.filter(**_names(identity)).first()
    if found is not None:
        return found
    with transaction.atomic():
        # Locked: of two first replies at once, one decides.
        Judge.objects.select_for_update(no_key=True).get(pk=judge.pk)
        is_first = not judge.identities.filter(accepted_at__isnull=False).exists()
        return _store(judge, identity, timezone.now() if is_first else None)


def stop(judge: Judge, reason: str) -> None:
    """Ask a judge no more, until somebody has seen to it; the page and `doctor` show the reason."""
    Judge.objects.filter(pk=judge.pk).update(stopped_because=reason[:500])


def go_on(campaign: Campaign, *, accepting: bool) -> int:
    """Ask stopped judges again; return how many there were.

    Args:
        accepting: whether replies of the models seen since count from now on. The record says which votes they gave.
    """
    stopped = campaign.judges.exclude(stopped_because="")
    with transaction.atomic():
        if accepting:
            new = ReplyIdentity.objects.filter(judge__in=stopped, accepted_at__isnull=True)
            new.update(accepted_at=timezone.now())
        return stopped.update(stopped_because="")


def _store(judge: Judge, identity: Identity, accepted_at: datetime | None) -> ReplyIdentity:
    row, _ = ReplyIdentity.objects.get_or_create(judge=judge, **_names(identity), defaults={"accepted_at": accepted_at})
    return row


def _names(identity: Identity) -> dict[str, str]:
    return {"model": identity.model, "system_fingerprint": identity.system_fingerprint}


def prompt_as_of_now(campaign: Campaign, recipe: sampler.Recipe, place: int) -> model_judges.Prompt:
    """Return the words in which this version of the program asks one of a recipe's judges."""
    kind, question = campaign.objects_kind, recipe.judges[place].question
    if campaign.is_rated:
        return model_judges.rating_prompt(kind, question, recipe.rule.scale)
    return model_judges.pairwise_prompt(kind, question)


def _request(campaign: Campaign, recipe: sampler.Recipe, place: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return the body of a request for one reply, without its messages and its seed."""
    choices = recipe.rule.scale.answers if campaign.is_rated else model_judges.LABELS
    fields = dialects.sampling(endpoint.dialect, recipe.judges[place].source.temperature, 0)
    if confines(endpoint):
        fields |= dialects.confined(endpoint.dialect, choices)
    return _without_what_varies(
        dialects.chat(endpoint.dialect, endpoint.model, [], max_tokens=LABEL_TOKENS, fields=fields)
    )


def _first_token_request(endpoint: Endpoint) -> dict[str, Any]:
    fields = dialects.sampling(endpoint.dialect, 1.0, 0) | dialects.log_probabilities()
    return _without_what_varies(dialects.chat(endpoint.dialect, endpoint.model, [], max_tokens=1, fields=fields))


def _without_what_varies(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in ("messages", "seed")}
