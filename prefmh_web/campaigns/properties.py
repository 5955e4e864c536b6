"""What can be measured of objects without asking anybody: for the researcher's page, and as a table to download.

Not part of the record: nothing was decided by it, and anybody can measure it again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache

import numpy as np
from PIL import Image

import sampler
from prefmh_web.campaigns import plans
from prefmh_web.campaigns.cells import harmless
from prefmh_web.campaigns.export import Cut, Row
from prefmh_web.campaigns.models import State

NAME = "properties.csv"
# What a chain's card says of its object, in its width.
_LINES = {
    "texts": "{words} words · reading ease {readability:.0f} · {dialogue:.0%} dialogue",
    "molecules": "QED {qed:.2f} · SA {synthetic_accessibility:.1f} · {weight:.0f} Da · logP {log_p:.1f}",
    "images": "colourfulness {colourfulness:.0f} · contrast {contrast:.2f} · symmetry {symmetry:.2f}",
}


def line(state: State) -> str:
    """Return the properties that matter most, in one line."""
    return _LINES[state.campaign.objects_kind].format(**properties_of(state))


def properties_of(state: State) -> Mapping[str, float | int | str]:
    """Return every property by name; units are in the docstrings of `sampler`'s descriptions."""
    return _measured(state.pk)


def rows(cut: Cut) -> Iterator[Row]:
    """Every object with its properties."""
    names: list[str] = []
    for state in cut.campaign.states.select_related("campaign").iterator(100):
        if cut.has_state(state):
            found = properties_of(state)
            if not names:
                names = list(found)
                yield ["state", "content", *names]
            yield [state.place, harmless(state.content), *(_cell(found[name]) for name in names)]


@lru_cache(maxsize=2048)
def _measured(state_id: int) -> Mapping[str, float | int | str]:
    state = State.objects.select_related("campaign").get(pk=state_id)
    kind = state.campaign.objects_kind
    if kind == "texts":
        return asdict(sampler.describe_text(state.content))
    if kind == "molecules":
        found = asdict(sampler.describe_molecule(state.content))
        return found | {"alerts": "; ".join(found["alerts"])}
    return asdict(sampler.describe_image(_pixels(state)))


def _pixels(state: State) -> np.ndarray:
    if state.campaign.has_catalog:
        with Image.open(state.picture) as picture:
            return np.asarray(picture.convert("RGB"))
    space = plans.plan_of(state.campaign).space
    return space.pixels(space.decode(state.code))


def _cell(value: float | int | str) -> str:
    return harmless(value) if isinstance(value, str) else repr(value)
