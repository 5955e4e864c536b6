"""Objects that no campaign has stored: samples of each kind, and what a draft would show. A page names each by a signed
address, so that nobody makes this site draw what it has not chosen itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from django.core import signing
from django.urls import reverse

import sampler
from prefmh_web.objects import StoredObject
from prefmh_web.objects.kind import Pixels

_SALT = "prefmh_web.console.unstored"
# In the place of a code: what a diffusion model begins with.
NOISE, _NOISE_SIDE = "noise", 64
_WRITTEN = "written"
_SAMPLE_SEED = 5
_OF_A_MODEL = "The lighthouse had been dark for a year when the keeper’s daughter came back with a lamp of her own."
_ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"
_KINDS_OF = {
    "texts": ("texts",),
    "model-texts": (_WRITTEN,),
    "molecules": ("molecules",),
    "images": ("images",),
    "model-images": (NOISE,),
    "catalog": ("texts", "molecules", "images"),
}


@dataclass(frozen=True)
class Unstored:
    """An object.

    Args:
        kind: the name of its kind.
        content: as a stored one has it.
        code: of a pattern, what the decoder makes it of; empty for other objects.
        beside: the content of the object that it is seen beside.
    """

    kind: str
    content: str
    code: str = ""
    beside: str = ""

    @property
    def address(self) -> str:
        """Where its picture is, for the kinds that have one."""
        described = (self.kind, self.content, self.code, self.beside)
        return reverse("console:unstored", args=[signing.dumps(described, salt=_SALT, compress=True)])

    @property
    def stored(self) -> StoredObject:
        """The object as presenters take it."""
        return StoredObject(self.content, pixels=_Decoded(self.code) if self.code else None)

    @property
    def stored_beside(self) -> StoredObject | None:
        """The object that it is seen beside, if there is one."""
        return StoredObject(self.beside) if self.beside else None


def read(signed: str) -> Unstored:
    """Return the object of an address.

    Raises:
        BadSignature: the address is none of ours.
    """
    return Unstored(*signing.loads(signed, salt=_SALT))


@lru_cache
def samples_of(space: str) -> tuple[Unstored, ...]:
    """Return what a card shows of the objects of a space."""
    return tuple(_sample(kind) for kind in _KINDS_OF.get(space, ()))


@lru_cache
def pair_of(kind: str) -> tuple[Unstored, Unstored]:
    """Return two objects of a kind, which hold the place of those of a campaign."""
    if kind == NOISE:
        return _sample(kind), _sample(kind)
    if kind == "molecules":
        return Unstored(kind, _ASPIRIN), Unstored(kind, "CC(=O)Nc1ccc(O)cc1")
    return _drawn(kind, 0), _drawn(kind, 1)


def _sample(kind: str) -> Unstored:
    if kind == NOISE:
        return Unstored("images", NOISE, NOISE)
    if kind == _WRITTEN:
        return Unstored("texts", _OF_A_MODEL)
    return Unstored(kind, _ASPIRIN) if kind == "molecules" else _drawn(kind, 0)


def _drawn(kind: str, chain: int) -> Unstored:
    space, plan = _space_of(kind)
    state = sampler.begin(plan, chain).state
    return Unstored(kind, space.content(state), space.encode(state) if kind == "images" else "")


@lru_cache
def _space_of(kind: str) -> tuple[Any, sampler.Plan[Any]]:
    described = {
        "version": 2,
        "space": {"kind": kind},
        "kernel": {"kind": "independent"},
        "judges": [{"question": "Which?", "budget": 1}],
        "chains": 2,
        "steps": 1,
        "seed": _SAMPLE_SEED,
    }
    plan = sampler.parse_recipe(described).build()
    return plan.space, plan


@dataclass(frozen=True)
class _Decoded:
    code: str

    def __call__(self) -> Pixels:
        if self.code == NOISE:
            noise = np.random.default_rng(_SAMPLE_SEED).normal(128, 48, (_NOISE_SIDE, _NOISE_SIDE, 3))
            return noise.clip(0, 255).astype(np.uint8).repeat(4, axis=0).repeat(4, axis=1)
        space, _ = _space_of("images")
        pixels: Pixels = space.pixels(space.decode(self.code))
        return pixels
