"""Presentation orders under voters who lean: what each is exact for, by matrix."""

import numpy as np
import pytest

from sampler import BalancedOrder, NVote, RandomOrder, TwoJudgeOrder, target, transition_matrix
from sampler.exact import log_base_ratio, preferences, transitions_of
from sampler.rules.order import leaning
from tests.support import sampling
from tests.support.sampling import (
    LOPSIDED,
    SMALL_CATALOGS,
    imbalance,
    independent_law,
    neighbours_law,
    stationary,
    two_scores,
)

# A few dozen additions and products of numbers below 1 lose less than this.
ROUNDING = 1e-12
LEANS = [0.25, 0.5, 1.0, 2.0]
LAWS = {"independent": independent_law, "neighbours": neighbours_law}

every_law = pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
every_lean = pytest.mark.parametrize("lean", LEANS)


def errors(rule, law, times=1, catalog=LOPSIDED):
    """Return how far the rule's chain is from detailed balance and from p0 exp(times sum_i s_i)."""
    scores = two_scores(catalog)[: len(rule.budgets)]
    pi = target(catalog.log_p0, times * scores)
    transitions = transition_matrix(catalog.log_p0, law(catalog), scores, rule)
    return imbalance(pi, transitions), float(np.abs(stationary(transitions) - pi).sum() / 2)


@every_law
@every_lean
@pytest.mark.parametrize("catalog", SMALL_CATALOGS.values(), ids=SMALL_CATALOGS)
@pytest.mark.parametrize("budgets", [(2,), (4,), (8,), (2, 6)], ids=str)
def test_two_judges_cancel_a_constant_lean(law, lean, catalog, budgets):
    assert max(errors(TwoJudgeOrder(budgets, lean), law, 2, catalog)) < ROUNDING


@every_law
@every_lean
@pytest.mark.parametrize("order", [RandomOrder, BalancedOrder])
def test_one_factor_for_both_orders_does_not(law, lean, order):
    unbalanced, distance = errors(order((4, 4), lean), law)
    # An error of second order in the lean: far above rounding at 0.25, plain to see at 1.
    assert unbalanced > 1e-5
    assert distance > 1e-4 * (lean / 0.25) ** 2
    # Nor is the other target reached.
    assert errors(order((4, 4), lean), law, 2)[1] > 0.01


@every_law
@pytest.mark.parametrize("order", [RandomOrder, BalancedOrder])
def test_without_a_lean_one_factor_is_exact(law, order):
    assert max(errors(order((2, 6)), law)) < ROUNDING


@every_lean
@pytest.mark.parametrize("budget", [2, 8])
def test_pooling_half_the_votes_in_each_order_is_worse_than_random_sides_on_the_papers_target(lean, budget):
    scores = sampling.SCORE[None]
    pi = target(sampling.LOG_P0, scores)

    def distance(rule):
        transitions = transition_matrix(sampling.LOG_P0, sampling.PROPOSALS, scores, rule)
        return np.abs(stationary(transitions) - pi).sum() / 2

    assert distance(BalancedOrder((budget,), lean)) > 1.05 * distance(RandomOrder((budget,), lean)) > 0.004


@every_lean
def test_two_judges_with_unequal_budgets_fail(lean):
    """Going back, the orders change places: then 1 and 3 votes do not cancel."""
    q, scores = independent_law(LOPSIDED), two_scores(LOPSIDED)[:1]
    both = np.concatenate(leaning(preferences(scores), lean), axis=-1)
    transitions = transitions_of(q, NVote((1, 3)).mean_acceptance(log_base_ratio(LOPSIDED.log_p0, q), both))
    assert imbalance(target(LOPSIDED.log_p0, 2 * scores), transitions) > 1e-4


@every_lean
def test_always_showing_the_proposal_first_fails(lean):
    q, scores = independent_law(LOPSIDED), two_scores(LOPSIDED)[:1]
    first, _ = leaning(preferences(scores), lean)
    transitions = transitions_of(q, NVote((4,)).mean_acceptance(log_base_ratio(LOPSIDED.log_p0, q), first))
    assert imbalance(target(LOPSIDED.log_p0, scores), transitions) > 1e-3


def test_leaning_adds_to_the_log_odds():
    first, second = leaning([0.5, 0.8, 1.0], 1.0)
    np.testing.assert_allclose(first, [1 / (1 + np.exp(-1)), 4 * np.e / (4 * np.e + 1), 1.0], rtol=1e-14)
    np.testing.assert_allclose(second, [1 / (1 + np.exp(1)), 4 / (4 + np.e), 1.0], rtol=1e-14)


def test_the_factors_of_two_judges_stand_side_by_side():
    assert TwoJudgeOrder((8, 2)).factors == (4, 4, 1, 1)


@pytest.mark.parametrize("order", [RandomOrder, BalancedOrder, TwoJudgeOrder])
@pytest.mark.parametrize("budgets", [(), (0,), (2, -2), (2.5,)], ids=str)
def test_budgets_that_no_judge_can_have_are_refused(order, budgets):
    with pytest.raises(ValueError, match="budgets"):
        order(budgets)
