"""Log-odds of preferences that are checked to be probabilities."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import logit

from sampler.rules.shape import FloatArray


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
