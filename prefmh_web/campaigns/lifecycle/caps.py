"""Caps on what a campaign's models may take: no start and no resuming at a cap.

`engine/caps.py` looks at them before anything is asked.
"""

from __future__ import annotations

from collections.abc import Iterator

import sampler
from prefmh_web.campaigns.engine import caps
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.model_judges.kinds import kind_of
from prefmh_web.campaigns.models import Campaign, ModelUsage
from prefmh_web.endpoints.models import Endpoint


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
