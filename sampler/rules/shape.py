"""The two shapes of acceptance rules: those that ask judges to compare, and those that score each state alone."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

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
