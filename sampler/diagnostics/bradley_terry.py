"""Bradley-Terry scores from votes, with bootstrap intervals; the maximum-likelihood fits are evalica's."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.comparisons import Comparisons
from sampler.diagnostics.extras import analysis_library
from sampler.logistic import logistic

FloatArray = npt.NDArray[np.float64]

_TOLERANCE = 1e-9
_LIMITS = (1_000, 10_000, 100_000)


class NoFit(ValueError):  # noqa: N818 - the data have no fit; nothing went wrong
    """These votes have no finite Bradley-Terry fit; the message gives the reason."""


@dataclass(frozen=True)
class Scores:
    """Scores in nats of log-odds, mean 0, with percentile intervals; all of shape (n,), in the order of `items`."""

    items: tuple[Hashable, ...]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    level: float


def bradley_terry_scores(comparisons: Comparisons) -> FloatArray:
    """Return the maximum-likelihood scores, nats of log-odds, mean 0, shape (n,).

    Votes may have stopped early: when to stop depends on earlier votes only, so the likelihood is the same.

    Raises:
        NoFit: the win graph is not strongly connected.
        MissingExtra: evalica is not installed.
    """
    # Without this check evalica would return equal scores and say nothing.
    if reason := comparisons.refusal():
        raise NoFit(reason)
    return _fit(comparisons, comparisons.counts.astype(np.float64))


def bradley_terry_intervals(
    comparisons: Comparisons, rng: np.random.Generator, resamples: int = 1_000, level: float = 0.95
) -> Scores:
    """Return the scores with percentile intervals from the Bayesian bootstrap over votes.

    Each resample gives every vote an independent Exponential(1) weight (Rubin, "The Bayesian bootstrap", Annals of
    Statistics 9, 1981); an ordered pair with c votes so weighs Gamma(c). No weight is zero, so each resample's win
    graph is as connected as the data's. Resampling votes with replacement would leave some resamples without a fit.

    Raises:
        NoFit: the win graph is not strongly connected.
        ValueError: `level` is not between 0 and 1, or there is no resample.
        MissingExtra: evalica is not installed.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {level}")
    if resamples < 1:
        raise ValueError(f"resamples must be 1 or more, not {resamples}")
    estimate = bradley_terry_scores(comparisons)
    weights = rng.gamma(comparisons.counts, size=(resamples, len(comparisons.counts)))
    drawn = np.stack([_fit(comparisons, each) for each in weights])
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return Scores(comparisons.items, estimate, low, high, level)


def _fit(comparisons: Comparisons, weights: FloatArray) -> FloatArray:
    """Return scores that solve the likelihood equations: every item wins as often as they expect."""
    evalica = analysis_library("evalica")
    pandas = analysis_library("pandas")
    # evalica stops when exp(score) moves by less than a tolerance, which large scores never do, or at its limit, which
    # it does not tell from success. So the solution is judged here.
    for limit in _LIMITS:
        result = evalica.bradley_terry(
            comparisons.winners.tolist(),
            comparisons.losers.tolist(),
            [evalica.Winner.X] * len(weights),
            index=pandas.RangeIndex(len(comparisons.items)),
            weights=weights.tolist(),
            tolerance=_TOLERANCE,
            limit=limit,
        )
        scores = np.log(result.scores.sort_index().to_numpy(dtype=np.float64))
        if _imbalance(comparisons, weights, scores) <= _TOLERANCE * weights.sum():
            return np.asarray(scores - scores.mean())
    raise NoFit(f"the scores lie too far apart: no convergence within {_LIMITS[-1]:,} iterations")


def _imbalance(comparisons: Comparisons, weights: FloatArray, scores: FloatArray) -> float:
    """Return the largest difference between an item's wins and those that the scores expect of it, in votes."""
    surprise = weights * logistic(scores[comparisons.losers] - scores[comparisons.winners])
    size = len(scores)
    gap = np.bincount(comparisons.winners, surprise, size) - np.bincount(comparisons.losers, surprise, size)
    return float(np.abs(gap).max())
