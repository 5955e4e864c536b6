"""A warm-up: the first steps of every chain, from which one length is chosen for the steps after them.

Each of its steps draws how far it walks from a declared grid, with the first number of its own PROPOSAL stream. That is
a mixture of walks, so the warm-up is exact, whatever is chosen afterwards (`tuning.py`). The choice rests on votes of
the chains that it moves. So the chains go on as from any start: some declared steps after the warm-up are left out.

No step after the warm-up may be proposed before the length is chosen, and no length before every chain has decided its
last step of the warm-up: otherwise the choice would depend on who answers fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
)

from sampler.chain import Proposal
from sampler.kernels.mixture import Shares
from sampler.kernels.surrogates.surrogate import TAUS, Surrogate

LONGEST_WALK = 4096
DEFAULT_GRID = (1, 4, 16, 64, 256)
DEFAULT_SETTLING = 10
DEFAULT_PATIENCE_MINUTES = 60
# A warm-up brings about so many votes, if a step takes one, and takes at most this share of the steps. With fewer than
# the least, too many steps that need no vote would leave too little to choose by.
_VOTES, _LEAST_VOTES = 300, 150
_SHARE_OF_STEPS = 4


class Learned(BaseModel):
    """The part of a warm-up's recipe that says: fit a score to its votes, and let that pull some of the walks after it.

    Args:
        walk_share: w, how often a step walks without it. The other steps are pulled by half of the score and by all of
            it, alike often. Whatever the score says, a sample takes at most about 1/w times as many steps as with
            plain walks alone, and with N = 1 about as many times the votes if a step of either costs as many.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    walk_share: float = Field(default=0.7, ge=0.2, lt=1)

    @property
    def shares(self) -> tuple[float, ...]:
        """How often a step walks plainly, with half of the score, and with all of it."""
        rest = (1 - self.walk_share) / len(TAUS)
        return (self.walk_share, *(rest for _ in TAUS))


@dataclass(frozen=True)
class Chosen:
    """What a warm-up has chosen: how far to walk, and the score of each group of chains, if they have one."""

    length: int
    surrogates: tuple[Surrogate, ...] = ()


class WarmUp(BaseModel):
    """The part of a walk's recipe that says: find the length in the first steps.

    Args:
        steps: W, the first steps of every chain.
        grid: two to eight lengths, shortest first.
        properties: the properties of the objects whose jumps are compared; see `sampler.objects.properties`.
        settling: how many steps after the warm-up are left out of the samples to analyse.
        patience_minutes: when a chain of the warm-up has waited so long for its votes, the researcher is offered to end
            it. The chains then take the recipe's own length.
        learned: whether a score is fitted to the votes of the warm-up.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int = Field(ge=1, le=1_000_000)
    grid: tuple[int, ...] = Field(default=DEFAULT_GRID, min_length=2, max_length=8)
    properties: tuple[str, ...] = Field(min_length=1, max_length=8)
    settling: int = Field(default=DEFAULT_SETTLING, ge=0, le=1_000_000)
    patience_minutes: int = Field(default=DEFAULT_PATIENCE_MINUTES, ge=1, le=100_000)
    learned: Learned | None = None

    @model_serializer(mode="wrap")
    def _without_a_score_that_is_not_asked_for(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        described: dict[str, Any] = handler(self)
        return described if self.learned is not None else {k: v for k, v in described.items() if k != "learned"}

    @field_validator("grid")
    @classmethod
    def _grows(cls, grid: tuple[int, ...]) -> tuple[int, ...]:
        grows = all(one < other for one, other in pairwise(grid))
        if not grows or grid[0] < 1 or grid[-1] > LONGEST_WALK:
            raise ValueError(f"must be whole numbers from 1 to {LONGEST_WALK}, each larger than the one before")
        return grid

    @field_validator("properties")
    @classmethod
    def _are_different(cls, properties: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(properties)) < len(properties):
            raise ValueError("must name each property once")
        return properties

    @property
    def shares(self) -> tuple[float, ...]:
        """How often each length of the grid is drawn."""
        return (1 / len(self.grid),) * len(self.grid)

    def part(self, rng: np.random.Generator, step: int, chosen: Chosen | None) -> int | None:
        """Return which length of the grid a step walks, and after the warm-up which score pulls it; None for no choice.

        Args:
            rng: the PROPOSAL stream of the step, from its beginning.
            step: its number.
            chosen: what the warm-up has chosen, if it has.
        """
        if step <= self.steps:
            return Shares(self.shares).place(rng.random())
        if self.learned is None or chosen is None or not chosen.surrogates:
            return None
        return Shares(self.learned.shares).place(rng.random())


class NotChosen:
    """The kernel of the steps after a warm-up whose length is not chosen yet. It proposes nothing."""

    def propose(self, rng: np.random.Generator, state: Any) -> Proposal[Any]:
        """Refuse.

        Raises:
            ValueError: always.
        """
        raise ValueError("no step after the warm-up can be proposed before its length is chosen")


def warm_up_steps(chains: int, steps: int) -> int:
    """Return how long a warm-up should be: about 300 votes in all, and at most a quarter of the steps.

    0 where that is too short to choose by.
    """
    fitting = min(-(-_VOTES // chains), steps // _SHARE_OF_STEPS)
    return fitting if fitting * chains >= _LEAST_VOTES else 0
