"""Objects and pairs that no campaign has stored: samples of each kind, and what voters would see of a draft.

A page names each object by a signed address, so that nobody makes this site draw what it has not chosen itself. A pair
is drawn as the campaign itself would, from its config and seed, and nothing is written. Where a model makes the objects
there is nothing to compute: nobody is asked for a preview.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from django.core import signing
from django.urls import reverse

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, Side, State
from prefmh_web.campaigns.objects import Pair
from prefmh_web.objects import OBJECT_KINDS, StoredObject
from prefmh_web.objects.kind import Pixels

_SALT = "prefmh_web.console.unstored"
# In the place of a code: what a diffusion model begins with, and which of a kind's samples it is.
NOISE, _NOISE_SIDE = "noise", 64
_SAMPLES = ("sample 1", "sample 2")
_SAMPLE_SEED = 5


@dataclass(frozen=True)
class Unstored:
    """An object.

    Args:
        kind: the name of its kind.
        content: as a stored one has it.
        code: of a pattern, what the decoder makes it of; of a sample, which of them it is; empty for other objects.
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
        return [f"objects/{self.kind}/card.html", f"objects/{self.kind}/thumbnail.html"]

    @property
    def option(self) -> Mapping[str, Any]:
        """What a voter's card shows of it."""
        return OBJECT_KINDS[self.kind].options(self.content, self.content)[0]

    @property
    def stored(self) -> StoredObject:
        """The object as presenters take it."""
        if self.code in _SAMPLES:
            return OBJECT_KINDS[self.kind].samples[_SAMPLES.index(self.code)]
        return StoredObject(self.content, pixels=partial(_decoded, self.code) if self.code else None)


OF_NOISE = Unstored("images", NOISE, NOISE)


def sample(kind: str, number: int = 0) -> Unstored:
    """Return one of the two objects, 0 or 1, by which a kind is shown where a campaign has none yet."""
    return Unstored(kind, OBJECT_KINDS[kind].samples[number].content, _SAMPLES[number])


def read(signed: str) -> Unstored:
    """Return the object of an address.

    Raises:
        BadSignature: the address is none of ours.
    """
    return Unstored(*signing.loads(signed, salt=_SALT))


def _decoded(code: str) -> Pixels:
    if code == NOISE:
        noise = np.random.default_rng(_SAMPLE_SEED).normal(128, 48, (_NOISE_SIDE, _NOISE_SIDE, 3))
        return noise.clip(0, 255).astype(np.uint8).repeat(4, axis=0).repeat(4, axis=1)
    space = _space_of_patterns()
    pixels: Pixels = space.pixels(space.decode(code))
    return pixels


@lru_cache
def _space_of_patterns() -> Any:
    return sampler.ImagesConfig().build()


# Of a step that needs no vote, the next one is drawn: so many at most, and for so long.
_MOST_STEPS, _LONGEST_S = 200, 1.0
# Moves between two pairs, at most: more would take too long for a page.
_MOST_MOVES = 512
_OF_PEOPLE = ("people", "panelist")


class NotComputable(Exception):  # noqa: N818 - no error, but what a page tells
    """There is no pair to show before the start; the message says why."""


def asks_people(campaign: Campaign) -> bool:
    """Whether people answer some of the questions of a campaign."""
    config = campaign.config
    return config.rule.asks_judges and any(judge.source.kind in _OF_PEOPLE for judge in config.judges)


def first_pair_of(campaign: Campaign) -> dict[str, Any] | None:
    """Return the first pair of a draft as voters will see it; None where no people are asked."""
    return pair_of(campaign, 0) if asks_people(campaign) else None


def pair_of(campaign: Campaign, number: int, question: str = "") -> dict[str, Any]:
    """Return what templates show of a pair of a readable draft that asks people, the first one of the chain of this
    number; with a `note` why these are samples, empty where they are the campaign's own.

    Args:
        number: of the chain; there may be more than the campaign has. Its questions come in turn.
        question: another one than that.
    """
    questions = [judge.question for judge in campaign.config.judges if judge.source.kind in _OF_PEOPLE]
    question, note = question or questions[number % len(questions)], ""
    try:
        pair = _first_pair(campaign, number, question)
    except NotComputable as reason:
        note, pair = str(reason), Pair(question, *_samples(campaign.config.space))
    if np.random.default_rng([campaign.seed, number]).integers(2):
        pair = pair.swapped()
    return {"note": note} | shown_of(pair, campaign)


def shown_of(pair: Pair, campaign: Campaign) -> dict[str, Any]:
    """Return what templates show of a pair of a draft, whose objects are in its list or nowhere."""
    kind = campaign.object_kind

    def address(side: Side) -> str:
        row, beside = (pair.first, pair.second) if side == Side.FIRST else (pair.second, pair.first)
        if isinstance(row, State) and row.pk and kind.medium != "words":
            return reverse("console:picture", args=[row.pk])
        return Unstored(kind.name, row.content, getattr(row, "code", ""), beside.content).address

    return objects.shown(pair, campaign, address)


def _samples(space: sampler.SpaceConfig) -> tuple[State, State]:
    of_noise = space.kind == "model-images"
    samples = (OF_NOISE if of_noise else sample(space.objects, number) for number in (0, 1))
    first, second = (State(content=each.content, code=each.code) for each in samples)
    return first, second


def _first_pair(campaign: Campaign, chain: int, question: str) -> Pair:
    """Return the two objects of the first step of a chain that needs a vote.

    Raises:
        NotComputable: a model makes the objects, the walk is too long, or no step that is looked at needs a vote.
    """
    config = campaign.config
    kernel: Any = config.kernel
    if isinstance(config.space, (sampler.ServedTextsConfig, sampler.ServedImagesConfig)):
        raise NotComputable("A model makes the objects once the campaign has started. These only hold their place.")
    if kernel.kind == "walk" and max(each.length for each in kernel.length) > _MOST_MOVES:
        raise NotComputable("So many moves between two pairs take a while, so these are samples.")
    try:
        plan = plan_of(campaign)
    except sampler.ConfigError as error:
        raise NotComputable(f"The first pair cannot be drawn yet: {error}.") from error
    drawn = _first_asked(plan, chain)
    rows = _row(campaign, plan, drawn.current), _row(campaign, plan, drawn.proposal)
    return Pair(question, *rows, *(objects.context_of(row, config) for row in rows))


def _first_asked(plan: sampler.Plan[Any], chain: int) -> sampler.Comparison[Any]:
    position, until = sampler.begin(plan, chain), time.monotonic() + _LONGEST_S
    for _ in range(_MOST_STEPS):
        drawn = sampler.ask(plan, position)
        verdict = sampler.tell(drawn, sampler.Tally.empty(len(drawn.budgets)))
        if verdict is sampler.Verdict.UNDECIDED and not drawn.is_identity:
            return drawn
        position = sampler.advance(position, drawn, verdict)
        if time.monotonic() > until:
            break
    raise NotComputable("The first steps of this chain need no vote, so these are samples.")


def _row(campaign: Campaign, plan: sampler.Plan[Any], state: Any) -> State:
    if not campaign.config.generates:
        return State.objects.get(campaign=campaign, place=state)
    space: Any = plan.space
    return State(content=space.content(state), code=space.encode(state))
