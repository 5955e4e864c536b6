"""What the score-based rules share: min(1, r0 w(x') / w(x)) in logs, for weights that may be 0."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sampler.rules.shape import FloatArray


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
