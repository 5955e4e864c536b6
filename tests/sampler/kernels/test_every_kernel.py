"""Every kernel that a config can name runs through one test, and a deliberately wrong one of each kind must fail it.

Of listed states: q sums to 1, detailed balance holds to 1e-12 with the kernel's own log r0, a long run follows the law.
Of latents, where states cannot be listed: the same three, by exact moments and densities. What else a kernel must do
is tested in a file of its own.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from sampler import Independent, Mixture, Neighbours, Proposal
from sampler.exact import walk_law
from sampler.kernels import MOVES_IN
from sampler.kernels.suffix import Suffix
from sampler.kernels.walk import WalkKernel
from tests.sampler.kernels import test_crank_nicolson as latents
from tests.sampler.kernels import test_fragments as molecules
from tests.sampler.kernels import test_suffix as texts
from tests.sampler.kernels.test_kernels import DegreesForgotten
from tests.sampler.kernels.test_walk import WithoutRatio
from tests.support.sampling import (
    LOPSIDED,
    SMALL_SPACES,
    check_balance,
    check_long_run,
    check_rows,
    independent_law,
    neighbours_law,
)


class Checked(NamedTuple):
    """A kernel's test, on the kernel and on a wrong one."""

    right: Callable[[], None]
    wrong: Callable[[], None]


class Uniform:
    """A wrong independent kernel: it draws every item alike, and claims r0 = 1 as if it had drawn from p0."""

    def propose(self, rng, state):
        return Proposal(int(rng.random() * len(LOPSIDED)), 0.0)


def check_on_catalog(kernel, q) -> None:
    claimed = np.full(q.shape, -np.inf)
    rng = np.random.default_rng(3)
    for state in range(len(LOPSIDED)):
        for _ in range(400):
            proposal = kernel.propose(rng, state)
            claimed[state, proposal.state] = proposal.log_r0
    check_rows(q)
    check_balance(LOPSIDED.log_p0, q, claimed)
    law = dict(enumerate(np.exp(LOPSIDED.log_p0)))
    check_long_run(np.random.default_rng(4), kernel, 0, law, q, steps=20_000)


def check_mixture(neighbours) -> None:
    """Parts that move to other states, so that a state tells which part proposed it."""
    kernel = Mixture([0.4, 0.6], [neighbours, neighbours])
    check_on_catalog(kernel, neighbours_law(LOPSIDED))


def check_walk(make) -> None:
    q = walk_law(LOPSIDED.log_p0, neighbours_law(LOPSIDED), 3)
    check_on_catalog(make(Neighbours(LOPSIDED), 3), q)


def check_on_texts(kernel, cut) -> None:
    q, claimed = texts.tables("ragged", kernel, cut)
    check_rows(q)
    check_balance(texts.solved("ragged")[1], q, claimed)
    texts.long_run("ragged", kernel, cut)


def check_on_molecules(convention) -> None:
    for name in ("symmetric", "nitro", "duplicates", "imidazole", "small rings"):
        kernel = SMALL_SPACES[name].kernel(convention)
        check_rows(molecules.solved(name)[2])
        molecules.check_claims(name, kernel)
    molecules.check_visits("symmetric", SMALL_SPACES["symmetric"].kernel(convention))


def check_on_latents(make) -> None:
    beta, dimension = 0.7, 2
    assert latents.departure_from_exchangeability(make(beta), dimension) < 1e-12
    assert latents.density_imbalance(make(beta), dimension) < 1e-12
    assert latents.p_value(make(beta), beta) > latents.LEAST_P_VALUE


KERNELS = {
    "independent": Checked(
        lambda: check_on_catalog(Independent(LOPSIDED), independent_law(LOPSIDED)),
        lambda: check_on_catalog(Uniform(), independent_law(LOPSIDED)),
    ),
    "neighbours": Checked(
        lambda: check_on_catalog(Neighbours(LOPSIDED), neighbours_law(LOPSIDED)),
        lambda: check_on_catalog(DegreesForgotten(LOPSIDED), neighbours_law(LOPSIDED)),
    ),
    "mixture": Checked(lambda: check_mixture(Neighbours(LOPSIDED)), lambda: check_mixture(DegreesForgotten(LOPSIDED))),
    "walk": Checked(lambda: check_walk(WalkKernel), lambda: check_walk(WithoutRatio)),
    "fragments": Checked(lambda: check_on_molecules("exact"), lambda: check_on_molecules("paper")),
    "suffix": Checked(
        lambda: [check_on_texts(Suffix(texts.space("ragged"), cut), cut) for cut in ("limit", "length")],
        lambda: check_on_texts(texts.FreeOfLength(texts.space("ragged"), "length"), "length"),
    ),
    "crank-nicolson": Checked(
        lambda: check_on_latents(latents.right), lambda: check_on_latents(latents.scale_without_root)
    ),
}


def test_every_kernel_that_a_config_can_name_is_here():
    assert KERNELS.keys() == {*MOVES_IN, "mixture", "walk"}


@pytest.mark.parametrize("kind", KERNELS)
def test_the_kernel_passes(kind):
    KERNELS[kind].right()


@pytest.mark.parametrize("kind", KERNELS)
def test_a_wrong_kernel_of_its_kind_does_not(kind):
    with pytest.raises(AssertionError):
        KERNELS[kind].wrong()
