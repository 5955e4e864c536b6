"""Ridge regression of Bradley-Terry's log-odds: logit P(x' wins) = w·(φ(x') - φ(x)), with a normal prior on w."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

FloatArray = npt.NDArray[np.float64]
RIDGE = 1.0
"""The prior's precision of each weight, of features scaled to variance 1."""
_MOST_STEPS, _TOLERANCE = 50, 1e-10


@dataclass(frozen=True)
class Fit:
    """The mode of the posterior and its normal approximation.

    Args:
        weights: shape (k,).
        root: a lower triangular matrix R with R Rᵀ the covariance of the weights; shape (k, k).
    """

    weights: FloatArray
    root: FloatArray


def fitted(differences: npt.ArrayLike, votes_for: npt.ArrayLike, votes: npt.ArrayLike) -> Fit:
    """Return the fit, by Newton's method; the log posterior is strictly concave.

    Args:
        differences: φ(x') - φ(x) of each comparison, scaled; shape (n, k).
        votes_for: votes for the proposal; shape (n,).
        votes: all votes; shape (n,).
    """
    x, won, cast = (np.asarray(each, dtype=np.float64) for each in (differences, votes_for, votes))
    weights = np.zeros(x.shape[1])
    for _ in range(_MOST_STEPS):
        p = special.expit(x @ weights)
        hessian = (x.T * (cast * p * (1 - p))) @ x + RIDGE * np.eye(len(weights))
        step = np.linalg.solve(hessian, x.T @ (won - cast * p) - RIDGE * weights)
        weights = weights + step
        if np.abs(step).max(initial=0) < _TOLERANCE:
            break
    p = special.expit(x @ weights)
    hessian = (x.T * (cast * p * (1 - p))) @ x + RIDGE * np.eye(len(weights))
    return Fit(weights, np.asarray(np.linalg.cholesky(np.linalg.inv(hessian))))


def log_loss(fit: Fit, differences: npt.ArrayLike, votes_for: npt.ArrayLike, votes: npt.ArrayLike) -> float:
    """Return the sum of -log P of some votes under a fit's mode."""
    odds = np.asarray(differences, dtype=np.float64) @ fit.weights
    won, cast = np.asarray(votes_for, dtype=np.float64), np.asarray(votes, dtype=np.float64)
    return float(np.sum(won * np.logaddexp(0, -odds) + (cast - won) * np.logaddexp(0, odds)))
