"""Means with their spread and their interval: over samples, over independent runs, over prompts."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.clusters import FEWEST_CLUSTERS, cluster_weights, interval

LEVEL = 0.95
RESAMPLES = 2_000


@dataclass(frozen=True)
class Estimate:
    """A cell of the table.

    Args:
        value: None where there is nothing to compute it from.
        spread: what the paper prints behind ±: a standard deviation or a standard error, as the table says.
        low, high: of the interval at 95 %; None where there is too little for one.
        count: values, or runs, that it was computed from.
        mark: † and ‡ where the method was tested against the reference.
        note: why there is no value.
    """

    value: float | None
    spread: float | None = None
    low: float | None = None
    high: float | None = None
    count: int = 0
    mark: str = ""
    note: str = ""


def over_samples(
    values: Sequence[float], clusters: Sequence[Hashable], rng: np.random.Generator, *, with_spread: bool = True
) -> Estimate:
    """Return the mean, the standard deviation over samples, and an interval over clusters.

    Samples of one prompt or chain depend on each other: the interval gives each cluster one Exponential(1) weight.
    Below 15 clusters there is none.

    Args:
        values: shape (n,).
        clusters: one label for each value.
    """
    if not values:
        return Estimate(None, note="no values")
    numbers = np.asarray(values, dtype=np.float64)
    names: dict[Hashable, int] = {}
    at = np.array([names.setdefault(cluster, len(names)) for cluster in clusters])
    spread = float(numbers.std(ddof=1)) if with_spread and len(numbers) > 1 else None
    low = high = None
    if len(names) >= FEWEST_CLUSTERS:
        weights = cluster_weights(len(names), rng, RESAMPLES)
        sums, counts = np.bincount(at, numbers), np.bincount(at).astype(np.float64)
        low, high = map(float, interval((weights @ sums) / (weights @ counts), len(names), LEVEL))
    return Estimate(float(numbers.mean()), spread, low, high, len(numbers))


def over_runs(values: Sequence[float]) -> Estimate:
    """Return the mean over independent runs, its standard error SD/√n, and Student's interval; one run has neither."""
    if not values:
        return Estimate(None, note="no values")
    numbers: npt.NDArray[np.float64] = np.asarray(values, dtype=np.float64)
    mean, count = float(numbers.mean()), len(numbers)
    if count < 2:
        return Estimate(mean, count=count)
    from scipy.special import stdtrit

    error = float(numbers.std(ddof=1) / np.sqrt(count))
    reach = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error
    return Estimate(mean, error, mean - reach, mean + reach, count)
