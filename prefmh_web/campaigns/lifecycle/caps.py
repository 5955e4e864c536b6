"""Caps on what a campaign's models may take: the one door through which those of a started campaign change.

    change         raise, lower or remove them; the change is an event, with who made it
    demand_room    refuse to start or to resume at a cap

`engine/caps.py` looks at them before anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction

import sampler
from prefmh_web.campaigns import events
from prefmh_web.campaigns.engine import caps
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.model_judges.kinds import kind_of
from prefmh_web.campaigns.models import Campaign, ModelUsage
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.transport import nudges


def change(campaign: Campaign, by: User, *, cost_cap: Decimal | None, request_cap: int | None) -> None:
    """Give a started campaign other caps; None for no cap. One that is paused stays so until somebody resumes it.

    Raises:
        NotPossible: it is a draft, whose setup has them, or it is finished.
    """
    with transaction.atomic():
        under_way = (Campaign.Status.RUNNING, Campaign.Status.PAUSED)
        changing = Campaign.objects.filter(pk=campaign.pk, status__in=under_way)
        # Whether the new cap is reached as well, the next turn finds, or Resume.
        if not changing.update(cost_cap=cost_cap, request_cap=request_cap, paused_because=""):
            raise NotPossible("Only the caps of a running or paused campaign can be changed here.")
        cost = None if cost_cap is None else f"{cost_cap:.2f}"
        events.note(campaign.pk, events.Kind.CAPS, by, {"cost_cap": cost, "request_cap": request_cap})
    campaign.refresh_from_db()
    nudges.nudge(nudges.watchers(campaign.pk))


def demand_room(campaign: Campaign) -> None:
    """Demand that each model of a campaign may be asked once more.

    Raises:
        NotPossible: a cap is reached, or it is not known what asking costs; the sentence says what to do.
    """
    for place, endpoint, requests in _askers(campaign):
        if reason := caps.why_reached(campaign, place, endpoint, requests):
            raise NotPossible(reason)


def _askers(campaign: Campaign) -> Iterator[tuple[int, Endpoint, int]]:
    """Yield who may be asked: the place, the endpoint, and how many requests the least takes at most."""
    config = campaign.config
    if (writer := caps.writer_of(campaign)) is not None:
        yield ModelUsage.PROPOSALS, writer, caps.REQUESTS_A_TEXT
    endpoints = dict(campaign.judges.filter(endpoint__isnull=False).values_list("place", "endpoint"))
    for place, judge in enumerate(config.judges):
        if not isinstance(judge.source, sampler.ModelSource):
            continue
        found = Endpoint.objects.filter(owner=campaign.owner_id, name=judge.source.endpoint)
        if place in endpoints:
            found = Endpoint.objects.filter(pk=endpoints[place])
        if (endpoint := found.first()) is not None:
            yield place, endpoint, kind_of(config, place).most_requests(1, endpoint)
