"""Simulated campaigns visit states as the target says; a chain driven by majority vote does not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sampler import BradleyTerry, Independent, Neighbours, Plan, begin, simulate
from tests.support.sampling import (
    LOPSIDED,
    independent_law,
    majority_chain,
    neighbours_law,
    target,
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
