"""The paper's synthetic experiment against theory: every expected value is computed here from exact matrices.

Visit frequencies of T steps are close to Gaussian with mean mu, the chain's stationary law, and covariance Sigma / T
(central limit theorem for Markov chains, `visit_covariance`). So T^(1/2) TV(frequencies, mu) has the mean and spread of
1/2 sum_k |G_k| with G ~ N(0, Sigma): E|G_k| = (2/pi)^(1/2) s_k, and for correlation r
Cov(|G_j|, |G_k|) = (2/pi) s_j s_k (r arcsin r + (1 - r^2)^(1/2) - 1).
"""

import math

import numpy as np
import pytest

from sampler.exact import stationary, target, total_variation, visit_covariance
from sampler.experiments import synthetic
from sampler.experiments.synthetic import METHODS, ORACLE, PLUG_IN, PREF_MH, STATES, STEPS
from tests.support.sampling import (
    LOG_P0,
    PROPOSALS,
    SCORE,
    averaged,
    plug_in_rule,
    transition_matrix,
)

PI = target(LOG_P0, SCORE[None])
# A Gaussian lies further out than this once in 16,000 seeds; there are seven curves and three times.
SPREADS = 4


def oracle_rule(log_r0, preference, budgets):
    odds = preference[..., 0] / (1 - preference[..., 0])
    return np.minimum(1, np.exp(log_r0) * odds)


def exact_chain(method):
    """Return the transition matrix that a method should have, from the paper's formulas, apart from `sampler.rules`."""
    if method.name == PREF_MH:
        return transition_matrix(LOG_P0, PROPOSALS, SCORE[None], (method.votes,))
    rule = oracle_rule if method.name == ORACLE else averaged(plug_in_rule)
    return transition_matrix(LOG_P0, PROPOSALS, SCORE[None], (method.votes,), rule)


class Theory:
    """What TV after T steps from k = 0 should be."""

    def __init__(self, transitions):
        self.law = stationary(transitions)
        self.covariance = visit_covariance(transitions, self.law)
        deviation = np.sqrt(np.diag(self.covariance))
        self.mean = deviation.sum() / math.sqrt(2 * math.pi)
        r = np.clip(self.covariance / np.outer(deviation, deviation), -1, 1)
        shared = np.outer(deviation, deviation) * (r * np.arcsin(r) + np.sqrt(1 - r**2) - 1)
        self.spread = math.sqrt(2 / math.pi * shared.sum()) / 2
        # The start costs the sum over t >= 1 of TV(P^t(0, .), mu), divided by T.
        ahead, self.start = transitions[0], 0.0
        for _ in range(1_000):
            self.start += total_variation(ahead / ahead.sum(), self.law)
            ahead = ahead @ transitions

    def bounds(self, steps):
        """Return the range of TV to the stationary law after this many steps."""
        root = math.sqrt(steps)
        low, high = self.mean - SPREADS * self.spread, self.mean + SPREADS * self.spread
        return low / root - self.start / steps, high / root + self.start / steps


@pytest.fixture(scope="module")
def curves():
    return {curve.method: curve for curve in synthetic.run(seed=2026)}


@pytest.fixture(scope="module")
def theory():
    return {method: Theory(exact_chain(method)) for method in METHODS}


def named(name):
    return pytest.mark.parametrize("method", [m for m in METHODS if m.name == name], ids=lambda m: m.label)


@pytest.mark.parametrize("method", [m for m in METHODS if m.name != PLUG_IN], ids=lambda m: m.label)
def test_exact_methods_fall_like_one_over_the_root_of_t(curves, theory, method):
    np.testing.assert_allclose(theory[method].law, PI, atol=1e-12)
    for steps in (STEPS // 25, STEPS // 5, STEPS):
        low, high = theory[method].bounds(steps)
        assert low < curves[method].tv[steps // 500 - 1] < high, steps


@named(PLUG_IN)
def test_plug_in_levels_off_at_its_bias(curves, theory, method):
    bias = total_variation(theory[method].law, PI)
    near, far = theory[method].bounds(STEPS)
    # By the triangle inequality TV to pi differs from the bias by at most TV to the chain's own law.
    assert abs(curves[method].tv[-1] - bias) < far
    assert near < total_variation(curves[method].frequencies, theory[method].law) < far
    assert bias > 5 * far


@named(PLUG_IN)
def test_a_plug_in_curve_would_not_pass_for_an_exact_one(curves, theory, method):
    exact = next(m for m in METHODS if (m.name, m.votes) == (PREF_MH, method.votes))
    assert curves[method].tv[-1] > theory[exact].bounds(STEPS)[1]


@named(PREF_MH)
def test_the_spread_tells_numbers_of_votes_apart_from_the_oracle(curves, theory, method):
    # The theory is sharp enough to notice a chain that mixes as the oracle's does.
    assert curves[method].tv[-1] > theory[METHODS[0]].bounds(STEPS)[1]


def test_votes_that_do_not_come_from_the_score_are_noticed(theory, monkeypatch):
    half = synthetic.scores() / 2
    monkeypatch.setattr(synthetic, "scores", lambda: half)
    method = METHODS[3]
    visited = np.concatenate(list(synthetic.walk(np.random.default_rng(3), method)))
    tv = total_variation(np.bincount(visited, minlength=STATES) / STEPS, PI)
    assert tv > theory[method].bounds(STEPS)[1]


def test_a_seed_gives_one_result_and_each_curve_its_own_stream():
    first, again, other = (synthetic.run(seed, steps=1_000) for seed in (1, 1, 2))
    assert all(np.array_equal(a.tv, b.tv) for a, b in zip(first, again, strict=True))
    assert not any(np.array_equal(a.tv, b.tv) for a, b in zip(first, other, strict=True))
    short = synthetic.run(1, steps=500)
    assert all(a.tv[0] == b.tv[0] for a, b in zip(first, short, strict=True))
