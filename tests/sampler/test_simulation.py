"""Simulated chains visit states as the exact chain says, and a majority vote is found out.

And the test on visit counts that the statistical tests share: it holds its level and finds a wrong law.
"""

import itertools

import numpy as np
import pytest
from scipy import stats

from sampler import (
    BradleyTerry,
    Independent,
    Neighbours,
    Plan,
    begin,
    simulate,
)
from sampler.exact import target
from tests.support.sampling import (
    LOPSIDED,
    independent_law,
    majority_chain,
    neighbours_law,
    transition_matrix,
    two_scores,
    visits_p_value,
)

SCORES = two_scores(LOPSIDED)
PI = target(LOPSIDED.log_p0, SCORES)
JUDGES = [BradleyTerry(scores.__getitem__) for scores in SCORES]
BUDGETS = (3, 2)
CHAINS, STEPS = 4, 1_500


def plan(kernel, seed=5):
    return Plan(seed, LOPSIDED, kernel(LOPSIDED), BUDGETS)


def p_value(runner, kernel, law):
    """Return the p-value of CHAINS * STEPS steps against the exact chain."""
    visits = np.zeros((CHAINS, len(LOPSIDED)))
    for chain in range(CHAINS):
        for position in runner(plan(kernel), JUDGES, STEPS, chain):
            visits[chain, position.state] += position.step > 0
    assert visits.sum() == CHAINS * STEPS
    return visits_p_value(visits, transition_matrix(LOPSIDED.log_p0, law(LOPSIDED), SCORES, BUDGETS), PI)


@pytest.mark.parametrize(("kernel", "law"), [(Independent, independent_law), (Neighbours, neighbours_law)])
def test_a_simulated_campaign_samples_the_target(kernel, law):
    # One time in a thousand a right chain would fall below; the seed is fixed.
    assert p_value(simulate, kernel, law) > 1e-3


def test_a_campaign_decided_by_majority_does_not():
    assert p_value(majority_chain, Independent, independent_law) < 1e-6


def test_a_simulated_campaign_is_a_function_of_its_seed():
    first, again, other = (
        [position.state for position in simulate(plan(Independent, seed), JUDGES, 60)] for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_positions_count_the_steps_and_start_at_the_drawn_state():
    positions = list(simulate(plan(Neighbours), JUDGES, 20, chain=3))
    assert [(position.chain, position.step) for position in positions] == [(3, step) for step in range(21)]
    assert positions[0] == begin(plan(Neighbours), 3)
    moves = {(a.state, b.state) for a, b in itertools.pairwise(positions) if a.state != b.state}
    assert all(after in LOPSIDED.neighbours[before] for before, after in moves)


def test_every_budget_needs_its_judge():
    with pytest.raises(ValueError, match="judges must be 2"):
        next(simulate(plan(Independent), JUDGES[:1], 1))


def test_a_judge_whose_scores_lie_far_apart_is_certain_and_overflows_nowhere():
    judge = BradleyTerry({"worst": -900.0, "best": 900.0}.__getitem__)
    assert (judge.preference("worst", "best"), judge.preference("best", "worst")) == (1.0, 0.0)


TRANSITIONS = transition_matrix(LOPSIDED.log_p0, neighbours_law(LOPSIDED), SCORES, (2, 3))


def visit_counts(chains, steps, seed):
    """Return visit counts of chains run side by side from the stationary law, shape (chains, n)."""
    rng = np.random.default_rng(seed)
    cumulative = TRANSITIONS.cumsum(axis=1)
    state = rng.choice(len(PI), size=chains, p=PI)
    counts = np.zeros((chains, len(PI)))
    for _ in range(steps):
        state = np.minimum((rng.random(chains)[:, None] > cumulative[state]).sum(axis=1), len(PI) - 1)
        counts[np.arange(chains), state] += 1
    return counts


def test_p_values_of_a_right_chain_are_uniform_and_of_a_wrong_law_tiny():
    each = visit_counts(400, 2_000, seed=2)
    values = [visits_p_value(counts, TRANSITIONS, PI) for counts in each]
    assert stats.kstest(values, "uniform").pvalue > 1e-3
    wrong = 0.9 * PI + 0.1 / len(PI)
    assert visits_p_value(each, TRANSITIONS, PI) > 1e-3
    assert visits_p_value(each, TRANSITIONS, wrong) < 1e-6
