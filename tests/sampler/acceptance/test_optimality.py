"""Peskun-Tierney: the N-vote rule accepts at least as much as any exact rule on the same votes, pair by pair."""

import numpy as np
import pytest

from sampler import InvalidPlugIn, NVote, Oracle, target, transition_matrix
from sampler.exact import log_base_ratio, preferences, transitions_of
from tests.support.sampling import (
    LOPSIDED,
    averaged,
    imbalance,
    independent_law,
    neighbours_law,
    two_scores,
    visit_covariance,
)

ROUNDING = 1e-12
BUDGETS = (4, 2)
SCORES = two_scores(LOPSIDED)
PI = target(LOPSIDED.log_p0, SCORES)
PREFERENCES = preferences(SCORES)


def ratio(log_r0, votes, budgets):
    """r0 prod_i K_i / (N_i - K_i + 1), not capped."""
    return np.exp(log_r0) * np.prod(votes / (budgets - votes + 1))


def barker_one_vote(log_r0, votes, budgets):
    """Barker's r0 / (1 + r0) if one vote of each judge, drawn from its N_i, is for x'."""
    return np.exp(log_r0) / (1 + np.exp(log_r0)) * np.prod(votes / budgets)


def barker_all_votes(log_r0, votes, budgets):
    """Barker's t / (1 + t), at t = r0 prod_i K_i / (N_i - K_i + 1)."""
    return ratio(log_r0, votes, budgets) / (1 + ratio(log_r0, votes, budgets))


def cautious(log_r0, votes, budgets):
    """Another function with g(t) = t g(1 / t), at the same t."""
    t = ratio(log_r0, votes, budgets)
    return (t + t**2 + t**3) / (1 + t + t**2 + t**3)


def thinned(log_r0, votes, budgets):
    """The N-vote rule, then a coin that depends on the unordered pair."""
    places = np.arange(len(LOPSIDED))
    coin = 0.3 + 0.6 * np.cos(places[:, None] + places[None, :]) ** 2
    return coin * np.minimum(1, ratio(log_r0, votes, budgets))


COMPETITORS = {
    "Barker, one vote": averaged(barker_one_vote),
    "Barker, all votes": averaged(barker_all_votes),
    "another balancing function": averaged(cautious),
    "a randomly thinned rule": averaged(thinned),
    "fewer votes": lambda log_r0, preference, _: NVote((3, 1)).mean_acceptance(log_r0, preference),
    "one vote each": lambda log_r0, preference, _: NVote((1, 1)).mean_acceptance(log_r0, preference),
}

every_law = pytest.mark.parametrize("law", [independent_law, neighbours_law])
every_competitor = pytest.mark.parametrize("competitor", COMPETITORS.values(), ids=COMPETITORS)


def off_diagonal(transitions):
    return transitions - np.diag(np.diag(transitions))


def chain(rule, law):
    q = law(LOPSIDED)
    return transitions_of(q, rule(log_base_ratio(LOPSIDED.log_p0, q), PREFERENCES, BUDGETS))


def ours(law):
    return transition_matrix(LOPSIDED.log_p0, law(LOPSIDED), SCORES, NVote(BUDGETS))


@every_law
@every_competitor
def test_no_exact_rule_moves_more_between_any_two_states(law, competitor):
    other = chain(competitor, law)
    assert imbalance(PI, other) < ROUNDING
    gap = off_diagonal(ours(law) - other)
    assert gap.min() > -ROUNDING
    assert gap.max() > 1e-3


@every_law
@every_competitor
def test_so_no_exact_rule_has_a_smaller_asymptotic_variance_for_any_function(law, competitor):
    """Tierney (1998): the difference of the limiting covariances is positive semidefinite."""
    gap = visit_covariance(chain(competitor, law), PI) - visit_covariance(ours(law), PI)
    assert np.linalg.eigvalsh(gap).min() > -1e-10
    assert np.trace(gap) > 1e-3


@every_law
def test_the_oracle_moves_more_than_any_number_of_votes(law):
    known = transition_matrix(LOPSIDED.log_p0, law(LOPSIDED), SCORES, Oracle())
    before = ours(law)
    for budgets in [(8, 4), (16, 16)]:
        after = transition_matrix(LOPSIDED.log_p0, law(LOPSIDED), SCORES, NVote(budgets))
        assert off_diagonal(after - before).min() > -ROUNDING
        assert off_diagonal(known - after).min() > -ROUNDING
        before = after


def test_a_rule_that_is_not_exact_is_not_bounded_so():
    wrong = transition_matrix(LOPSIDED.log_p0, independent_law(LOPSIDED), SCORES, InvalidPlugIn(BUDGETS))
    assert imbalance(PI, wrong) > 1e-3
    assert off_diagonal(ours(independent_law) - wrong).min() < -1e-3
