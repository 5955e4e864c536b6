"""Oracle MH: min(1, r0 prod_i p_i / (1 - p_i)); equation 7, with the ratio of equation 11 for several judges.

Exact for pi(x) ∝ p0(x) exp(sum_i s_i(x)), but it must know each judge's preference p_i: no rule on finitely many
votes has this acceptance law (the paper's impossibility theorem). It is the limit of the N-vote rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sampler.rules.shape import FloatArray, log_odds


@dataclass(frozen=True)
class Oracle:
    """The rule of Metropolis and Hastings with the odds known."""

    name: ClassVar[str] = "oracle"

    def acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return min(1, r0 prod_i p_i / (1 - p_i)); p_i of shape (..., m). A p_i of 0 rejects."""
        gaps = log_odds(np.atleast_1d(np.asarray(preference, dtype=np.float64)))
        ratio = np.asarray(log_r0, dtype=np.float64)
        impossible = np.any(np.isneginf(gaps), axis=-1) | np.isneginf(ratio)
        total = np.sum(np.where(np.isneginf(gaps), 0.0, gaps), axis=-1) + np.where(impossible, 0.0, ratio)
        return np.where(impossible, 0.0, np.exp(np.minimum(0.0, total)))

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability: there is no vote to average over."""
        return self.acceptance(log_r0, preference)

    def draw_acceptance(self, rng: np.random.Generator, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the acceptance probability: there is no vote to draw."""
        return self.acceptance(log_r0, preference)
