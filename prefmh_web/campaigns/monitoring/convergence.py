"""Have a campaign's chains forgotten where they began? A property along them, with R-hat and effective sample sizes.

The statistics are those of `sampler.diagnostics.convergence`. What is left out of them is told with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.trajectories import Trajectories

FloatArray = npt.NDArray[np.float64]

MOST_DRAWS = 200_000
"""Of more draws, every k-th goes into the statistics, so that a page opens in bounded time."""
AIM_R_HAT, AIM_ESS = 1.01, 400
"""What Vehtari et al. (2021) recommend: R-hat below, effective sample sizes above."""


@dataclass(frozen=True)
class Followed:
    """One property along the chains of a campaign.

    Args:
        name: of the property.
        chains: of each chain its place and the numbers after each step, the start's first, until the first object that
            has no number yet.
        first: the first step that the statistics use.
        missing: how many draws come at or after an object without a number.
    """

    name: str
    chains: tuple[tuple[int, FloatArray], ...]
    first: int
    missing: int

    @property
    def label(self) -> str:
        """Its name in words."""
        return self.name.replace("_", " ")

    @cached_property
    def draws(self) -> list[tuple[int, FloatArray]]:
        """Of each chain that has some, its place and the numbers that the statistics use."""
        used = [(place, numbers[self.first :: self.every]) for place, numbers in self.chains]
        return [(place, numbers) for place, numbers in used if len(numbers)]

    @property
    def every(self) -> int:
        """Every how many-th draw is used."""
        there = sum(max(0, len(numbers) - self.first) for _, numbers in self.chains)
        return max(1, -(-there // MOST_DRAWS))

    @cached_property
    def ranks(self) -> list[tuple[int, FloatArray]]:
        """Of each chain its place and the ranks of its draws among all of them, from 0.

        Equal draws share their ranks: those of one chain are spread evenly over all that belong to the number. So two
        chains that sample one law fill all ranks alike, also where a property has a few values only.
        """
        if not self.draws:
            return []
        _, group, size = np.unique(
            np.concatenate([numbers for _, numbers in self.draws]), return_inverse=True, return_counts=True
        )
        first = np.cumsum(size) - size
        ends = np.cumsum([len(numbers) for _, numbers in self.draws])[:-1]
        return [
            (place, _spread(each, first, size))
            for (place, _), each in zip(self.draws, np.split(group, ends), strict=True)
        ]

    @cached_property
    def statistics(self) -> sampler.diagnostics.Convergence | None:
        """R-hat and effective sample sizes; None where they cannot be computed yet."""
        return None if self.problem else sampler.diagnostics.convergence([numbers for _, numbers in self.draws])

    @property
    def verdict(self) -> str:
        """What the statistics come to, and what to do; empty where there are none."""
        found = self.statistics
        if found is None:
            return ""
        if found.chains == 1:
            return "One chain has nothing to be compared with: run at least four."
        if found.r_hat > AIM_R_HAT:
            return "The chains differ: extend the campaign, or let the next one walk farther between two questions."
        if min(found.bulk_ess, found.tail_ess) < AIM_ESS:
            return "The chains agree, but these are few independent samples: extend the campaign."
        return "The chains agree, and these samples are enough for this property."

    @property
    def problem(self) -> str:
        """Why there are no statistics; empty where there are."""
        fewest = sampler.diagnostics.FEWEST_DRAWS
        draws = [numbers for _, numbers in self.draws if len(numbers) >= fewest]
        if not draws:
            return f"no chain has {fewest} draws yet"
        kept = sampler.diagnostics.equal_lengths(draws)
        return f"every draw is {kept.flat[0]:g}" if np.ptp(kept) == 0 else ""


def follow(trajectories: Trajectories, name: str, first: int) -> Followed:
    """Return a property along the chains.

    Args:
        first: the first step that the statistics use.

    Raises:
        KeyError: nothing of this name is followed.
    """
    chains, missing = [], 0
    for place, numbers in trajectories.along(name).items():
        without = np.flatnonzero(np.isnan(numbers))
        known = int(without[0]) if len(without) else len(numbers)
        missing += len(numbers) - known
        chains.append((place, numbers[:known]))
    return Followed(name, tuple(chains), first, missing)


def first_step(campaign: Campaign) -> int:
    """Return the first step after the burn-in, or after the warm-up and the settling that follows it."""
    return campaign.parsed_recipe.left_out + 1


def main_property(campaign: Campaign) -> str:
    """Return the property to follow where nobody has chosen any."""
    return sampler.MAIN_PROPERTIES[campaign.object_kind.name][0]


def _spread(group: npt.NDArray[np.int64], first: npt.NDArray[np.int64], size: npt.NDArray[np.int64]) -> FloatArray:
    """Return ranks of one chain's draws, in ascending order.

    Args:
        group: of each draw, which number it is.
        first: of each number, the lowest rank that belongs to it.
        size: of each number, how many ranks do.
    """
    number, own = np.unique(group, return_counts=True)
    within = np.arange(len(group)) - np.repeat(np.cumsum(own) - own, own)
    return np.repeat(first[number], own) + (within + 0.5) / np.repeat(own, own) * np.repeat(size[number], own) - 0.5
