"""A mixture that proposes for many chains at once gives each chain what it would have got alone."""

import numpy as np
import pytest

from sampler import Independent, Mixture, Neighbours, Plan, Proposal
from sampler.streams import Purpose, stream
from tests.support.sampling import LOPSIDED


class CountedBatches:
    """A kernel that moves to a state of its own and notes how many rows each call was given."""

    def __init__(self, goal: int) -> None:
        self.goal, self.calls = goal, []

    def propose(self, rng: np.random.Generator, state: int) -> Proposal[int]:
        return Proposal(self.goal, rng.random())

    def propose_batch(self, rngs, states) -> list[Proposal[int]]:
        self.calls.append(len(states))
        return [self.propose(rng, state) for rng, state in zip(rngs, states, strict=True)]


def rngs(count: int = 40) -> list[np.random.Generator]:
    return [stream(11, chain, 1, Purpose.PROPOSAL) for chain in range(count)]


@pytest.mark.parametrize("weights", [(0.3, 0.7), (0.9, 0.1)], ids=str)
def test_a_batch_gives_each_chain_what_it_gets_alone(weights):
    kernel = Mixture(weights, (Independent(LOPSIDED), Neighbours(LOPSIDED)))
    states = [chain % len(LOPSIDED) for chain in range(40)]
    alone = [kernel.propose(rng, state) for rng, state in zip(rngs(), states, strict=True)]
    assert kernel.propose_batch(rngs(), states) == alone


def test_each_component_draws_its_rows_in_one_call():
    first, second = CountedBatches(1), CountedBatches(2)
    kernel = Mixture((0.5, 0.5), (first, second))
    proposals = kernel.propose_batch(rngs(), [0] * 40)
    assert (len(first.calls), len(second.calls)) == (1, 1)
    assert sum(proposal.state == 1 for proposal in proposals) == first.calls[0]
    assert sum(proposal.state == 2 for proposal in proposals) == second.calls[0]


def test_a_component_that_stands_twice_draws_each_row_once():
    kernel = CountedBatches(3)
    proposals = Mixture((0.5, 0.5), (kernel, kernel)).propose_batch(rngs(), [0] * 40)
    assert len(proposals) == 40
    assert sum(kernel.calls) == 40


def test_an_empty_batch_has_no_proposals():
    assert Mixture((1.0,), (Independent(LOPSIDED),)).propose_batch([], []) == []


class Dear:
    """A kernel that says nothing of what it costs."""

    def propose(self, rng: np.random.Generator, state: int) -> Proposal[int]:
        return Proposal(state, 0.0)


def test_a_mixture_is_cheap_if_each_of_its_components_is():
    cheap = (Independent(LOPSIDED), Neighbours(LOPSIDED))
    assert all(kernel.is_cheap for kernel in (*cheap, Mixture((0.5, 0.5), cheap)))
    assert not Mixture((0.5, 0.5), (cheap[0], Dear())).is_cheap
    assert not Plan(1, LOPSIDED, Dear(), (1,)).is_cheap_at(1)
    assert Plan(1, LOPSIDED, cheap[1], (1,)).is_cheap_at(1)
