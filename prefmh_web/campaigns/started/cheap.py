"""The next comparison of a chain whose kernel is cheap: drawn from memory, while the caller holds a lock.

    prepare       read what a draw needs, before any lock is taken
    start         draw where a chain starts
    next_one      draw the next comparison of a chain

Kernels on a catalog are cheap: a draw takes some microseconds. What it needs of the database, the catalog's weights,
neighbours and keys, cannot change once the campaign has started, so it is read once in each process. The comparison is
a function of (seed, chain, step, x), so it does not matter which process draws it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import sampler
from prefmh_web.campaigns.models import Campaign, Chain, State
from prefmh_web.campaigns.started.campaign import started_campaign
from prefmh_web.campaigns.started.plans import plan_of

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Rows:
    """The keys of a catalog's rows by their places, and the places by the keys."""

    keys: tuple[int, ...]
    places: Mapping[int, int]


@dataclass(frozen=True)
class Drawn:
    """A comparison, and the key of the row that it proposes."""

    comparison: sampler.Comparison[Any]
    proposal_id: int


def prepare(campaign: Campaign) -> None:
    """Read what `next_one` needs, if this process has not done so yet."""
    if _can_be_cheap(campaign):
        plan_of(campaign)
        _rows_of(campaign)


def start(campaign: Campaign, place: int) -> int | None:
    """Return the key of the row that the chain of this number starts at; None where it is a task's to draw."""
    if not _can_be_cheap(campaign):
        return None
    first: sampler.Position[int] = sampler.begin(plan_of(campaign), place)
    return _rows_of(campaign).keys[first.state]


def next_one(chain: Chain) -> Drawn | None:
    """Return the next comparison of a chain; None if its kernel is dear, or fails. Then it is a task's to draw."""
    if not _can_be_cheap(chain.campaign):
        return None
    plan, rows = plan_of(chain.campaign), _rows_of(chain.campaign)
    if chain.waits_for_others or not plan.is_cheap_at(chain.step + 1):
        return None
    try:
        drawn = sampler.ask(plan, sampler.Position(chain.place, chain.step, rows.places[chain.head_id]))
    except Exception:  # a defect of the kernel costs the chain its next pair, and nobody the vote that is being stored
        logger.exception("%s: no proposal", chain)
        return None
    return Drawn(drawn, rows.keys[drawn.proposal])


def _can_be_cheap(campaign: Campaign) -> bool:
    # Objects that chains make are encoded and stored, by a task.
    return not started_campaign(campaign).config.generates


def _rows_of(campaign: Campaign) -> _Rows:
    return _rows(campaign.pk, campaign.started_at)


# Started again under the same number, as tests do, it is another one.
@lru_cache(maxsize=64)
def _rows(campaign_id: int, started_at: datetime) -> _Rows:
    keys = tuple(State.objects.filter(campaign=campaign_id).order_by("place").values_list("pk", flat=True))
    return _Rows(keys, {key: place for place, key in enumerate(keys)})
