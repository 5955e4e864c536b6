"""Objects that no campaign has stored: samples of each kind, and what a draft would show. A page names each by a signed
address, so that nobody makes this site draw what it has not chosen itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from django.core import signing
from django.urls import reverse

import sampler
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.objects.kind import Pixels

_SALT = "prefmh_web.console.unstored"
# In the place of a code: what a diffusion model begins with.
NOISE, _NOISE_SIDE = "noise", 64
_SAMPLE_SEED = 5


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
    def templates(self) -> list[str]:
        """What draws it on the card of its kind: the first that there is."""
        return _templates_of(self.kind)

    @property
    def stored(self) -> StoredObject:
        """The object as presenters take it."""
        return StoredObject(self.content, pixels=_Decoded(self.code) if self.code else None)

    @property
    def stored_beside(self) -> StoredObject | None:
        """The object that it is seen beside, if there is one."""
        return StoredObject(self.beside) if self.beside else None


@dataclass(frozen=True)
class Sample:
    """One of the two objects by which a kind is shown where a campaign has none yet.

    Args:
        kind: the name of the kind.
        number: which of them, 0 or 1.
    """

    kind: str
    number: int = 0

    @property
    def content(self) -> str:
        """The object's content."""
        return self.stored.content

    @property
    def address(self) -> str:
        """Where its picture is, for the kinds that have one."""
        return reverse("console:unstored", args=[signing.dumps((self.kind, self.number), salt=_SALT)])

    @property
    def stored(self) -> StoredObject:
        """The object as presenters take it."""
        return OBJECT_KINDS[self.kind].samples[self.number]

    @property
    def stored_beside(self) -> None:
        """None: it is seen alone."""

    @property
    def templates(self) -> list[str]:
        """What draws it on the card of its kind: the first that there is."""
        return _templates_of(self.kind)

    @property
    def option(self) -> Mapping[str, Any]:
        """What a voter's card shows of it."""
        return OBJECT_KINDS[self.kind].options(self.content, self.content)[0]


OF_NOISE = Unstored("images", NOISE, NOISE)


def read(signed: str) -> Unstored | Sample:
    """Return the object of an address.

    Raises:
        BadSignature: the address is none of ours.
    """
    found = signing.loads(signed, salt=_SALT)
    return Sample(*found) if len(found) == 2 else Unstored(*found)


def pair_of(kind: str) -> tuple[Unstored | Sample, Unstored | Sample]:
    """Return two objects of a kind, which hold the place of those of a campaign."""
    return (OF_NOISE, OF_NOISE) if kind == NOISE else (Sample(kind, 0), Sample(kind, 1))


def _templates_of(kind: str) -> list[str]:
    return [f"objects/{kind}/card.html", f"objects/{kind}/thumbnail.html"]


@lru_cache
def _space_of(kind: str) -> tuple[Any, sampler.Plan[Any]]:
    described = {
        "version": 1,
        "space": {"kind": kind},
        "kernel": {"kind": "independent"},
        "judges": [{"question": "Which?", "votes": 1}],
        "chains": 2,
        "steps": 1,
        "seed": _SAMPLE_SEED,
    }
    plan = sampler.parse_config(described).build()
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
