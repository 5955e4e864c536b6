"""Have the chains forgotten where they began, and how many independent draws are they worth?

Rank-normalised split R-hat, bulk and tail effective sample size (Vehtari, Gelman, Simpson, Carpenter and Bürkner,
"Rank-normalization, folding, and localization", Bayesian Analysis 16, 2021), all three computed by ArviZ.
"""

from __future__ import annotations

from collections.abc import Sequence
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
        raise ValueError(f"chains must vary; every draw is {draws.flat[0]:g}")
    # Here and not above: importing it takes a second, and few who import this module compute anything.
    from arviz_stats.base import array_stats as statistics

    # Chains that stand still at different values have no variance within: their R-hat is infinite, rightly.
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hat = float(statistics.rhat(draws, method="rank")) if len(draws) > 1 else float("nan")
        r_hat = float("inf") if r_hat > _NOTHING_WITHIN else r_hat
        bulk = float(statistics.ess(draws, method="bulk"))
        tail = float(statistics.ess(draws, method="tail", prob=_TAIL))
    return Convergence(r_hat, bulk, tail, *draws.shape)


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
        raise ValueError(f"chains must have {FEWEST_DRAWS} draws or more, one of them at least")
    fewest = min(2, len(lengths))
    kept = max(range(fewest, len(lengths) + 1), key=lambda k: (k * lengths[k - 1], k))
    draws = lengths[kept - 1]
    # Of chains that are equally long, the first ones; a stable sort keeps their order.
    longest = sorted(sorted(range(len(values)), key=lambda c: -len(values[c]))[:kept])
    return np.stack([values[c][-draws:] for c in longest])
