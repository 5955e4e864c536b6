"""A stopping rule that is declared before the start: chains end once a property of their states has converged.

The rule looks at declared steps only, each time when all chains have reached the step, and it stops all of them there
or none. So every chain of a study has the same length, and what is looked at never depends on what was seen, except
that looking ends. The length itself does depend on it: averages over a stopped study are biased a little, because a
study ends earlier where its chains happen to agree. `docs/exactness.md` has figures. Rules that stop chains one by one
are far worse, and there are none here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

from sampler.objects.convergence import FEWEST_DRAWS, convergence

_FEWEST_CHAINS = 2


class StoppingRecipe(BaseModel):
    """The part of a recipe that says when its chains may end before their last step.

    Args:
        property: what is measured of each state.
        ess: bulk and tail effective sample size, of all chains together, that are enough.
        r_hat: rank-normalised split R-hat that is small enough.
        first: the step of the first look: each chain walks at least as far.
        every: steps from one look to the next.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    property: str = Field(min_length=1, max_length=60)
    ess: float = Field(default=400, gt=0, le=1_000_000)
    r_hat: float = Field(default=1.01, gt=1, le=2)
    first: int = Field(ge=1, le=1_000_000)
    every: int = Field(ge=1, le=1_000_000)

    def looks(self, steps: int) -> range:
        """Return the steps that are looked at, before the last of so many."""
        return range(self.first, steps, self.every)

    def length_after(self, looks: int, steps: int) -> int:
        """Return how far every chain walks once so many looks have not stopped it, of at most so many steps."""
        return min(self.first + looks * self.every, steps)

    def is_met(self, seen: Look) -> bool:
        """True when what was seen is enough to stop."""
        if seen.r_hat is None or seen.bulk_ess is None or seen.tail_ess is None:
            return False
        return seen.r_hat <= self.r_hat and min(seen.bulk_ess, seen.tail_ess) >= self.ess


@dataclass(frozen=True)
class Look:
    """What was seen at a step; None where it cannot be computed, such as of chains that never moved."""

    step: int
    r_hat: float | None
    bulk_ess: float | None
    tail_ess: float | None


def look_at(step: int, burn_in: int, chains: Sequence[npt.ArrayLike]) -> Look:
    """Return what the chains show at a step.

    Args:
        step: that all of them have reached.
        burn_in: how many of the first steps are left out.
        chains: of each the number of its state after each step, the start's first, shape (step + 1,) or longer; NaN
            where a state has none.
    """
    nothing = Look(step, None, None, None)
    draws = [np.asarray(numbers, dtype=np.float64)[burn_in + 1 : step + 1] for numbers in chains]
    if len(draws) < _FEWEST_CHAINS or any(len(each) < FEWEST_DRAWS for each in draws):
        return nothing
    together = np.stack(draws)
    if not np.all(np.isfinite(together)) or np.ptp(together) == 0:
        return nothing
    found = convergence(draws)
    # Chains that stand still at different values have an infinite R-hat.
    r_hat = found.r_hat if np.isfinite(found.r_hat) else None
    return Look(step, r_hat, found.bulk_ess, found.tail_ess)
