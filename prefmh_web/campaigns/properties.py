"""What can be measured of objects without asking anybody: for the researcher's page, and as a table to download.

Not part of the record: nothing was decided by it, and anybody can measure it again.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache

import numpy as np

import sampler
from prefmh_web.campaigns import files, plans
from prefmh_web.campaigns.cells import harmless
from prefmh_web.campaigns.export import Cut, Row
from prefmh_web.campaigns.models import Campaign, State

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
    if state.campaign.objects_kind == "texts":
        return _of_text(state.content)
    if state.campaign.objects_kind == "molecules":
        return _of_molecule(state.content)
    return _of_image(state.campaign, state.picture.name, "" if state.picture else state.code)


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
def _of_text(text: str) -> Mapping[str, float | int | str]:
    return asdict(sampler.describe_text(text))


@lru_cache(maxsize=2048)
def _of_molecule(smiles: str) -> Mapping[str, float | int | str]:
    found = asdict(sampler.describe_molecule(smiles))
    return found | {"alerts": "; ".join(found["alerts"])}


@lru_cache(maxsize=2048)
def _of_image(campaign: Campaign, file: str, code: str) -> Mapping[str, float | int | str]:
    return asdict(sampler.describe_image(pixels_of(campaign, file, code)))


def pixels_of(campaign: Campaign, file: str, code: str) -> np.ndarray:
    """Return an image, sRGB, shape (height, width, 3): one that is stored, or what a code says if none is."""
    if file:
        return files.pixels_in(file)
    space = plans.plan_of(campaign).space
    return space.pixels(space.decode(code))


def _cell(value: float | int | str) -> str:
    return harmless(value) if isinstance(value, str) else repr(value)
