"""Objects and chains that no campaign has stored: samples of each kind, and what voters would see of a draft.

A page names each object by a signed address, so that nobody makes this site draw what it has not chosen itself. Chains
are walked as the campaign itself would, from its config and seed, and nothing is written. Where a model makes the
objects there is nothing to compute: nobody is asked for a preview.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from django.core import signing
from django.urls import reverse

import sampler
from prefmh_web.campaigns.frozen import catalog_of
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.campaigns.objects import context_of
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.objects.kind import Pixels
from sampler.judges import Context

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


# Of a step that needs no vote, the next one is drawn: so many at most, and for so long.
_MOST_STEPS, _LONGEST_S = 200, 1.0
# Moves between two pairs, at most: more would take too long for a page.
_MOST_MOVES = 512


class NotComputable(Exception):  # noqa: N818 - no error, but what a page tells
    """There is no pair to show before the start; the message says why."""


@dataclass(frozen=True)
class Seen:
    """An object as a page shows it."""

    content: str
    address: str
    context: Context = ()


class Rehearsal:
    """The chains of a draft, whose list has been read if it has one.

    Raises:
        NotComputable: a model makes the objects, or the walk is too long.
    """

    def __init__(self, campaign: Campaign):
        config = campaign.config
        if isinstance(config.space, (sampler.ServedTextsConfig, sampler.ServedImagesConfig)):
            raise NotComputable("A model makes the objects once the campaign has started. These only hold their place.")
        if _moves_of(config) > _MOST_MOVES:
            raise NotComputable("So many moves between two pairs take a while, so these are samples.")
        self._config, self._campaign = config, campaign
        try:
            self.plan = config.build(None if config.generates else catalog_of(campaign))
        except sampler.ConfigError as error:
            raise NotComputable(f"The first pair cannot be drawn yet: {error}.") from error

    def position(self, chain: int, step: int = 0, code: str = "") -> sampler.Position[Any]:
        """Return where a chain stands; at its start if there is no code."""
        if not code:
            return sampler.begin(self.plan, chain)
        state = self._space.decode(code) if self._config.generates else int(code)
        return sampler.Position(chain, step, state)

    def code_of(self, state: Any) -> str:
        """Return what `position` takes back."""
        return str(self._space.encode(state)) if self._config.generates else str(state)

    def next_pair(self, position: sampler.Position[Any]) -> sampler.Comparison[Any]:
        """Return the next comparison of a chain that needs a vote.

        Raises:
            NotComputable: there is none within the steps that are looked at.
        """
        until = time.monotonic() + _LONGEST_S
        for _ in range(_MOST_STEPS):
            drawn = sampler.ask(self.plan, position)
            verdict = sampler.tell(drawn, sampler.Tally.empty(len(drawn.budgets)))
            if verdict is sampler.Verdict.UNDECIDED and not drawn.is_identity:
                return drawn
            position = sampler.advance(position, drawn, verdict)
            if time.monotonic() > until:
                break
        raise NotComputable("The first steps of this chain need no vote, so these are samples.")

    def seen(self, state: Any, beside: Any) -> Seen:
        """Return how an object of a pair is shown beside the other."""
        kind = self._config.space.objects
        if not self._config.generates:
            rows = {row.place: row for row in self._rows(state, beside)}
            return _seen_of(rows[state], rows[beside].content, self._config)
        space = self._space
        code = space.encode(state) if kind == "images" else ""
        other = space.content(beside) if kind == "molecules" else ""
        shown = Unstored(kind, space.content(state), code, other)
        return Seen(shown.content, shown.address)

    def _rows(self, *places: int) -> list[State]:
        return list(State.objects.filter(campaign=self._campaign, place__in=places))

    @property
    def _space(self) -> sampler.Space[Any]:
        space: Any = self.plan.space
        return space


def _seen_of(row: State, beside: str, config: sampler.ChainConfig) -> Seen:
    kind = config.space.objects
    if kind == "images":
        address = reverse("console:picture", args=[row.pk])
    else:
        address = Unstored(kind, row.content, "", beside).address if kind == "molecules" else ""
    return Seen(row.content, address, context_of(row, config))


def _moves_of(config: sampler.ChainConfig) -> int:
    kernel: Any = config.kernel
    return max(each.length for each in kernel.length) if kernel.kind == "walk" else 1
