"""Crank-Nicolson moves against what N(0, I) demands, and against kernels with the wrong scale, which must fail.

The space is continuous, so nothing can be enumerated. An affine Gaussian move has a density, worked out here from
what the kernel itself returns.
"""

import itertools
import math

import numpy as np
import pytest
from pydantic import ValidationError
from scipy import stats

from sampler.chain import Proposal, Purpose, stream
from sampler.kernels.crank_nicolson import CrankNicolson, CrankNicolsonConfig
from sampler.spaces.latents import Latent, standard_normals
from sampler.spaces.patterns import ImagesConfig
from tests.support.sampling import walk


class Affine:
    """A move z' = keep z + spread ξ that claims log r0 = 0, right or wrong."""

    def __init__(self, keep, spread):
        self.keep, self.spread = keep, spread

    def propose(self, rng, state):
        moved = self.keep * state.vector + self.spread * standard_normals(rng, len(state.vector))
        return Proposal(Latent.of(moved, state.grid), 0.0)


def random_walk(beta):
    """z' = z + β ξ, symmetric, yet with a ratio of p0 that is left out."""
    return Affine(1.0, beta)


# Also z' = (1 - β) z + β ξ and z' = (1 - β²) z + β ξ: the square root is forgotten.
WRONG = (lambda beta: Affine(1 - beta, beta), lambda beta: Affine(1 - beta * beta, beta), random_walk)


def moved(kernel, start, seed=0):
    """Return z' as the kernel makes it of `start` with one fixed ξ."""
    return kernel.propose(stream(5, seed, 1, Purpose.PROPOSAL), Latent.of(start)).state.vector


def affine_parts(kernel, dimension):
    """Return the matrix A and the noise's factor B of z' = A z + B ξ, read off what the kernel returns.

    With one ξ held fixed, the differences between the images of the unit vectors and of 0 are the columns of A.
    """
    origin = moved(kernel, np.zeros(dimension))
    matrix = np.column_stack([moved(kernel, unit) - origin for unit in np.eye(dimension)])
    noise = standard_normals(stream(5, 0, 1, Purpose.PROPOSAL), dimension)
    return matrix, np.diag(origin / noise)


def density_imbalance(kernel, dimension):
    """Return the largest |log p0(z) q(z'|z) - log p0(z') q(z|z')| - log r0's claim, over random pairs.

    With what the kernel claims: log p0(z) + log q(z'|z) + log r0(z, z') = log p0(z') + log q(z|z').
    """
    matrix, factor = affine_parts(kernel, dimension)
    worst = 0.0
    for pair in range(50):
        rng = stream(6, pair, 0, Purpose.START)
        one, other = standard_normals(rng, dimension), 1.5 * standard_normals(rng, dimension)
        claimed = kernel.propose(rng, Latent.of(one)).log_r0
        there = log_normal(one) + log_normal((other - matrix @ one) / np.diag(factor))
        back = log_normal(other) + log_normal((one - matrix @ other) / np.diag(factor))
        # The densities of small steps are large; rounding grows with them.
        worst = max(worst, abs(back - there - claimed) / max(1.0, abs(there)))
    return worst


def log_normal(vector):
    return -0.5 * math.fsum(vector * vector)


def p_value(kernel, beta, dimension=3):
    """Return the Kolmogorov-Smirnov p-value of a chain's thinned draws, accepted with min(1, r0), of 1,500 numbers."""
    # Corr(z_0, z_t) = (1 - β²)^(t/2) is below 0.01 after this many steps: the draws are as good as independent.
    thin = 1 if beta == 1 else math.ceil(2 * math.log(0.01) / math.log1p(-beta * beta))
    start = Latent.of(standard_normals(stream(7, 0, 0, Purpose.START), dimension))
    steps = walk(stream(7, 0, 1, Purpose.PROPOSAL), kernel, start, 500 * thin)
    draws = np.concatenate([state.vector for state in itertools.islice(steps, thin - 1, None, thin)])
    return stats.kstest(draws, "norm").pvalue


def test_a_proposal_is_a_function_of_the_stream_and_keeps_the_correlation():
    space = ImagesConfig().build()
    start = space.start(stream(8, 0, 0, Purpose.START), 0)
    one, same = (CrankNicolson(0.25).propose(stream(8, 0, 1, Purpose.PROPOSAL), start) for _ in range(2))
    assert one == same
    assert one.log_r0 == 0
    # Under p0, z·z'/d is sqrt(1 - β²) on average; |z|²/d and z·ξ/d each stray by at most 5 sqrt(2/d).
    overlap = float(np.mean(start.vector * one.state.vector))
    assert abs(overlap - math.sqrt(1 - 0.25**2)) < 5 * math.sqrt(2 / space.dimension)


def test_a_step_of_size_one_is_a_fresh_draw():
    space = ImagesConfig().build()
    for chain in (0, 1):
        start = space.start(stream(9, chain, 0, Purpose.START), chain)
        moved_to = CrankNicolson(1.0).propose(stream(9, 0, 1, Purpose.PROPOSAL), start).state
        assert moved_to == space.refresh(stream(9, 0, 1, Purpose.PROPOSAL), start)


@pytest.mark.parametrize("beta", [0, -0.1, 1.01, math.nan])
def test_other_step_sizes_are_refused(beta):
    with pytest.raises(ValueError, match="beta must be above 0 and at most 1"):
        CrankNicolson(beta)
    with pytest.raises(ValidationError, match="beta"):
        CrankNicolsonConfig(beta=beta)
