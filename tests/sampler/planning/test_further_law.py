"""Rounds of further steps: how many there are depends on how many votes were saved, and the bias of an average that
takes them in is worked out by enumeration.

Two chains walk on few objects. Where both stand, how many votes they took and what they have summed up is followed
step by step with all probabilities, so the expected average is exact. Campaigns are then simulated with the program's
own rule for a round, and with wrong ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

import sampler
from sampler import exact
from sampler.judges.rounds import Rounds
from tests.support.catalogs import independent_law

N, CHAINS = 3, 2
WEIGHTS = np.array([3.0, 2.0, 1.0])
SCORES = np.array([-1.2, 0.2, 1.4])
LIKED = 2
CATALOG = sampler.Catalog(WEIGHTS)
MATRIX = exact.transition_matrix(CATALOG.log_p0, independent_law(CATALOG), SCORES[None], sampler.NVote((N,)))
LAW = exact.stationary(MATRIX)
MEAN = float(LAW @ SCORES)
STATES = len(WEIGHTS)


@cache
def steps_with_votes() -> np.ndarray:
    """Return the probability of each step from x to x' that takes v votes, asked for as the program asks."""
    found = np.zeros((STATES, STATES, N + 1))
    proposals = WEIGHTS / WEIGHTS.sum()
    # Between these, all uniforms give the same verdicts.
    edges = sorted({0.0, 1.0, *(min(1.0, K / (N - K + 1)) for K in range(N + 1))})
    for current, proposal in product(range(STATES), repeat=2):
        if current == proposal:
            found[current, current, 0] += proposals[proposal]
            continue
        yes = 1 / (1 + np.exp(SCORES[current] - SCORES[proposal]))
        for low, high in pairwise(edges):
            step = sampler.Comparison(0, 1, current, proposal, 0.0, (low + high) / 2, (N,))
            _ask(step, sampler.Tally.empty(1), yes, proposals[proposal] * (high - low), found)
    return found


def _ask(step: sampler.Comparison, tally: sampler.Tally, yes: float, chance: float, found: np.ndarray) -> None:
    verdict = sampler.tell(step, tally)
    if verdict is sampler.Verdict.UNDECIDED:
        _ask(step, tally.add(0, True), yes, chance * yes, found)
        _ask(step, tally.add(0, False), yes, chance * (1 - yes), found)
    else:
        after = step.proposal if verdict is sampler.Verdict.ACCEPT else step.current
        found[step.current, after, sum(tally.votes_cast)] += chance


@dataclass(frozen=True)
class Setup:
    """A campaign: how long its chains are, how long a round is, and what it may spend."""

    steps: int
    further: int
    spare: int = 0

    @property
    def rounds(self) -> Rounds:
        return Rounds(self.steps, self.further, CHAINS, N)

    @property
    def budget(self) -> int:
        return CHAINS * self.steps * N + self.spare

    def is_paid_for(self, number: int, votes: np.ndarray) -> np.ndarray:
        """Return where the next round fits in what is left after so many votes."""
        return self.budget - votes >= self.rounds.votes_at_most(number, CHAINS, CHAINS)


@dataclass(frozen=True)
class Expected:
    """What enumeration gives: the bias of an average, its standard deviation, and the law of the number of rounds."""

    bias: float
    spread: float
    rounds: np.ndarray


def enumerated(setup: Setup) -> Expected:
    """Follow both chains from the target law, with all probabilities, until no further round is paid for."""
    most = setup.budget + CHAINS * N * setup.further
    both = np.einsum("axv,byw->abxyvw", steps_with_votes(), steps_with_votes())
    step = np.zeros((STATES,) * 4 + (2 * N + 1,))
    for v, w in product(range(N + 1), repeat=2):
        step[..., v + w] += both[..., v, w]
    gain = SCORES[:, None] + SCORES
    # Of being there after so many votes: the probability, and with it the mean of the sum and of its square.
    chance, total, square = (np.zeros((STATES, STATES, most + 1)) for _ in range(3))
    chance[..., 0] = np.outer(LAW, LAW)

    def moved(held: np.ndarray) -> np.ndarray:
        after = np.zeros_like(held)
        for votes in range(2 * N + 1):
            after[..., votes:] += np.einsum("abv,abxy->xyv", held[..., : most + 1 - votes], step[..., votes])
        return after

    average = second = 0.0
    rounds: list[float] = []
    length, number, walk = setup.steps, 0, setup.steps
    while True:
        for _ in range(walk):
            chance, total, square = moved(chance), moved(total), moved(square)
            square += 2 * gain[..., None] * total + gain[..., None] ** 2 * chance
            total += gain[..., None] * chance
        number += 1
        goes_on = setup.is_paid_for(number, np.arange(most + 1)) & (number <= setup.rounds.most)
        weight = CHAINS * length
        average += (total * ~goes_on).sum() / weight
        second += (square * ~goes_on).sum() / weight**2
        rounds.append(float((chance * ~goes_on).sum()))
        chance, total, square = chance * goes_on, total * goes_on, square * goes_on
        if chance.sum() < 1e-12:
            return Expected(average - MEAN, float(np.sqrt(second - average**2)), np.array(rounds))
        walk, length = setup.further, length + setup.further


@dataclass(frozen=True)
class Standing:
    """Simulated campaigns at the end of a round: their votes, where their chains are, and their mean scores so far."""

    votes: np.ndarray
    heads: np.ndarray
    means: np.ndarray


Goes = Callable[[Setup, int, Standing], np.ndarray]
"""Which chains walk on, by the setup, the number of the next round, and how the campaigns stand."""


def by_the_budget(setup: Setup, number: int, now: Standing) -> np.ndarray:
    return np.repeat(setup.is_paid_for(number, now.votes)[:, None], CHAINS, axis=1)


def single_chains_by_their_state(setup: Setup, number: int, now: Standing) -> np.ndarray:
    """Wrong: a chain walks on if it is at an object that people like."""
    return by_the_budget(setup, number, now) & (now.heads == LIKED)


def until_it_is_liked(setup: Setup, number: int, now: Standing) -> np.ndarray:
    """Wrong: rounds go on until the mean score is what somebody would like to see."""
    return by_the_budget(setup, number, now) & (now.means < MEAN)[:, None]


def averages(setup: Setup, goes: Goes, campaigns: int) -> np.ndarray:
    """Simulate campaigns and return the mean score of each over all of its samples."""
    rng = np.random.default_rng(7)
    flat = steps_with_votes().reshape(STATES, -1)
    cumulative = np.cumsum(flat, axis=1)
    heads = rng.choice(STATES, size=(campaigns, CHAINS), p=LAW)
    votes, walking = np.zeros(campaigns, dtype=int), np.ones((campaigns, CHAINS), dtype=bool)
    total, samples = np.zeros(campaigns), np.zeros(campaigns)
    number, walk = 0, setup.steps
    while walking.any():
        for _ in range(walk):
            chain = np.nonzero(walking)
            here = cumulative[heads[chain]]
            drawn = np.minimum((here < rng.random(len(here))[:, None]).sum(axis=1), flat.shape[1] - 1)
            heads[chain] = drawn // (N + 1)
            np.add.at(votes, chain[0], drawn % (N + 1))
            np.add.at(total, chain[0], SCORES[heads[chain]])
            np.add.at(samples, chain[0], 1)
        number, walk = number + 1, setup.further
        walking &= goes(setup, number, Standing(votes, heads, total / samples)) & (number <= setup.rounds.most)
        assert (votes <= setup.budget).all()
    return total / samples


def test_a_step_with_its_votes_is_the_step_of_the_chain():
    assert steps_with_votes().sum(axis=2) == pytest.approx(MATRIX)


SETUPS = [Setup(8, 2), Setup(8, 1), Setup(8, 4), Setup(12, 3, spare=10), Setup(20, 2), Setup(20, 10)]
BOUND = 0.06
"""Of the bias, as a part of the standard deviation of one campaign's average: found by enumeration."""


@pytest.mark.parametrize("setup", SETUPS, ids=str)
def test_by_enumeration_the_bias_is_a_small_part_of_the_error_of_an_average(setup):
    found = enumerated(setup)
    assert found.rounds.sum() == pytest.approx(1)
    # How many there are varies: else there would be nothing to test.
    assert (found.rounds > 0.02).sum() >= 2
    assert 0.01 < abs(found.bias) / found.spread < BOUND


def test_declared_steps_alone_have_no_bias():
    """The control of the enumeration: without a round, the average of chains that start from the target is right."""
    assert enumerated(Setup(8, 80)).bias == pytest.approx(0, abs=1e-12)


CAMPAIGNS = 100_000


def test_campaigns_that_open_rounds_by_what_is_left_of_the_budget_are_within_the_bound():
    setup = SETUPS[0]
    found, expected = averages(setup, by_the_budget, CAMPAIGNS), enumerated(setup)
    error = found.std() / np.sqrt(CAMPAIGNS)
    # By a right program missed once in a thousand seeds; this one is fixed.
    assert abs(found.mean() - MEAN) < BOUND * expected.spread + 3.3 * error
    # The simulation and the enumeration know nothing of each other but the steps.
    assert found.mean() - MEAN == pytest.approx(expected.bias, abs=3.3 * error)
    assert found.std() == pytest.approx(expected.spread, rel=0.02)


@pytest.mark.parametrize("goes", [single_chains_by_their_state, until_it_is_liked])
def test_lengths_that_are_chosen_by_what_was_seen_are_found_out(goes):
    found = averages(SETUPS[0], goes, CAMPAIGNS)
    error = found.std() / np.sqrt(CAMPAIGNS)
    assert abs(found.mean() - MEAN) > BOUND * enumerated(SETUPS[0]).spread + 3.3 * error
