"""The plug-in rule, INVALID: min(1, r0 prod_i K_i / (N_i - K_i)), the odds estimated by the share of votes.

Exact for nothing: its chain has another law than p0(x) exp(sum_i s_i(x)), by a total-variation distance of
0.52, 0.37 and 0.22 on the paper's synthetic target with 1, 2 and 4 votes. It is kept as the negative control that
every test of exactness must catch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sampler.rules.ballots import IntArray, average_over_votes, checked_budgets, draw_votes
from sampler.rules.shape import FloatArray


@dataclass(frozen=True)
class InvalidPlugIn:
    """A wrong rule. A judge without a vote for x' rejects; else a judge with no vote against accepts.

    Args:
        budgets: N_i, length m.

    Raises:
        ValueError: a budget is not a whole number of at least 1.
    """

    budgets: tuple[int, ...]
    name: ClassVar[str] = "invalid_plug_in"

    def __post_init__(self) -> None:
        object.__setattr__(self, "budgets", checked_budgets(self.budgets))

    def acceptance(self, log_r0: npt.ArrayLike, votes_for: npt.ArrayLike) -> FloatArray:
        """Return min(1, r0 prod_i K_i / (N_i - K_i)); K_i of shape (..., m)."""
        votes: IntArray = np.atleast_1d(np.asarray(votes_for))
        ratio = np.asarray(log_r0, dtype=np.float64)
        impossible = np.any(votes == 0, axis=-1) | np.isneginf(ratio)
        with np.errstate(divide="ignore"):
            gaps = np.log(np.maximum(votes, 1)) - np.log(np.array(self.budgets) - votes)
        total = np.sum(gaps, axis=-1) + np.where(impossible, 0.0, ratio)
        return np.where(impossible, 0.0, np.exp(np.minimum(0.0, total)))

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the average over K_i ~ Binomial(N_i, p_i); p_i of shape (..., m)."""
        return average_over_votes(lambda votes: self.acceptance(log_r0, votes), preference, self.budgets)

    def draw_acceptance(self, rng: np.random.Generator, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Draw the votes of each pair; return the acceptance probability they give."""
        return self.acceptance(log_r0, draw_votes(rng, preference, self.budgets))
