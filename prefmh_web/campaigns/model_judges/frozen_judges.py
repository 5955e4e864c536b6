"""What a model judge is: where it is asked, in which words, how its reply is drawn, and whose replies count as its own.

prompt_as_of_now, question_of    in which words, and with which parameters, this version of the program asks
frozen_as                        all of that as plain data, stored at the start and exported as judges.json
drift                            why a judge cannot be asked as it was frozen any more
asked_endpoint                   the endpoint as it was then, whatever its row says now; keys, prices and limits are
                                 those of now
row_of                           which model a reply said it is from, as a row that votes and ratings name
stop                             ask a judge no more, until somebody has seen to it
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import sql
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Judge, ReplyIdentity
from prefmh_web.endpoints import truth
from prefmh_web.endpoints.judge_calls import MOST_ASKS, question_for
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Identity
from prefmh_web.endpoints.servers import CHAT, Compared, Dialect, Question
from sampler import judges as model_judges

UNVERIFIED = "distribution of the sampler not verified"
UNTESTED = "log-probabilities not tested against replies"

# An endpoint's fields that decide what its replies are. Its key, prices, limits and waiting times do not.
_WHERE = ("base_url", "model", "dialect")
_PROFILE = ("can_vary", "can_confine", "can_log_probabilities", "can_images", "samples_plainly", "context_tokens")


def model_source(config: sampler.ChainConfig, place: int) -> sampler.ModelSource:
    """Return who answers one of a config's judges.

    Raises:
        TypeError: it is not a model.
    """
    return _model(config.judges[place])


def _model(judge: sampler.JudgeConfig) -> sampler.ModelSource:
    if not isinstance(judge.source, sampler.ModelSource):
        raise TypeError(f"the judge of “{judge.question}” is not a model")
    return judge.source


def tells_p(source: sampler.ModelSource, rule: sampler.RuleConfig) -> bool:
    """Say whether votes are drawn from the probability that the server tells for each label."""
    return source.votes == "log-probabilities" and rule.evidence != "ratings"


def prompt_as_of_now(campaign: Campaign, place: int) -> model_judges.AnyPrompt:
    """Return the words in which a judge of a campaign's config is asked, as `prompt_of` does."""
    config = campaign.config
    kind = campaign.object_kind.name
    return prompt_of(config.judges[place], config.rule, kind, has_context=bool(config.context))


def prompt_of(
    judge: sampler.JudgeConfig, rule: sampler.RuleConfig, kind: str, *, has_context: bool
) -> model_judges.AnyPrompt:
    """Return the words in which a model is asked: its researcher's, or those of this version of the program.

    Args:
        kind: of the objects.
        has_context: whether columns of a list are shown with them.
    """
    source = _model(judge)
    scale = rule.scale if isinstance(rule, sampler.PointwiseConfig) else None
    if source.prompt:
        numbers = (scale.lowest, scale.highest) if scale else None
        return model_judges.OwnPrompt(source.prompt, " ".join(judge.question.split()), 1 if scale else 2, numbers)
    if scale is None:
        prompt = model_judges.pairwise_prompt(kind, judge.question, has_context=has_context)
    else:
        prompt = model_judges.rating_prompt(kind, judge.question, scale, has_context=has_context)
    return prompt if source.vision is None else source.vision.worded(prompt)


def question_of(
    source: sampler.ModelSource,
    rule: sampler.RuleConfig,
    endpoint: Endpoint,
    messages: Sequence[dict[str, Any]] = (),
    *,
    seed: int = 0,
    compared: Compared | None = None,
) -> Question:
    """Return one request of a judge.

    Args:
        compared: the pair that the messages show, for a program; None where an object is rated.
    """
    if tells_p(source, rule):
        return Question(endpoint.model, messages, log_probabilities=True, compared=compared)
    choices = rule.scale.answers if isinstance(rule, sampler.PointwiseConfig) else model_judges.LABELS
    asked = question_for(endpoint, source.temperature, choices)
    return replace(asked, messages=messages, seed=seed, compared=compared)


def frozen_as(campaign: Campaign, place: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return what a campaign's judge is, as plain data.

    Args:
        place: which judge of the config.
        endpoint: as it is now.
    """
    source, prompt = model_source(campaign.config, place), prompt_as_of_now(campaign, place)
    profile = {name: getattr(endpoint, name) for name in _PROFILE}
    # By what *Test* saw, whichever version of the program has stored it.
    profile["samples_plainly"], profile["sampling"] = truth.plainness(endpoint)
    found = {
        "frozen_at": timezone.now().isoformat(timespec="seconds"),
        "endpoint": endpoint.name,
        **{name: str(getattr(endpoint, name)) for name in _WHERE},
        "profile": profile,
        **_request(campaign.config, place, endpoint),
        "negotiated": endpoint.profile or None,
        "law": _doubt(source, endpoint) or None,
        "most_asks": MOST_ASKS,
        "thinking_tokens": endpoint.thinking_tokens,
        "vision": source.vision and source.vision.model_dump(mode="json"),
        "prompt": prompt.stored(),
        # Our own words follow from the prompt, and their records stay as they were.
        "prompt_version": model_judges.prompt_version(prompt) if source.prompt else None,
    }
    first_token = Question(endpoint.model, log_probabilities=True)
    server = Dialect(endpoint.dialect).server
    by_p = server.settled(first_token) if source.votes == "log-probabilities" else None
    return {name: value for name, value in found.items() if value is not None} | {"first_token_request": by_p}


def drift(campaign: Campaign, judge: Judge, now: Endpoint) -> str:
    """Return why a frozen judge of a started campaign cannot be asked as it was frozen; empty if it can.

    Args:
        now: the row of its endpoint as it is now.
    """
    frozen = _frozen(judge)
    for name, words in (("base_url", "address"), ("model", "model")):
        if getattr(now, name) != frozen[name]:
            return (
                f"the endpoint “{now.name}” has another {words} now, {getattr(now, name)}; the campaign was started "
                f"with {frozen[name]}. Put that back, then ask again"
            )
    request = _request(started_campaign(campaign).config, judge.place, asked_endpoint(judge, now))
    if any(request.get(name) != frozen.get(name) for name in ("request", "path")):
        return (
            "this version of the program would send other sampling parameters than those that the campaign was "
            "started with. Go on with the version that started it"
        )
    return ""


def asked_endpoint(judge: Judge, now: Endpoint) -> Endpoint:
    """Return the endpoint of a frozen judge as it was frozen. Not to be saved.

    Args:
        now: its row as it is now.
    """
    endpoint, frozen = copy(now), _frozen(judge)
    for name in _WHERE:
        setattr(endpoint, name, frozen[name])
    for name in _PROFILE:
        setattr(endpoint, name, frozen["profile"].get(name))
    endpoint.sampling_words = frozen["profile"].get("sampling", "")
    endpoint.thinking_tokens = frozen.get("thinking_tokens")
    return endpoint


def frozen_prompt(judge: Judge) -> model_judges.AnyPrompt:
    """Return the words in which a frozen judge is asked.

    Raises:
        ValueError: it is not frozen.
    """
    return model_judges.stored_prompt(_frozen(judge)["prompt"])


def using(endpoint: Endpoint, name: str) -> list[Campaign]:
    """Return the campaigns that have started, are not finished, and ask an endpoint or have it write.

    Args:
        name: the endpoint's, by which a config names its writer.
    """
    started = (Campaign.Status.RUNNING, Campaign.Status.PAUSED)
    asks = Q(judges__endpoint=endpoint)
    writes = Q(owner=endpoint.owner_id, config_data__space__kind="model-texts", config_data__space__model=name)
    return list(Campaign.objects.filter(asks | writes, status__in=started).distinct())


def accepted_rows(judge: Judge) -> dict[Identity, ReplyIdentity]:
    """Return whose replies count, with their rows; empty while no reply has come, and the first decides."""
    found = [sql.OF_IDENTITY.read(row) for row in sql.IDENTITIES.rows(judge.pk)]
    return {Identity(row.model, row.system_fingerprint): row for row in found}


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
    """Return what is not known of the law of a judge's votes; empty where *Test* has seen it."""
    if source.votes == "sampled":
        return UNVERIFIED if truth.why_untold(endpoint) else ""
    return "" if truth.was_tested(endpoint) else UNTESTED


def _request(config: sampler.ChainConfig, place: int, endpoint: Endpoint) -> dict[str, Any]:
    """Return the body of a request for one reply, without its messages and its seed; and what the bodies of some
    servers do not hold at their top: where a request goes, and its temperature.
    """
    source = model_source(config, place)
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
