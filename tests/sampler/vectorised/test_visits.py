"""The test on visit counts that the statistical tests share: it must hold its level and find a wrong law."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.support.sampling import (
    LOPSIDED,
    neighbours_law,
    target,
    transition_matrix,
    two_scores,
    visit_covariance,
    visits_p_value,
)

SCORES = two_scores(LOPSIDED)
PI = target(LOPSIDED.log_p0, SCORES)
TRANSITIONS = transition_matrix(LOPSIDED.log_p0, neighbours_law(LOPSIDED), SCORES, (2, 3))


def visits(chains, steps, seed):
    """Return visit counts of chains run side by side from the stationary law, shape (chains, n)."""
    rng = np.random.default_rng(seed)
    cumulative = TRANSITIONS.cumsum(axis=1)
    state = rng.choice(len(PI), size=chains, p=PI)
    counts = np.zeros((chains, len(PI)))
    for _ in range(steps):
        state = np.minimum((rng.random(chains)[:, None] > cumulative[state]).sum(axis=1), len(PI) - 1)
        counts[np.arange(chains), state] += 1
    return counts


def test_independent_draws_give_pearsons_chi_square():
    counts = np.array([30.0, 22.0, 48.0])
    law = np.array([0.25, 0.25, 0.5])
    pearson = stats.chisquare(counts, 100 * law).pvalue
    assert visits_p_value(counts, np.tile(law, (3, 1)), law) == pytest.approx(pearson, rel=1e-10)


def test_the_covariance_is_the_one_of_simulated_frequencies():
    chains, steps = 2_000, 400
    spread = np.cov(visits(chains, steps, seed=1).T / np.sqrt(steps))
    exact = visit_covariance(TRANSITIONS, PI)
    # A sample variance has relative standard error sqrt(2/chains) = 3 %; the end effects are of order 1/steps.
    np.testing.assert_allclose(np.diag(spread), np.diag(exact), rtol=0.15)
    np.testing.assert_allclose(spread, exact, atol=0.15 * np.diag(exact).max())


def test_p_values_of_a_right_chain_are_uniform_and_of_a_wrong_law_tiny():
    each = visits(400, 2_000, seed=2)
    values = [visits_p_value(counts, TRANSITIONS, PI) for counts in each]
    assert stats.kstest(values, "uniform").pvalue > 1e-3
    wrong = 0.9 * PI + 0.1 / len(PI)
    assert visits_p_value(each, TRANSITIONS, PI) > 1e-3
    assert visits_p_value(each, TRANSITIONS, wrong) < 1e-6
