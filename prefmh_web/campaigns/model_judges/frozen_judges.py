"""Model judges as they were frozen when their campaign started (`freezing.py`), and whose replies count as theirs.

asked_endpoint  the endpoint as it was then, whatever its row says now; keys, prices and limits are those of now
prompt_of       the words in which it is asked
row_of          which model a reply said it is from, as a row that votes and ratings name
stop, go_on     ask a judge no more, until somebody has seen to it
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import sql
from prefmh_web.campaigns.engine.sql import read_all
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Judge, ReplyIdentity
from prefmh_web.endpoints.identity import Identity
from prefmh_web.endpoints.models import Endpoint
from sampler import judges as model_judges

# An endpoint's fields that decide what its replies are. Its key, prices, limits and waiting times do not.
WHERE = ("base_url", "model", "dialect")
PROFILE = ("can_vary", "can_confine", "can_log_probabilities", "can_images", "samples_plainly", "context_tokens")


def asked_endpoint(judge: Judge, now: Endpoint) -> Endpoint:
    """Return the endpoint of a frozen judge as it was frozen. Not to be saved.

    Args:
        now: its row as it is now.
    """
    endpoint, frozen = copy(now), frozen_of(judge)
    for name in WHERE:
        setattr(endpoint, name, frozen[name])
    for name in PROFILE:
        setattr(endpoint, name, frozen["profile"].get(name))
    endpoint.sampling_words = frozen["profile"].get("sampling", "")
    endpoint.thinking_tokens = frozen.get("thinking_tokens")
    return endpoint


def endpoint_now(judge: Judge) -> Endpoint:
    """Return the endpoint of a judge as its row is now.

    Raises:
        TypeError: people answer.
    """
    if judge.endpoint_id is None:
        raise TypeError(f"judge {judge.pk} is not a model")
    return Endpoint.objects.get(pk=judge.endpoint_id)


def to_be_asked(campaign: Campaign, judge_id: int) -> tuple[Judge, Endpoint, bool] | None:
    """Return a model of a campaign, its endpoint as its row is now, and whether the campaign has a cap on what models
    take; None if it is not to be asked.
    """
    row = sql.JUDGE.row(judge_id, campaign.pk)
    if row is None:
        return None
    judge, endpoint, has_cap = read_all((sql.OF_JUDGE, sql.OF_ENDPOINT), row)
    return judge, endpoint, bool(has_cap)


def frozen_of(judge: Judge) -> dict[str, Any]:
    """Return what a judge was frozen as.

    Raises:
        ValueError: it is not frozen.
    """
    if judge.frozen is None:
        raise ValueError(f"judge {judge.pk} is not frozen")
    frozen: dict[str, Any] = judge.frozen
    return frozen


def model_source(config: sampler.ChainConfig, place: int) -> sampler.ModelSource:
    """Return who answers one of a config's judges.

    Raises:
        TypeError: it is not a model.
    """
    source = config.judges[place].source
    if not isinstance(source, sampler.ModelSource):
        raise TypeError(f"judge {place} is not a model")
    return source


def source_of(campaign: Campaign, judge: Judge) -> sampler.ModelSource:
    """Return how the config of a started campaign describes a model."""
    return model_source(started_campaign(campaign).config, judge.place)


def vision_of(campaign: Campaign, judge: Judge) -> sampler.Vision | None:
    """Return how a model of a started campaign is shown pictures; None where they stay as they are."""
    source = started_campaign(campaign).config.judges[judge.place].source
    return source.vision if isinstance(source, sampler.ModelSource) else None


def prompt_of(judge: Judge) -> model_judges.AnyPrompt:
    """Return the words in which a frozen judge is asked."""
    return model_judges.stored_prompt(frozen_of(judge)["prompt"])


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
