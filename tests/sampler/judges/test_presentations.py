"""Sides and draws of votes: functions of (seed, chain, step), independent from source to source."""

import itertools

import numpy as np
import pytest

from sampler import presentations_of, shows_proposal_first
from sampler.streams import Purpose, stream

# Agreement of two fair coins in n pairs has mean n/2 and standard deviation sqrt(n)/2; 4.5 of them leave a chance of
# 7e-6 for each of the some 500 pairs of columns below, with a fixed seed.
STEPS, CHAINS, SEED = 300, 4, 17
TOLERANCE = 4.5


def columns(budgets, judges):
    """Return the sides by source and place: each a vector over all steps of all chains."""
    places = [(chain, step) for chain in range(CHAINS) for step in range(1, STEPS + 1)]
    found = {
        ("people", asked): [shows_proposal_first(SEED, *place, asked) for place in places]
        for asked in range(sum(budgets))
    }
    for judge in judges:
        sides = np.array([presentations_of(SEED, *place, budgets, judge, "random") for place in places])
        found |= {(f"model {judge}", slot): sides[:, slot] for slot in range(budgets[judge])}
    return {name: np.asarray(sides) for name, sides in found.items()}


def deviation(one, other):
    """Return by how many standard deviations two columns agree more or less often than fair coins."""
    return abs(float(np.mean(one == other)) - 0.5) * 2 * np.sqrt(len(one))


@pytest.mark.parametrize(
    ("budgets", "judges"), [((3,), (0,)), ((2, 3), (1,)), ((3, 2), (0,)), ((4, 1, 3), (0, 2)), ((1, 5, 2), (0, 1, 2))]
)
def test_sides_of_any_two_sources_are_independent_at_any_places_and_budgets(budgets, judges):
    sides = columns(budgets, judges)
    for (one, first), (other, second) in itertools.combinations(sides.items(), 2):
        assert deviation(first, second) < TOLERANCE, (one, other)
    # Neither does one step tell of the next, nor one chain of another.
    for first, second in itertools.product(sides.values(), repeat=2):
        assert deviation(first[1:], second[:-1]) < TOLERANCE
        assert deviation(first[STEPS:], second[:-STEPS]) < TOLERANCE


def test_equal_streams_are_found_out():
    sides = columns((3,), (0,))
    assert deviation(sides["model 0", 1], sides["model 0", 1].copy()) > TOLERANCE


def test_each_side_is_first_as_often():
    for name, sides in columns((3, 2), (0,)).items():
        assert deviation(sides, np.ones(len(sides), dtype=bool)) < TOLERANCE, name


def test_the_side_of_each_time_that_people_are_asked_is_the_streams_next_number():
    numbers = stream(SEED, 2, 7, Purpose.PEOPLE_SIDES).random(20)
    assert [shows_proposal_first(SEED, 2, 7, asked) for asked in range(20)] == (numbers < 0.5).tolist()
