"""The N-vote rule: min(1, r0 prod_i K_i / (N_i - K_i + 1)); equation 8 for one judge, equation 12 for several.

Exact for pi(x) ∝ p0(x) exp(sum_i s_i(x)) with every N_i >= 1, which may differ by judge, and no exact rule on the
same votes accepts more (the paper's optimality theorem). The votes of one pair must be independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sampler.acceptance import acceptance_probability, marginal_acceptance
from sampler.rules.ballots import checked_budgets, draw_votes
from sampler.rules.shape import FloatArray


@dataclass(frozen=True)
class NVote:
    """The rule a campaign follows.

    Args:
        budgets: N_i, length m.

    Raises:
        ValueError: a budget is not a whole number of at least 1.
    """

    budgets: tuple[int, ...]
    name: ClassVar[str] = "n_vote"

    def __post_init__(self) -> None:
        object.__setattr__(self, "budgets", checked_budgets(self.budgets))

    def acceptance(self, log_r0: npt.ArrayLike, votes_for: npt.ArrayLike) -> FloatArray:
        """Return min(1, r0 prod_i K_i / (N_i - K_i + 1)); K_i of shape (..., m)."""
        return np.asarray(acceptance_probability(log_r0, votes_for, self.budgets))

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the average over K_i ~ Binomial(N_i, p_i), the paper's alpha-bar; p_i of shape (..., m)."""
        return np.asarray(marginal_acceptance(log_r0, preference, self.budgets))

    def draw_acceptance(self, rng: np.random.Generator, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Draw the votes of each pair; return the acceptance probability they give."""
        return self.acceptance(log_r0, draw_votes(rng, preference, self.budgets))
