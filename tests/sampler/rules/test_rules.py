"""Every rule against the paper's formula, worked out by hand, and at the ends of its range."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sampler import (
    BalancedOrder,
    InvalidPlugIn,
    Mars,
    NVote,
    Oracle,
    PointwiseDifference,
    PointwiseJoint,
    PointwisePower,
    PointwiseSeparate,
    Quest,
    RandomOrder,
    TwoJudgeOrder,
    target,
    transition_matrix,
)
from sampler.exact import log_base_ratio, transitions_of
from sampler.rules.scored import PUBLISHED_BETAS
from tests.support.sampling import (
    LOPSIDED,
    averaged,
    imbalance,
    independent_law,
    neighbours_law,
    plug_in_rule,
    stationary,
    two_scores,
)

SCORES = two_scores(LOPSIDED)
PI = target(LOPSIDED.log_p0, SCORES)
# Sums and products of numbers below 1 lose less than this.
ROUNDING = 1e-12


def close(value):
    return pytest.approx(value, rel=1e-13)


def test_the_n_vote_rule_is_equations_8_and_12():
    assert NVote((4,)).acceptance(math.log(0.5), [3]) == close(0.5 * 3 / 2)
    assert NVote((3, 2)).acceptance(math.log(1 / 3), [2, 1]) == close(1 / 3 * (2 / 2) * (1 / 2))
    assert NVote((3, 2)).mean_acceptance(0.0, [1.0, 1.0]) == 1.0


def test_the_oracle_multiplies_the_odds():
    assert Oracle().acceptance(math.log(0.5), [0.6, 0.25]) == close(0.5 * (0.6 / 0.4) * (0.25 / 0.75))
    assert Oracle().acceptance(math.log(5), [0.6]) == 1.0
    assert Oracle().acceptance(-math.inf, [1.0]) == 0.0
    assert Oracle().acceptance(0.0, [0.0, 1.0]) == 0.0
    # Of several pairs at once, only the impossible one is rejected.
    assert list(Oracle().acceptance(0.0, [[0.0, 0.5], [0.5, 0.5]])) == [0.0, 1.0]
    assert Oracle().acceptance(-1e4, [1.0]) == 1.0


def test_the_plug_in_rule_estimates_the_odds_by_the_share():
    assert InvalidPlugIn((4,)).acceptance(math.log(0.25), [3]) == close(0.25 * 3 / 1)
    assert InvalidPlugIn((4, 2)).acceptance(math.log(0.25), [3, 1]) == close(0.75)
    assert InvalidPlugIn((4,)).acceptance(-800.0, [4]) == 1.0
    assert InvalidPlugIn((4, 2)).acceptance(800.0, [4, 0]) == 0.0
    assert InvalidPlugIn((4,)).acceptance(-math.inf, [4]) == 0.0


def test_the_plug_in_average_agrees_with_the_tests_own():
    log_r0, preference = np.array([-1.0, 0.0, 2.0]), np.array([[0.2, 0.9], [0.5, 0.5], [0.7, 0.1]])
    expected = averaged(plug_in_rule)(log_r0, preference, (3, 2))
    np.testing.assert_allclose(InvalidPlugIn((3, 2)).mean_acceptance(log_r0, preference), expected, rtol=1e-13)


@pytest.mark.parametrize("law", [independent_law, neighbours_law])
def test_the_oracle_is_exact_and_the_plug_in_rule_is_not(law):
    def error(rule):
        transitions = transition_matrix(LOPSIDED.log_p0, law(LOPSIDED), SCORES, rule)
        return imbalance(PI, transitions), np.abs(stationary(transitions) - PI).sum() / 2

    assert max(error(Oracle())) < ROUNDING
    assert max(error(NVote((16, 1)))) < ROUNDING
    unbalanced, distance = error(InvalidPlugIn((4, 4)))
    assert unbalanced > 1e-3
    assert distance > 0.01


@pytest.mark.parametrize(
    "rule",
    [
        NVote((3, 2)),
        Oracle(),
        InvalidPlugIn((3, 2)),
        RandomOrder((4, 2), 0.7),
        BalancedOrder((4, 2), 0.7),
        TwoJudgeOrder((4, 2), 0.7),
    ],
    ids=lambda rule: rule.name,
)
def test_drawn_acceptance_has_the_mean_that_the_rule_claims(rule):
    draws, preference = 40_000, np.array([0.7, 0.4])
    drawn = rule.draw_acceptance(np.random.default_rng(6), np.full(draws, -0.3), np.tile(preference, (draws, 1)))
    assert drawn.shape == (draws,)
    # Four standard errors; the oracle has none.
    assert abs(drawn.mean() - rule.mean_acceptance(-0.3, preference)) <= 4 * drawn.std() / math.sqrt(draws) + ROUNDING


def test_separate_ratings_are_divided_by_the_highest_and_summed():
    rule = PointwiseSeparate()
    # (1 - 10) / 10 + (4 - 1) / 10 + 0 = -6/10, on both scales
    assert rule.acceptance(0.0, [10, 1, 7], [1, 4, 7]) == close(math.exp(-0.6))
    assert PointwiseSeparate(lowest=0).acceptance(0.0, [10, 1, 7], [1, 4, 7]) == close(math.exp(-0.6))
    assert rule.acceptance(math.log(0.5), [1, 1, 1], [10, 10, 10]) == 1.0
    images = PointwiseSeparate(lowest=0, highest=10)
    assert images.acceptance(0.0, [5, 5, 5], [5, 0, 5]) == close(math.exp(-0.5))
    assert rule.acceptance(np.zeros(4), np.full((4, 3), 5), np.full((4, 3), 4)).shape == (4,)


def test_mars_caps_each_property_at_seven_tenths():
    assert Mars.score(0.9, 1.0) == close(0.7)
    assert Mars.score(0.5, 5.5) == close((0.5 + 0.5) / 2)
    assert Mars.score(0.0, 10.0) == 0.0
    assert Mars().acceptance(0.0, Mars.score(0.5, 5.5), Mars.score(0.48, 5.5)) == close(0.98**30)


def test_mars_leaves_a_state_of_score_zero_and_never_enters_one():
    assert Mars().acceptance(-50.0, 0.0, 0.01) == 1.0
    assert Mars().acceptance(-math.inf, 0.0, 0.3) == 0.0
    assert Mars().acceptance(0.0, 0.3, 0.0) == 0.0


def test_quest_is_a_gibbs_law_of_the_logit():
    assert Quest.reward(0.8) == close(math.log(4))
    assert Quest.reward([0.0, 1.0]) == close([math.log(1 / 999), math.log(999)])
    assert Quest.log_r0(12, 18) == close(math.log(12 / 18))
    assert Quest.log_r0(1, 1) == 0.0
    # (12 / 18) exp(log(4 / 9) / 0.5), with rewards log 9 and log 4
    value = Quest(0.5).acceptance(Quest.log_r0(12, 18), Quest.reward(0.9), Quest.reward(0.8))
    assert value == close(12 / 18 * (4 / 9) ** 2)


@pytest.mark.parametrize("beta", PUBLISHED_BETAS)
def test_quest_does_not_overflow_at_any_published_temperature(beta):
    worst, best = Quest.reward([0.0, 1.0])
    assert Quest(beta).acceptance(0.0, worst, best) == 1.0
    assert Quest(beta).acceptance(0.0, best, worst) == pytest.approx(999.0 ** (-2 / beta), rel=1e-9, abs=1e-300)


def test_score_rules_keep_the_law_of_fixed_scores():
    ratings = np.array([3.0, 7.5, 5.0, 9.0, 1.0])
    q = neighbours_law(LOPSIDED)
    laws = {
        PointwiseJoint(): ratings / 10,
        PointwiseDifference(): ratings,
        PointwisePower(5): 5 * np.log(ratings),
        Quest(3.0): ratings / 3,
    }
    log_r0 = log_base_ratio(LOPSIDED.log_p0, q)
    for rule, log_tilt in laws.items():
        pi = target(LOPSIDED.log_p0, log_tilt[None])
        before, after = np.broadcast_to(ratings[:, None], q.shape), np.broadcast_to(ratings, q.shape)
        assert imbalance(pi, transitions_of(q, rule.acceptance(log_r0, before, after))) < ROUNDING
