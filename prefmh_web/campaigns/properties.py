"""What can be measured of objects without asking anybody."""

import logging
import re
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache

import numpy as np

import sampler
from prefmh_web.campaigns import started
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.objects import media

logger = logging.getLogger(__name__)

# What a chain's card says of its object, in its width: each part where the property it shows is known.
_LINES = {
    "texts": ("{words} words", "reading ease {readability:.0f}", "{dialogue:.0%} dialogue"),
    "molecules": ("QED {qed:.2f}", "SA {synthetic_accessibility:.1f}", "{weight:.0f} Da", "logP {log_p:.1f}"),
    "images": ("colourfulness {colourfulness:.0f}", "contrast {contrast:.2f}", "symmetry {symmetry:.2f}"),
}
_NAMED = re.compile(r"\{(\w+)")
Properties = Mapping[str, float | int | str | None]


def line(state: State) -> str:
    """Return the properties that matter most, in one line; those that nothing can be said of are left out."""
    try:
        found = properties_of(state)
    except OSError:
        # A lost file is for whoever runs the server to mend, and no reason to show nothing of a whole campaign.
        logger.exception("the picture of state %s cannot be read", state.pk)
        return "its picture cannot be read"
    parts = _LINES[state.campaign.objects_kind]
    return " · ".join(part.format(**found) for part in parts if found[_NAMED.search(part)[1]] is not None)


def properties_of(state: State) -> Properties:
    """Return every property by name, None where it has no value; units are in the docstrings of `sampler`'s
    descriptions.

    Raises:
        OSError: the file of its picture is not there, or cannot be read.
    """
    if state.campaign.objects_kind == "texts":
        return _of_text(state.content)
    if state.campaign.objects_kind == "molecules":
        return _of_molecule(state.content)
    return _of_image(state.campaign, state.picture.name, "" if state.picture else state.code)


@lru_cache(maxsize=2048)
def _of_text(text: str) -> Properties:
    return asdict(sampler.describe_text(text))


@lru_cache(maxsize=2048)
def _of_molecule(smiles: str) -> Properties:
    found = asdict(sampler.describe_molecule(smiles))
    return found | {"alerts": "; ".join(found["alerts"])}


@lru_cache(maxsize=2048)
def _of_image(campaign: Campaign, file: str, code: str) -> Properties:
    return asdict(sampler.describe_image(pixels_of(campaign, file, code)))


def pixels_of(campaign: Campaign, file: str, code: str) -> np.ndarray:
    """Return an image, sRGB, shape (height, width, 3): one that is stored, or what a code says if none is."""
    if file:
        return media.pixels_in(file)
    space = started.plan_of(campaign).space
    return space.pixels(space.decode(code))
