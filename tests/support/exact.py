"""The wrong rules, rules averaged apart from the package, and a test on visit counts.

What is generally useful stands in `sampler.exact` and is handed on here. Shapes: n states, m judges. A transition
matrix has one row per state and each row sums to 1.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from sampler import acceptance_probability, marginal_acceptance
from sampler.exact import (
    imbalance,
    log_base_ratio,
    preferences,
    stationary,
    target,
    transitions_of,
    visit_covariance,
)

__all__ = [
    "averaged",
    "exact_rule",
    "imbalance",
    "log_base_ratio",
    "majority_rule",
    "plug_in_rule",
    "pooled_rule",
    "preferences",
    "stationary",
    "target",
    "transition_matrix",
    "visit_covariance",
    "visits_p_value",
]

Matrix = npt.NDArray[np.float64]
# (log_r0 of shape (n, n), preference of shape (n, n, m), budgets of length m) -> mean acceptance, shape (n, n).
MeanRule = Callable[[Matrix, Matrix, Sequence[int]], Matrix]
# (log_r0 of shape (...), votes for the proposal of length m, budgets of length m) -> acceptance, shape (...).
Rule = Callable[[Matrix, npt.NDArray[np.int64], npt.NDArray[np.int64]], Matrix]


def transition_matrix(
    log_p0: npt.ArrayLike,
    q: Matrix,
    scores: npt.ArrayLike,
    budgets: Sequence[int],
    rule: MeanRule = marginal_acceptance,
    log_r0: Matrix | None = None,
) -> Matrix:
    """Return the exact chain of proposal law q and Bradley-Terry judges, their votes averaged out, shape (n, n).

    Args:
        log_p0: shape (n,).
        q: q(x'|x) at [x, x'], shape (n, n).
        scores: shape (m, n).
        budgets: N_i, length m.
        rule: mean acceptance; by default the package's.
        log_r0: what the kernel claims its base ratio is, shape (n, n); by default the true one.
    """
    ratio = log_base_ratio(log_p0, q) if log_r0 is None else log_r0
    return transitions_of(q, rule(ratio, preferences(scores), budgets))


def averaged(rule: Rule) -> MeanRule:
    """Average a rule on votes over K_i ~ Binomial(N_i, p_i), in plain loops and apart from `sampler`."""

    def mean(log_r0: Matrix, preference: Matrix, budgets: Sequence[int]) -> Matrix:
        total = np.zeros(np.shape(log_r0))
        for tally in itertools.product(*(range(budget + 1) for budget in budgets)):
            chance = np.ones(np.shape(log_r0))
            for i, (k, budget) in enumerate(zip(tally, budgets, strict=True)):
                p = preference[..., i]
                chance = chance * math.comb(budget, k) * p**k * (1 - p) ** (budget - k)
            total += chance * rule(log_r0, np.array(tally), np.array(budgets))
        return total

    return mean


def exact_rule(log_r0: Matrix, votes: npt.NDArray[np.int64], budgets: npt.NDArray[np.int64]) -> Matrix:
    """The package's rule on votes: min(1, r0 prod_i K_i / (N_i - K_i + 1))."""
    return np.asarray(acceptance_probability(log_r0, votes, budgets))


def majority_rule(log_r0: Matrix, votes: npt.NDArray[np.int64], budgets: npt.NDArray[np.int64]) -> Matrix:
    """A wrong rule: min(1, r0) if more than half of each judge's votes are for the proposal, else 0."""
    return np.minimum(1, np.exp(log_r0)) * np.all(2 * votes > budgets)


def plug_in_rule(log_r0: Matrix, votes: npt.NDArray[np.int64], budgets: npt.NDArray[np.int64]) -> Matrix:
    """A wrong rule: the odds estimated as K / (N - K)."""
    if np.any(votes == 0):
        return np.zeros(np.shape(log_r0))
    if np.any(votes == budgets):
        return np.where(np.isneginf(log_r0), 0.0, 1.0)
    return np.minimum(1, np.exp(log_r0) * np.prod(votes / (budgets - votes)))


def pooled_rule(log_r0: Matrix, votes: npt.NDArray[np.int64], budgets: npt.NDArray[np.int64]) -> Matrix:
    """A wrong rule for two judges or more: all votes counted as if one judge had cast them."""
    return np.minimum(1, np.exp(log_r0) * votes.sum() / (budgets.sum() - votes.sum() + 1))


def visits_p_value(visits: npt.ArrayLike, transitions: Matrix, law: Matrix) -> float:
    """Return the p-value of visit counts under a chain with these transitions and this stationary law.

    By the central limit theorem for Markov chains, T (v - pi)^T Sigma^+ (v - pi) tends to chi-square with n - 1
    degrees of freedom, v being the visit frequencies and Sigma `visit_covariance`. The sum over independent
    chains of T_c steps each has the same limit with T = sum T_c. Small p: the chain visits something else than pi.

    Args:
        visits: how often each state was visited, shape (n,), or (chains, n) for independent chains.
        transitions: shape (n, n).
        law: the expected frequencies, shape (n,).
    """
    counts = np.atleast_2d(np.asarray(visits, dtype=np.float64)).sum(axis=0)
    steps = counts.sum()
    # Without the last state the covariance is regular, and the quadratic form is the one with the pseudo-inverse.
    gap = (counts / steps - law)[:-1]
    statistic = steps * gap @ np.linalg.solve(visit_covariance(transitions, law)[:-1, :-1], gap)
    return float(stats.chi2.sf(statistic, len(law) - 1))
