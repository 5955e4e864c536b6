"""The forecast of how many chains a crowd opens."""

from __future__ import annotations

import numpy as np
import pytest

from sampler import CrowdForecast, forecast_crowd


def forecast(people: int, most: int = 200, budgets: tuple[int, ...] = (1,), burn_in: int = 10) -> CrowdForecast:
    rng = np.random.default_rng(3)
    return forecast_crowd(rng, people, 20, chains=2, most=most, steps=100, burn_in=burn_in, budgets=budgets)


@pytest.mark.parametrize("people", [1, 2, 10, 60])
def test_where_one_vote_decides_everybody_has_a_chain_of_their_own(people):
    found = forecast(people)
    assert found.chains == max(2, people)
    assert found.votes == 20 * people
    # Ten of twenty votes; of one person, who votes on two chains in turn, all.
    assert found.burn_in_percent == (100 if people == 1 else 50)


def test_no_more_chains_open_than_may():
    assert forecast(60, most=7).chains == 7
    assert forecast(3, most=7, budgets=(9, 9)).votes <= 60


def test_there_is_no_burn_in_where_none_is_declared():
    assert forecast(10, burn_in=0).burn_in_percent == 0


def test_fewer_people_than_a_pair_needs_open_every_chain_and_then_wait():
    found = forecast(1, most=5, budgets=(4,))
    assert found.chains == 5
    assert found.votes < 20
