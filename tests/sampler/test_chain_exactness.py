"""Detailed balance and stationarity to rounding error, and the wrong rules that must fail the same check."""

import numpy as np
import pytest

from sampler import marginal_acceptance
from tests.support.sampling import (
    SMALL_CATALOGS,
    averaged,
    exact_rule,
    imbalance,
    independent_law,
    majority_rule,
    neighbours_law,
    plug_in_rule,
    pooled_rule,
    stationary,
    target,
    transition_matrix,
    two_scores,
)

# A few dozen additions and products of numbers below 1 lose less than this.
ROUNDING = 1e-12

LAWS = {"independent": independent_law, "neighbours": neighbours_law}


def three_scores(catalog):
    return np.vstack([two_scores(catalog), 0.3 * np.arange(len(catalog))])


def errors(catalog, law, scores, budgets, rule):
    """Return how far the rule's chain is from detailed balance, and from the target in total variation."""
    pi = target(catalog.log_p0, scores)
    transitions = transition_matrix(catalog.log_p0, law(catalog), scores, budgets, rule)
    return imbalance(pi, transitions), float(np.abs(stationary(transitions) - pi).sum() / 2)


@pytest.mark.parametrize("catalog", SMALL_CATALOGS.values(), ids=SMALL_CATALOGS)
@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("budgets", [(1,), (2,), (3,), (4,), (8,), (16,), (2, 2), (1, 3, 4), (5, 1, 2)], ids=str)
def test_the_rule_keeps_the_target(catalog, law, budgets):
    scores = three_scores(catalog)[: len(budgets)]
    unbalanced, distance = errors(catalog, law, scores, budgets, marginal_acceptance)
    assert unbalanced < ROUNDING
    assert distance < ROUNDING


@pytest.mark.parametrize("catalog", SMALL_CATALOGS.values(), ids=SMALL_CATALOGS)
def test_the_rule_keeps_the_target_under_an_arbitrary_proposal_law(catalog):
    # Neither symmetric nor reversible: every row is another random law.
    q = np.random.default_rng(3).dirichlet(np.ones(len(catalog)), size=len(catalog))
    unbalanced, distance = errors(catalog, lambda _: q, three_scores(catalog), (2, 1, 3), marginal_acceptance)
    assert unbalanced < ROUNDING
    assert distance < ROUNDING


def test_the_test_suites_own_average_agrees_with_the_packages():
    catalog = SMALL_CATALOGS["lopsided"]
    unbalanced, distance = errors(catalog, neighbours_law, three_scores(catalog), (2, 1, 3), averaged(exact_rule))
    assert unbalanced < ROUNDING
    assert distance < ROUNDING


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize(
    ("rule", "budgets"),
    [
        # With one vote and r0 = 1 the plug-in rule is right by accident, so two votes at least.
        (plug_in_rule, (2,)),
        (plug_in_rule, (4,)),
        (majority_rule, (3,)),
        (majority_rule, (4,)),
        (pooled_rule, (1, 3)),
        (pooled_rule, (2, 2)),
    ],
)
def test_wrong_rules_miss_the_target(law, rule, budgets):
    catalog = SMALL_CATALOGS["lopsided"]
    scores = three_scores(catalog)[: len(budgets)]
    unbalanced, distance = errors(catalog, law, scores, budgets, averaged(rule))
    assert unbalanced > 1e-3
    assert distance > 0.01
