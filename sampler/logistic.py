"""The logistic function and its inverse, without overflow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def logistic(gap: npt.ArrayLike) -> FloatArray:
    """Return 1 / (1 + exp(-gap)), the chance of a judge whose log-odds are `gap`; any shape."""
    argument = np.asarray(gap, dtype=np.float64)
    smaller = np.exp(-np.abs(argument))
    return np.asarray(np.where(argument >= 0, 1.0, smaller) / (1 + smaller))


def log_odds(preference: npt.ArrayLike) -> FloatArray:
    """Return log(p / (1 - p)), infinite at 0 and 1; any shape.

    Raises:
        ValueError: a preference is outside [0, 1].
    """
    chance = np.asarray(preference, dtype=np.float64)
    if not np.all((chance >= 0) & (chance <= 1)):
        raise ValueError("preference must lie in [0, 1]")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(chance) - np.log1p(-chance))
