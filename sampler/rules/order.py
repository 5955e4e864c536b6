"""Which object stands first, vote by vote, and what each way is exact for when voters lean to one side.

The voter model: a lean of b adds b to the log-odds of whatever stands first, so judge i prefers x' to x with
probability sigma(g_i + b) when x' stands first and sigma(g_i - b) when it stands second, g_i = s_i(x') - s_i(x). Each
order below is a rule that asks judges (`sampler.rules`), its law given for any lean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from sampler.acceptance import FloatArray, acceptance_probability, marginal_acceptance
from sampler.rules.base import log_odds
from sampler.rules.n_vote import Budgeted, average_over_votes, draw_votes, judges_last


@dataclass(frozen=True)
class _Order(Budgeted):
    """What the rules have in common.

    Args:
        budgets: N_i, length m.
        lean: b, in nats of log-odds towards what stands first.
    """

    lean: float = 0.0


class _HalvesOrder(_Order):
    """Half of a judge's votes in each order, so that its budget is even."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(budget % 2 for budget in self.budgets):
            raise ValueError(f"budgets must be even, to show each order equally often, not {self.budgets}")

    @property
    def factors(self) -> tuple[int, ...]:
        """Votes in each order, length 2 m: judge 1 with x' first, with x' second, judge 2 with x' first, ..."""
        return tuple(budget // 2 for budget in self.budgets for _ in range(2))

    def _both(self, preference: npt.ArrayLike) -> FloatArray:
        """Return the preferences for x' in each order, shape (..., 2 m)."""
        chance = judges_last(preference, self.budgets)
        both = np.stack(leaning(chance, self.lean), axis=-1)
        return both.reshape(*chance.shape[:-1], 2 * len(self.budgets))


class RandomOrder(_Order):
    """A fair coin for every vote; all votes of a judge in one K_i.

    Exact for p0 exp(sum_i s_i) when nobody leans. A lean of log-odds 0.25 / 1 moves the law by 0.005 / 0.07 in total
    variation on the paper's synthetic target with two votes.

    Args:
        budgets: N_i, length m.
        lean: b, in nats of log-odds towards what stands first.
    """

    name: ClassVar[str] = "random"

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the acceptance averaged over sides and votes; `preference` without the lean, shape (..., m)."""
        return np.asarray(marginal_acceptance(log_r0, self._mixed(preference), self.budgets))

    def draw_acceptance(self, rng: np.random.Generator, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Draw sides and votes; return the acceptance probability they give."""
        votes = draw_votes(rng, self._mixed(preference), self.budgets)
        return np.asarray(acceptance_probability(log_r0, votes, self.budgets))

    def _mixed(self, preference: npt.ArrayLike) -> FloatArray:
        first, second = leaning(judges_last(preference, self.budgets), self.lean)
        return (first + second) / 2


class BalancedOrder(_HalvesOrder):
    """Half of a judge's votes in each order, pooled in one K_i; the paper's molecule experiment.

    Exact for p0 exp(sum_i s_i) when nobody leans. With a lean it is not, and it is worse than `RandomOrder`: 0.0065 /
    0.09 for a lean of 0.25 / 1 on the paper's synthetic target with two votes, for K_i is no binomial count any more.

    Args:
        budgets: N_i, even, length m.
        lean: b, in nats of log-odds towards what stands first.

    Raises:
        ValueError: a budget is odd.
    """

    name: ClassVar[str] = "balanced"

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the acceptance averaged over votes; `preference` without the lean, shape (..., m)."""
        return average_over_votes(
            lambda votes: np.asarray(acceptance_probability(log_r0, votes[0::2] + votes[1::2], self.budgets)),
            self._both(preference),
            self.factors,
        )

    def draw_acceptance(self, rng: np.random.Generator, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Draw the votes; return the acceptance probability they give."""
        votes = draw_votes(rng, self._both(preference), self.factors)
        return np.asarray(acceptance_probability(log_r0, votes[..., 0::2] + votes[..., 1::2], self.budgets))


class TwoJudgeOrder(_HalvesOrder):
    """Half of a judge's votes in each order, each order a judge of its own: two factors of budget N_i / 2.

    Exact for p0 exp(2 sum_i s_i), whatever the lean, as long as it is constant: the odds of the two orders are
    exp(g + b) and exp(g - b), so b cancels in their product. Going back from x' to x the two orders change places,
    which is why their budgets must be equal. One population of voters must answer both orders: only then do the
    scores of the halves add to 2 s_i and does the lean cancel. No rule on finitely many votes is exact for
    p0 exp(sum_i s_i) under an unknown lean.

    Args:
        budgets: N_i, even, length m.
        lean: b, in nats of log-odds towards what stands first.

    Raises:
        ValueError: a budget is odd.
    """

    name: ClassVar[str] = "two_judge"

    def mean_acceptance(self, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Return the acceptance averaged over votes; `preference` without the lean, shape (..., m)."""
        both = self._both(preference)
        return np.asarray(marginal_acceptance(log_r0, both, self.factors))

    def draw_acceptance(self, rng: np.random.Generator, log_r0: npt.ArrayLike, preference: npt.ArrayLike) -> FloatArray:
        """Draw the votes; return the acceptance probability they give."""
        votes = draw_votes(rng, self._both(preference), self.factors)
        return np.asarray(acceptance_probability(log_r0, votes, self.factors))


def leaning(preference: npt.ArrayLike, lean: float) -> tuple[FloatArray, FloatArray]:
    """Return sigma(g + b) and sigma(g - b), the preferences for x' standing first and second; any shape."""
    gap = log_odds(preference)
    return np.asarray(expit(gap + lean)), np.asarray(expit(gap - lean))
