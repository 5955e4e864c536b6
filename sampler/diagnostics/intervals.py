"""Intervals: of what depends on clusters of votes, and of a paired difference over items, by resampling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

RESAMPLES = 10_000
FEWEST_CLUSTERS = 15
"""With fewer, an interval is not to be trusted, and none is given."""
CELLS = 4_000_000
"""Numbers held in memory at once."""


@dataclass(frozen=True)
class PairedDifference:
    """Mean of first - second over items, its percentile interval, and a two-sided p-value for a mean of 0."""

    mean: float
    low: float
    high: float
    p_value: float
    items: int
    level: float


def paired_bootstrap(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = 0.95,
) -> PairedDifference:
    """Resample items with replacement, keeping each item's two values together.

    The p-value is twice the smaller share of resampled means on either side of 0, 0 itself on both, with one added
    to numerator and denominator so that it is never 0.

    Args:
        first: one value for each item, shape (n,).
        second: the other method's values for the same items in the same order, shape (n,).

    Raises:
        ValueError: the two differ in length, have fewer than two items, or hold a value that is not finite.
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.ndim != 1 or one.shape != other.shape:
        raise ValueError(f"first and second must be vectors of one length, not of shapes {one.shape} and {other.shape}")
    if len(one) < 2:
        raise ValueError("first and second must have at least two items")
    gap = one - other
    if not np.all(np.isfinite(gap)):
        raise ValueError("first and second must hold finite numbers")
    means = np.concatenate([drawn @ gap for drawn in item_multiplicities(len(gap), rng, resamples)]) / len(gap)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    tail = min((means <= 0).sum(), (means >= 0).sum())
    p_value = min(1.0, 2 * (tail + 1) / (resamples + 1))
    return PairedDifference(float(gap.mean()), float(low), float(high), float(p_value), len(gap), level)


def item_multiplicities(items: int, rng: np.random.Generator, resamples: int) -> Iterator[FloatArray]:
    """Yield how often each item is drawn in each resample, shape (block, items), `resamples` rows in all."""
    block = max(1, CELLS // items)
    for done in range(0, resamples, block):
        yield rng.multinomial(items, np.full(items, 1 / items), size=min(block, resamples - done)).astype(np.float64)


def cluster_reach(moved: FloatArray, level: float) -> FloatArray:
    """Return how far the intervals of estimates go to either side, shape (...,); NaN of fewer than 15 clusters.

    Votes about one prompt, or along one chain, share what is peculiar to it: as if each stood alone, they give
    intervals that are far too narrow. The variance of an estimate is the sum over clusters of the square of what each
    moves it by (Liang and Zeger, Biometrika 73, 1986), times c / (c - 1), and t is Student's of c - 1 degrees.

    Args:
        moved: the derivative of each estimate by each cluster's weight, shape (..., c).

    Raises:
        ValueError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    from scipy.special import stdtrit

    clusters = moved.shape[-1]
    if clusters < FEWEST_CLUSTERS:
        return np.full(moved.shape[:-1], np.nan)
    variance = (moved**2).sum(axis=-1) * clusters / (clusters - 1)
    return np.asarray(stdtrit(clusters - 1, (1 + level) / 2) * np.sqrt(variance))
