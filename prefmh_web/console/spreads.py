"""How the measured properties of a campaign's samples are spread, beside those of draws from its base distribution.

What is drawn and measured is bounded, and kept in memory until another step is decided. It takes up to some seconds, so
pages load it after themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.frozen import plan_of, started_campaign
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.campaigns.monitoring.results import samples_in, shown_samples
from prefmh_web.console.plots import Plot, histogram
from prefmh_web.console.unstored import Unstored
from prefmh_web.objects import ObjectKind, StoredObject

_MOST = 400
# A picture takes about a hundred times as long to measure as a text.
_MOST_FILES = 100
_SEED = 20
_FEWEST = 2
_NOT_DRAWN = {
    "molecules": "The base distribution of these molecules is known up to a factor only, so nothing is drawn from it.",
    "model-texts": "A model server writes the texts of the base distribution, and none are asked for only to compare.",
    "model-images": "A model makes the images of the base distribution, and none are made only to compare.",
}


@dataclass(frozen=True)
class Spreads:
    """Histograms.

    Args:
        plots: one for each property that is a number.
        measured: samples that were measured, evenly over all.
        drawn: draws from the base distribution beside them; 0 where it cannot be drawn.
        not_drawn: why it cannot; empty if it can.
    """

    plots: Sequence[Plot]
    measured: int
    drawn: int
    not_drawn: str


def spreads_of(campaign: Campaign) -> Spreads:
    """Return the spreads of a started campaign's samples so far."""
    return _spreads(campaign.pk, sum(campaign.chains.values_list("step", flat=True)))


@lru_cache(maxsize=32)
def _spreads(campaign_id: int, decided: int) -> Spreads:
    """Return the spreads of a campaign as of when so many steps were decided."""
    campaign = Campaign.objects.get(pk=campaign_id)
    kind = campaign.object_kind
    most = _MOST if kind.medium == "words" else _MOST_FILES
    samples, draws = _measured(kind, _evenly(campaign, most)), _measured(kind, _drawn(campaign, most))
    plots = [
        histogram(name.replace("_", " "), found, name.replace("_", " "), beside=draws.get(name))
        for name, found in samples.items()
        if len(found) >= _FEWEST
    ]
    measured, drawn = (max(map(len, each.values()), default=0) for each in (samples, draws))
    return Spreads(plots, measured, drawn, _NOT_DRAWN.get(started_campaign(campaign).config.space.kind, ""))


def _evenly(campaign: Campaign, most: int) -> list[StoredObject]:
    # There may be millions, so nothing but their keys is read of those that are not chosen.
    keys = np.fromiter(samples_in(campaign).values_list("pk", flat=True).iterator(), dtype=np.int64)
    chosen = keys[np.unique(np.linspace(0, len(keys) - 1, most).astype(int))].tolist() if len(keys) else []
    return [objects.stored(sample.state) for sample in shown_samples(campaign, chosen)]


def _drawn(campaign: Campaign, most: int) -> list[StoredObject]:
    """Return draws from p0; nothing where it cannot be drawn here. A space starts its chains at such draws."""
    config = started_campaign(campaign).config
    if config.space.kind in _NOT_DRAWN:
        return []
    space: Any = plan_of(campaign).space
    rng = np.random.default_rng(_SEED)
    states = [space.start(rng, number % config.chains) for number in range(most)]
    if isinstance(space, sampler.Catalog):
        rows = {row.place: row for row in State.objects.filter(campaign=campaign, place__in=set(states))}
        for row in rows.values():
            row.campaign = campaign
        return [objects.stored(rows[state]) for state in states]
    name = config.space.objects
    codes = [space.encode(state) if name == "images" else "" for state in states]
    return [Unstored(name, space.content(state), code).stored for state, code in zip(states, codes, strict=True)]


def _measured(kind: ObjectKind, shown: Iterable[StoredObject]) -> dict[str, list[float]]:
    """Return each measure's numbers; objects without one are left out of it."""
    found: dict[str, list[float]] = {}
    for each in shown:
        for name, value in kind.measures(each).items():
            if isinstance(value, (int, float)) and math.isfinite(value):
                found.setdefault(name, []).append(float(value))
    return found
