"""The two shapes of acceptance rules: those that ask judges to compare, and those that score each state alone.

Log-odds of preferences that are checked to be probabilities.

What the score-based rules share: min(1, r0 w(x') / w(x)) in logs, for weights that may be 0.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import logit

FloatArray = npt.NDArray[np.float64]


class JudgeRule(Protocol):
    """A rule on what m judges say about the pair (x, x').

    Judge i prefers x' with probability p_i; `preference` holds the p_i, shape (..., m), and log r0 has shape (...).
    """

    name: ClassVar[str]

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability averaged over the votes, shape (...)."""
        ...

    def draw_acceptance(self, rng: np.random.Generator, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Draw the votes and return the acceptance probability they give, shape (...)."""
        ...


class ScoreRule(Protocol):
    """A rule on numbers that x and x' were given one at a time; `current` and `proposal` have the same shape."""

    name: ClassVar[str]

    def acceptance(self, log_r0: npt.ArrayLike, current: npt.ArrayLike, proposal: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability."""
        ...


def log_odds(preference: npt.ArrayLike) -> FloatArray:
    """Return log(p / (1 - p)), infinite at 0 and 1; any shape.

    Raises:
        ValueError: a preference is outside [0, 1].
    """
    chance = np.asarray(preference, dtype=np.float64)
    # SciPy gives NaN there, without a word.
    if not np.all((chance >= 0) & (chance <= 1)):
        raise ValueError("preference must lie in [0, 1]")
    return np.asarray(logit(chance))


def accept_by_weight(log_r0: npt.ArrayLike, log_current: npt.ArrayLike, log_proposal: npt.ArrayLike) -> FloatArray:
    """Return min(1, r0 exp(log w(x') - log w(x))), elementwise.

    A log weight of minus infinity is a state the target excludes: a chain leaves it with probability 1 (unless r0
    is 0), as Metropolis-Hastings has it for pi(x) = 0, and never enters it from elsewhere.

    Raises:
        ValueError: a log weight is NaN or plus infinity, or log_r0 is NaN.
    """
    ratio, before, after = (np.asarray(each, dtype=np.float64) for each in (log_r0, log_current, log_proposal))
    if any(np.any(np.isnan(each)) for each in (ratio, before, after)):
        raise ValueError("log_r0 and scores must be numbers, not NaN")
    if np.any(np.isposinf(before)) or np.any(np.isposinf(after)):
        raise ValueError("scores must be finite")
    excluded = np.isneginf(before)
    tilted = ratio + (after - np.where(excluded, 0.0, before))
    certain = np.where(np.isneginf(ratio), -np.inf, 0.0)
    return np.asarray(np.exp(np.minimum(0.0, np.where(excluded, certain, tilted))))
