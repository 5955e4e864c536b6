"""The bootstrap over clusters: votes that may depend on each other are weighted together.

Votes about one prompt, or along one chain, share what is peculiar to it. Resampling votes as if each stood alone then
gives intervals that are far too narrow.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

FEWEST_CLUSTERS = 15
"""With fewer, an interval is not to be trusted, and none is given."""


def cluster_weights(clusters: int, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Return one Exponential(1) weight for each cluster in each resample, shape (resamples, clusters).

    The Bayesian bootstrap (Rubin, Annals of Statistics 9, 1981) over clusters. No weight is zero, so what has a finite
    fit has one in every resample.

    Raises:
        ValueError: there is no resample.
    """
    if resamples < 1:
        raise ValueError(f"resamples must be 1 or more, not {resamples}")
    return rng.standard_exponential(size=(resamples, clusters))


def interval(draws: FloatArray, clusters: int, level: float) -> tuple[FloatArray, FloatArray]:
    """Return the percentile interval of draws along the first axis; NaN where clusters are too few to trust one.

    The plain percentiles are a little too narrow: n clusters spread by a factor of sqrt((n - 1) / (n + 1)) less under
    these weights than their means do, and n clusters call for Student's t with n - 1 degrees of freedom. So the
    percentiles are taken as far out as these two say (the expanded percentile interval of Hesterberg, The American
    Statistician 69, 2015): for 95 % and 40 clusters at 1.9 % and 98.1 %.

    Raises:
        ValueError: `level` is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    if clusters < FEWEST_CLUSTERS:
        unknown = np.full(draws.shape[1:], np.nan)
        return unknown, unknown.copy()
    from scipy.special import ndtr, stdtrit

    quantile = stdtrit(clusters - 1, (1 - level) / 2)
    tail = float(ndtr(quantile * np.sqrt((clusters + 1) / (clusters - 1))))
    low, high = np.quantile(draws, [tail, 1 - tail], axis=0)
    return np.asarray(low), np.asarray(high)
