"""Simulated Bradley-Terry judges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from sampler import BradleyTerry

SCORES = {"worst": -900.0, "low": -0.5, "high": 1.0, "best": 900.0}
JUDGE = BradleyTerry(SCORES.__getitem__)


def test_preference_is_the_logistic_function_of_the_gap():
    assert JUDGE.preference("low", "high") == pytest.approx(1 / (1 + math.exp(-1.5)), rel=1e-14)
    assert JUDGE.preference("high", "high") == 0.5


@pytest.mark.parametrize("current", SCORES)
@pytest.mark.parametrize("proposal", SCORES)
def test_the_two_preferences_of_a_pair_sum_to_one(current, proposal):
    assert JUDGE.preference(current, proposal) + JUDGE.preference(proposal, current) == pytest.approx(1, abs=1e-15)


def test_huge_gaps_are_certain_and_do_not_overflow():
    assert JUDGE.preference("worst", "best") == 1.0
    assert JUDGE.preference("best", "worst") == 0.0


def test_votes_come_up_as_often_as_the_preference_says():
    votes = 20_000
    rng = np.random.default_rng(4)
    share = sum(JUDGE.vote(rng, "low", "high") for _ in range(votes)) / votes
    chance = JUDGE.preference("low", "high")
    # Four standard deviations of a binomial share.
    assert abs(share - chance) < 4 * math.sqrt(chance * (1 - chance) / votes)
    assert abs(share - 0.5) > 4 * math.sqrt(0.25 / votes)
