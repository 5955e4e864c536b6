"""A stopping rule: at which steps it looks, what it sees there, and when that is enough."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sampler.objects.convergence import convergence
from sampler.objects.stopping import Look, StoppingRecipe, look_at

RULE = StoppingRecipe(property="words", ess=100, r_hat=1.05, first=20, every=15)
ENOUGH = Look(20, r_hat=1.05, bulk_ess=100, tail_ess=100)


def test_it_looks_at_declared_steps_before_the_last_one():
    assert list(RULE.looks(50)) == [20, 35]
    assert [RULE.length_after(looks, 50) for looks in range(3)] == [20, 35, 50]
    assert list(RULE.looks(51)) == [20, 35, 50]
    assert [RULE.length_after(looks, 51) for looks in range(4)] == [20, 35, 50, 51]


@pytest.mark.parametrize(
    "changes", [{"r_hat": 1.051}, {"r_hat": None}, {"bulk_ess": 99.9}, {"tail_ess": 99.9}, {"tail_ess": None}]
)
def test_it_is_met_only_if_all_of_it_is(changes):
    assert RULE.is_met(ENOUGH)
    assert not RULE.is_met(replace(ENOUGH, **changes))


def test_what_comes_before_the_samples_and_after_the_step_is_not_seen():
    """Of a burn-in of 10, and a look at step 30, the states after steps 11 to 30: an even number of draws or an odd
    one.
    """
    chains = np.random.default_rng(1).normal(size=(3, 31))
    for step in (30, 29):
        seen = look_at(step, 10, chains)
        found = convergence(chains[:, 11 : step + 1])
        assert seen == Look(step, found.r_hat, found.bulk_ess, found.tail_ess)
    changed = chains.copy()
    changed[:, :11] = 1e6
    changed[:, 30] = np.nan
    assert look_at(29, 10, changed) == look_at(29, 10, chains)


@pytest.mark.parametrize("step", [20, 21])
def test_chains_that_stand_still_at_different_objects_have_no_r_hat(step):
    seen = look_at(step, 0, [np.full(step + 1, number) for number in (0.1, 0.7, 0.3)])
    assert seen.r_hat is None
    assert not RULE.is_met(seen)


@pytest.mark.parametrize("chains", [[np.arange(30.0)], [np.ones(30)] * 3, [np.arange(30.0), np.full(30, np.nan)]])
def test_where_nothing_can_be_compared_nothing_is_seen(chains):
    assert look_at(20, 0, chains) == Look(20, None, None, None)
