"""A mixture that proposes for many chains at once gives each chain what it would have got alone."""

import numpy as np
import pytest

from sampler import Independent, Mixture, Neighbours
from sampler.streams import Purpose, stream
from tests.support.sampling import LOPSIDED


def rngs(count: int = 40) -> list[np.random.Generator]:
    return [stream(11, chain, 1, Purpose.PROPOSAL) for chain in range(count)]


@pytest.mark.parametrize("weights", [(0.3, 0.7), (0.9, 0.1)], ids=str)
def test_a_batch_gives_each_chain_what_it_gets_alone(weights):
    kernel = Mixture(weights, (Independent(LOPSIDED), Neighbours(LOPSIDED)))
    states = [chain % len(LOPSIDED) for chain in range(40)]
    alone = [kernel.propose(rng, state) for rng, state in zip(rngs(), states, strict=True)]
    assert kernel.propose_batch(rngs(), states) == alone


def test_an_empty_batch_has_no_proposals():
    assert Mixture((1.0,), (Independent(LOPSIDED),)).propose_batch([], []) == []
