"""The sampler's plan of a campaign, and where its chains stand."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from functools import lru_cache
from typing import Any

import numpy as np

import sampler
from prefmh_web.campaigns.models import Campaign, Chain, State


def plan_of(campaign: Campaign) -> sampler.Plan[Any]:
    """Return the plan of a campaign. A started campaign's is kept in memory: nothing in it can change but the length
    of its walks, once.

    Raises:
        sampler.ConfigError: the config does not parse or does not fit the catalog.
        Unable: the model that it names cannot write.
    """
    if campaign.started_at is None:
        return _build(campaign, None)
    return _built(campaign.pk, campaign.started_at, campaign.walk_length)


@lru_cache(maxsize=64)
def _built(campaign_id: int, started_at: datetime, length: int | None) -> sampler.Plan[Any]:
    return _build(Campaign.objects.get(pk=campaign_id), length)


def _build(campaign: Campaign, length: int | None) -> sampler.Plan[Any]:
    config = campaign.config
    if isinstance(config.space, sampler.ServedTextsConfig):
        # Imported here: it brings an HTTP client, which most campaigns do not need.
        from prefmh_web.endpoints import writers

        return config.build(model=writers.writer_for(campaign.owner_id, config.space), walk_length=length)
    if config.generates:
        return config.build(walk_length=length)
    return config.build(catalog_of(campaign), walk_length=length)


def catalog_of(campaign: Campaign) -> sampler.Catalog:
    """Return the list of a campaign, as it was read from its file."""
    rows = list(campaign.states.order_by("place").values_list("weight", "neighbours"))
    graph = tuple(tuple(neighbours) for _, neighbours in rows)
    weights = np.array([weight for weight, _ in rows], dtype=np.float64)
    return sampler.Catalog(weights, graph if any(graph) else ())


def position_of(chain: Chain) -> sampler.Position[Any]:
    """Return where a chain stands."""
    return sampler.Position(chain.place, chain.step, state_of(chain.campaign, chain.head))


def state_of(campaign: Campaign, row: State) -> Hashable:
    """Return the sampler's value of a stored object: its place in the catalog, or what its code says.

    Raises:
        ValueError: the code is none that the space reads.
    """
    if isinstance(plan_of(campaign).space, sampler.Catalog):
        return row.place
    state: Hashable = space_of(campaign).decode(row.code)
    return state


def space_of(campaign: Campaign) -> sampler.Space[Any]:
    """Return the space of a campaign whose chains make their objects.

    Raises:
        TypeError: its objects come from a file.
    """
    space = plan_of(campaign).space
    if not isinstance(space, sampler.Space):
        raise TypeError(f"campaign {campaign.pk} has a catalog, whose states need no code")
    return space


def decoder_of(campaign: Campaign) -> sampler.GeneratedImages:
    """Return the space of a campaign whose decoder makes the picture of a state.

    Raises:
        TypeError: its objects are others.
    """
    space = plan_of(campaign).space
    if not isinstance(space, sampler.GeneratedImages):
        raise TypeError(f"campaign {campaign.pk} has no decoder")
    return space
