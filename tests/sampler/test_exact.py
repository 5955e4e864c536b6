"""Exact analysis against what is known in closed form, and against simulation."""

import numpy as np
import pytest

from sampler import (
    BradleyTerry,
    NVote,
    Plan,
    Purpose,
    Tally,
    Verdict,
    advance,
    ask,
    autocorrelation_time,
    begin,
    spectral_gap,
    stationary,
    stream,
    target,
    tell,
    transition_matrix,
    votes_per_effective_sample,
    votes_per_step,
)
from sampler import Independent as IndependentKernel
from tests.support.sampling import LOPSIDED, independent_law, neighbours_law, two_scores

SCORES = two_scores(LOPSIDED)
PI = target(LOPSIDED.log_p0, SCORES)
Q = independent_law(LOPSIDED)
RULE = NVote((3, 2))


def two_states(a, b):
    """P = [[1 - a, a], [b, 1 - b]]: eigenvalues 1 and 1 - a - b, stationary law (b, a) / (a + b)."""
    return np.array([[1 - a, a], [b, 1 - b]])


@pytest.mark.parametrize(("a", "b"), [(0.3, 0.1), (0.5, 0.5), (0.9, 0.8)])
def test_two_states_are_as_in_the_textbook(a, b):
    law, second = stationary(two_states(a, b)), 1 - a - b
    np.testing.assert_allclose(law, [b / (a + b), a / (a + b)], atol=1e-13)
    assert spectral_gap(two_states(a, b)) == pytest.approx(1 - abs(second), abs=1e-13)
    # Correlations are second^t, so tau = (1 + second) / (1 - second), below 1 when the chain alternates.
    tau = autocorrelation_time(two_states(a, b), law, [0.0, 1.0])
    assert tau == pytest.approx((1 + second) / (1 - second), rel=1e-12)


def test_independent_draws_have_time_one_and_gap_one():
    transitions = np.tile(PI, (5, 1))
    assert spectral_gap(transitions) == pytest.approx(1, abs=1e-7)
    np.testing.assert_allclose(autocorrelation_time(transitions, PI, np.eye(5)), np.ones(5), rtol=1e-12)


def test_time_is_the_sum_of_correlations():
    transitions = transition_matrix(LOPSIDED.log_p0, neighbours_law(LOPSIDED), SCORES, RULE)
    function = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
    centred = function - PI @ function
    tau, moved = 1.0, centred
    for _ in range(5_000):
        moved = transitions @ moved
        tau += 2 * (PI * centred) @ moved / (PI @ centred**2)
    assert autocorrelation_time(transitions, PI, function) == pytest.approx(tau, rel=1e-9)


def test_more_votes_mix_faster_and_cost_more():
    times, costs, gaps = [], [], []
    for budgets in [(1, 1), (2, 2), (4, 4), (8, 8)]:
        transitions = transition_matrix(LOPSIDED.log_p0, Q, SCORES, NVote(budgets))
        times.append(autocorrelation_time(transitions, PI, np.arange(5.0)))
        gaps.append(spectral_gap(transitions))
        costs.append(votes_per_step(LOPSIDED.log_p0, Q, SCORES, NVote(budgets)))
    assert times == sorted(times, reverse=True)
    assert gaps == sorted(gaps)
    assert costs == sorted(costs)


def test_votes_per_step_is_what_a_simulated_campaign_asks():
    judges = [BradleyTerry(scores.__getitem__) for scores in SCORES]
    plan = Plan(3, LOPSIDED, IndependentKernel(LOPSIDED), RULE.budgets)
    position, counts = begin(plan, 0), []
    for _ in range(6_000):
        comparison = ask(plan, position)
        rng, tally = stream(3, 0, comparison.step, Purpose.JUDGES), Tally.empty(2)
        while (verdict := tell(comparison, tally)) is Verdict.UNDECIDED:
            judge = 0 if tally.votes_cast[0] < 3 else 1
            tally = tally.add(judge, judges[judge].vote(rng, comparison.current, comparison.proposal))
        counts.append(sum(tally.votes_cast))
        position = advance(position, comparison, verdict)
    exact = votes_per_step(LOPSIDED.log_p0, Q, SCORES, RULE)
    # Batch means: 60 means of 100 steps, nearly independent; four standard errors.
    means = np.reshape(counts, (60, 100)).mean(axis=1)
    assert abs(means.mean() - exact) < 4 * means.std(ddof=1) / np.sqrt(60)


def test_without_early_stopping_every_comparison_costs_its_budgets():
    moves = 1 - PI @ np.diag(Q)
    full = votes_per_step(LOPSIDED.log_p0, Q, SCORES, RULE, early_stopping=False)
    assert full == pytest.approx(5 * moves, rel=1e-12)
    assert votes_per_step(LOPSIDED.log_p0, Q, SCORES, RULE) < 0.9 * full


def test_votes_per_effective_sample_is_cost_times_time():
    functions = np.stack([np.arange(5.0), np.eye(5)[2]])
    transitions = transition_matrix(LOPSIDED.log_p0, Q, SCORES, RULE)
    expected = votes_per_step(LOPSIDED.log_p0, Q, SCORES, RULE) * autocorrelation_time(transitions, PI, functions)
    np.testing.assert_allclose(votes_per_effective_sample(LOPSIDED.log_p0, Q, SCORES, RULE, functions), expected)


def test_a_constant_function_has_no_autocorrelation_time():
    with pytest.raises(ValueError, match="constant"):
        autocorrelation_time(np.tile(PI, (5, 1)), PI, np.full(5, 2.0))
