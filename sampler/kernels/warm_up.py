"""A warm-up: the first steps of every chain, from which one length is chosen for the steps after them.

Each of its steps draws how far it walks from a declared grid, with the first number of its own PROPOSAL stream. That is
a mixture of walks, so the warm-up is exact, whatever is chosen afterwards (`tuning.py`). The choice rests on votes of
the chains that it moves. So the chains go on as from any start: some declared steps after the warm-up are left out.

No step after the warm-up may be proposed before the length is chosen, and no length before every chain has decided its
last step of the warm-up: otherwise the choice would depend on who answers fast.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import (
    Field,
    field_validator,
)

from sampler.chain import Proposal
from sampler.declared import Declared, ui
from sampler.kernels.mixture import Shares

LONGEST_WALK = 4096
DEFAULT_GRID = (1, 4, 16, 64, 256)
DEFAULT_WARM_UP_BURN_IN = 10
DEFAULT_PATIENCE_MINUTES = 60
# A warm-up brings about so many votes, if a step takes one, and takes at most this share of the steps. With fewer than
# the least, too many steps that need no vote would leave too little to choose by.
_VOTES, _LEAST_VOTES = 300, 150
_SHARE_OF_STEPS = 4


class WarmUp(Declared):
    """The part of a walk's config that says: find the length in the first steps.

    Args:
        steps: W, the first steps of every chain.
        grid: two to eight lengths, shortest first.
        properties: the properties of the objects whose jumps are compared; see `sampler.objects.properties`.
        burn_in: how many steps after the warm-up are left out of the samples to analyse.
        patience_minutes: when a chain of the warm-up has waited so long for its votes, the researcher is offered to end
            it. The chains then take the config's own length.
    """

    steps: int = Field(ge=1, le=1_000_000, title="Steps of the warm-up, per chain")
    grid: tuple[int, ...] = Field(
        default=DEFAULT_GRID,
        min_length=2,
        max_length=8,
        title="Distances to try",
        description="Shortest first, with spaces between them.",
        json_schema_extra=ui(widget="words"),
    )
    properties: tuple[str, ...] = Field(
        min_length=1,
        max_length=8,
        title="Properties whose jumps are compared",
        description="Names of what is measured of the objects, one per line.",
    )
    burn_in: int = Field(
        default=DEFAULT_WARM_UP_BURN_IN,
        ge=0,
        le=1_000_000,
        title="Burn-in: steps after the warm-up that are left out",
    )
    patience_minutes: int = Field(
        default=DEFAULT_PATIENCE_MINUTES,
        ge=1,
        le=100_000,
        title="Minutes to wait for a chain",
        description="After them you are offered to end the warm-up.",
    )

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

    def part(self, rng: np.random.Generator, step: int) -> int | None:
        """Return which length of the grid a step walks; None after the warm-up.

        Args:
            rng: the PROPOSAL stream of the step, from its beginning.
            step: its number.
        """
        return Shares(self.shares).place(rng.random()) if step <= self.steps else None


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
