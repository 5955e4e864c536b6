"""Have the chains forgotten where they began, and how many independent draws are they worth?

Rank-normalised split R-hat, bulk and tail effective sample size (Vehtari, Gelman, Simpson, Carpenter and Bürkner,
"Rank-normalization, folding, and localization", Bayesian Analysis 16, 2021), all three computed by ArviZ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# What ArviZ needs to split a chain in two.
FEWEST_DRAWS = 4
# The 5 % and the 95 % quantile, as in the paper above.
_TAIL = (0.05, 0.95)
# Of chains that stand still the variance within is 0, or what rounding leaves of 0: R-hat is then 1e15 or so, another
# number on each machine. Chains of which one moves once come nowhere near.
_NOTHING_WITHIN = 1e12


@dataclass(frozen=True)
class Convergence:
    """R-hat (aim: below 1.01) and effective sample sizes (aim: above 400), with what they were computed from."""

    r_hat: float
    """NaN for a single chain."""
    bulk_ess: float
    tail_ess: float
    chains: int
    draws: int
    """Of each chain."""


def convergence(chains: Sequence[npt.ArrayLike]) -> Convergence:
    """Return R-hat and effective sample sizes of a number followed along ragged chains.

    Args:
        chains: for each chain the number after each step, shape (T_c,); the lengths may differ.

    Raises:
        ValueError: no chain has 4 draws, a value is not finite, or all values are the same.
    """
    draws = equal_lengths(chains)
    if np.ptp(draws) == 0:
        raise ValueError(f"every draw is {draws.flat[0]:g}")
    # Here and not above: importing it takes a second, and few who import this module compute anything.
    from arviz_stats.base import array_stats as statistics

    # Chains that stand still at different values have no variance within: their R-hat is infinite, rightly.
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = float(statistics.rhat(draws, method="rank")) if len(draws) > 1 else float("nan")
        r_hat = float("inf") if r_hat > _NOTHING_WITHIN else r_hat
        bulk = float(statistics.ess(draws, method="bulk"))
        tail = float(statistics.ess(draws, method="tail", prob=_TAIL))
    return Convergence(r_hat, bulk, tail, *draws.shape)


@dataclass(frozen=True)
class OfTarget:
    """The statistics of the chains that sample one law, or why there are none.

    Args:
        target: what tells that law from the others, such as a prompt (`ChainConfig.target_of`).
    """

    target: str
    found: Convergence | None
    problem: str = ""

    @property
    def r_hat(self) -> float | None:
        """None where there is none: of one chain, too."""
        return None if self.found is None or math.isnan(self.found.r_hat) else self.found.r_hat


@dataclass(frozen=True)
class Grouped:
    """The statistics of several targets: chains that sample different laws differ rightly, and are not compared."""

    targets: tuple[OfTarget, ...]
    """The one that looks worst first: without statistics, without an R-hat, then by R-hat."""

    @property
    def measured(self) -> list[Convergence]:
        """Those that there are."""
        return [each.found for each in self.targets if each.found]

    @property
    def r_hat(self) -> float | None:
        """The largest; None where no target has two chains."""
        return max((each.r_hat for each in self.targets if each.r_hat is not None), default=None)

    @property
    def bulk_ess(self) -> float:
        """The smallest of a target. Sizes of several laws do not add up to more draws of one."""
        return min(each.bulk_ess for each in self.measured)

    @property
    def tail_ess(self) -> float:
        """The smallest of a target."""
        return min(each.tail_ess for each in self.measured)

    @property
    def basis(self) -> str:
        """What they are computed from, in words."""
        draws = sorted(each.draws for each in self.measured)
        lengths = f"{draws[0]:,}" if draws[0] == draws[-1] else f"{draws[0]:,} to {draws[-1]:,}"
        chains = sum(each.chains for each in self.measured)
        words = f"{chains:,} chain{'' if chains == 1 else 's'} of {lengths} draws"
        return words if len(self.targets) == 1 else f"{words}, the worst of {len(self.targets):,} prompts"


def by_target(chains: Iterable[tuple[str, npt.ArrayLike]]) -> Grouped:
    """Return the statistics of each target's chains.

    Args:
        chains: of each its target and the number after each step, shape (T_c,); the lengths may differ.
    """
    groups: dict[str, list[npt.ArrayLike]] = {}
    for target, numbers in chains:
        groups.setdefault(target, []).append(numbers)
    found = [_of_target(target, group) for target, group in groups.items()]
    return Grouped(
        tuple(sorted(found, key=lambda each: (each.found is not None, each.r_hat is not None, -(each.r_hat or 0))))
    )


def _of_target(target: str, chains: list[npt.ArrayLike]) -> OfTarget:
    try:
        return OfTarget(target, convergence(chains))
    except ValueError as reason:
        return OfTarget(target, None, str(reason))


def equal_lengths(chains: Sequence[npt.ArrayLike]) -> FloatArray:
    """Cut ragged chains to one length, shape (chains, draws), keeping as many draws as possible.

    The k longest chains are kept, each with as many of its last draws as the shortest of them has; k is the one that
    keeps most draws, the larger where two keep as many. Two chains stay wherever two have 4 draws: R-hat compares.

    Raises:
        ValueError: no chain has 4 draws, or a value is not finite.
    """
    values = [np.asarray(chain, dtype=np.float64) for chain in chains]
    if any(each.ndim != 1 for each in values):
        raise ValueError("chains must each be one sequence of numbers")
    if not all(np.all(np.isfinite(each)) for each in values):
        raise ValueError("chains must hold finite numbers")
    lengths = sorted((len(each) for each in values if len(each) >= FEWEST_DRAWS), reverse=True)
    if not lengths:
        raise ValueError(f"no chain has {FEWEST_DRAWS} draws")
    fewest = min(2, len(lengths))
    kept = max(range(fewest, len(lengths) + 1), key=lambda k: (k * lengths[k - 1], k))
    draws = lengths[kept - 1]
    # Of chains that are equally long, the first ones; a stable sort keeps their order.
    longest = sorted(sorted(range(len(values)), key=lambda c: -len(values[c]))[:kept])
    return np.stack([values[c][-draws:] for c in longest])
