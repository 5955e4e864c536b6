"""Every kernel that a config can name runs through one test, and deliberately wrong ones of each kind must fail it.

Of listed states: q sums to 1, detailed balance holds to 1e-12 with the kernel's own log r0, proposals follow q, a long
run follows the distribution. Of latents, where states cannot be listed: the same, by exact moments and densities. What
else a kernel must do is tested in a file of its own.
"""

import itertools
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

from sampler import Catalog, CrankNicolson, Independent, Mixture, Neighbours, Proposal
from sampler.exact import log_base_ratio
from sampler.kernels import MOVES_IN
from sampler.kernels.suffix import Suffix
from sampler.kernels.walk import WalkKernel
from tests.sampler.kernels import test_crank_nicolson as latents
from tests.sampler.kernels import test_fragments as molecules
from tests.sampler.kernels import test_suffix as texts
from tests.sampler.kernels.test_walk import WithoutRatio
from tests.support import sampling
from tests.support.enumerated import walk_distribution
from tests.support.outcomes import distribution_of
from tests.support.sampling import (
    LOPSIDED,
    SMALL_CATALOGS,
    SMALL_SPACES,
    independent_distribution,
    neighbours_distribution,
)

MIN_P_VALUE = 1e-5


class Checked(NamedTuple):
    """A kernel's test, and the same test on kernels that are wrong."""

    right: Callable[[], object]
    wrong: tuple[Callable[[], object], ...]


class Uniform:
    """A wrong independent kernel: it draws every item alike, and claims r0 = 1 as if it had drawn from p0."""

    def propose(self, rng, state):
        return Proposal(int(rng.random() * len(LOPSIDED)), 0.0)


class DegreesForgotten(Neighbours):
    """A wrong kernel of neighbours: it takes the move for a symmetric one."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog)
        self.log_p0 = catalog.log_p0

    def propose(self, rng, state):
        proposal = super().propose(rng, state).state
        return Proposal(proposal, float(self.log_p0[proposal] - self.log_p0[state]))


def check_on_catalog(kernel, parts, catalog) -> None:
    """Check every draw of a kernel against its exact distribution.

    Args:
        parts: (weight, q) of each part; a part claims the ratio of its own q.
    """
    distribution = [Counter() for _ in range(len(catalog))]
    for weight, q in parts:
        sampling.check_rows(q)
        ratio = log_base_ratio(catalog.log_p0, q)
        for state, proposal in np.argwhere(q):
            distribution[state][int(proposal), rounded(ratio[state, proposal])] += weight * q[state, proposal]
    for state, expected in enumerate(distribution):
        drawn = distribution_of(lambda rng, at=state: outcome(kernel.propose(rng, at)))
        assert drawn == pytest.approx(dict(expected), abs=1e-12)
    if len(parts) == 1:
        p0 = dict(enumerate(np.exp(catalog.log_p0)))
        sampling.check_long_run(np.random.default_rng(4), kernel, 0, p0, q, steps=20_000)


def outcome(proposal: Proposal) -> tuple[int, float]:
    return int(proposal.state), rounded(proposal.log_r0)


def rounded(log_ratio: float) -> float:
    return round(float(log_ratio), 9) + 0.0


def on_catalogs(make, *distributions, catalogs=SMALL_CATALOGS) -> Callable[[], None]:
    """Return the test of a kernel on every small catalog; a distribution is (weight, q of a catalog)."""

    def check() -> None:
        for catalog in catalogs.values():
            check_on_catalog(make(catalog), [(weight, q(catalog)) for weight, q in distributions], catalog)

    return check


on_lopsided = partial(on_catalogs, catalogs={"lopsided": LOPSIDED})


def walked(catalog):
    return walk_distribution(catalog.log_p0, neighbours_distribution(catalog), 3)


def check_on_texts(kernel_of, cut, names=texts.GRAMMARS) -> None:
    for name in names:
        kernel = kernel_of(texts.space(name), cut)
        states, log_p0 = texts.solved(name)
        q, claimed = texts.drawn_by(kernel, states)
        sampling.check_rows(q)
        sampling.check_balance(log_p0, q, claimed)
    texts.long_run(name, kernel, cut)


def check_on_molecules(convention) -> None:
    for name in ("symmetric", "nitro", "duplicates", "imidazole", "small rings"):
        sampling.check_rows(molecules.solved(name)[2])
        molecules.check_claims(name, SMALL_SPACES[name].kernel(convention))
    molecules.check_visits("symmetric", SMALL_SPACES["symmetric"].kernel(convention))


def check_on_latents() -> None:
    for beta, dimension in itertools.product((0.08, 0.25, 0.7, 1.0), (1, 2, 3)):
        check_densities(CrankNicolson(beta), dimension, 1e-12)
    assert latents.p_value(CrankNicolson(0.7), 0.7) > MIN_P_VALUE


def check_densities(kernel, dimension, most) -> None:
    assert latents.density_imbalance(kernel, dimension) < most


def of_two(second) -> Callable[[Catalog], Mixture]:
    return lambda catalog: Mixture([0.3, 0.7], [Independent(catalog), second(catalog)])


FRESH, NEAR = (0.3, independent_distribution), (0.7, neighbours_distribution)
KERNELS = {
    "independent": Checked(
        on_catalogs(Independent, (1.0, independent_distribution)),
        (
            on_lopsided(lambda _: Uniform(), (1.0, independent_distribution)),
            on_lopsided(of_two(Neighbours), (1.0, independent_distribution)),
        ),
    ),
    "neighbours": Checked(
        on_catalogs(Neighbours, (1.0, neighbours_distribution)),
        (on_lopsided(DegreesForgotten, (1.0, neighbours_distribution)),),
    ),
    "mixture": Checked(
        on_catalogs(of_two(Neighbours), FRESH, NEAR),
        (on_lopsided(of_two(DegreesForgotten), FRESH, NEAR), on_lopsided(Independent, FRESH, NEAR)),
    ),
    "walk": Checked(
        on_lopsided(lambda catalog: WalkKernel(Neighbours(catalog), 3), (1.0, walked)),
        (on_lopsided(lambda catalog: WithoutRatio(Neighbours(catalog), 3), (1.0, walked)),),
    ),
    "fragments": Checked(lambda: check_on_molecules("exact"), (lambda: check_on_molecules("paper"),)),
    "suffix": Checked(
        lambda: [check_on_texts(Suffix, cut) for cut in texts.CUTS],
        (
            lambda: check_on_texts(texts.FreeOfLength, "length", ["ragged"]),
            lambda: check_on_texts(texts.LengthUpsideDown, "length", ["ragged"]),
        ),
    ),
    "crank-nicolson": Checked(
        check_on_latents,
        tuple(partial(check_densities, wrong(beta), 2, 1e-3) for wrong in latents.WRONG for beta in (0.25, 0.7)),
    ),
}


def test_every_kernel_that_a_config_can_name_is_here():
    assert KERNELS.keys() == {*MOVES_IN, "mixture", "walk"}


@pytest.mark.parametrize("kind", KERNELS)
def test_the_kernel_passes(kind):
    KERNELS[kind].right()


@pytest.mark.parametrize("kind", KERNELS)
def test_a_wrong_kernel_of_its_kind_does_not(kind):
    assert KERNELS[kind].wrong
    for check in KERNELS[kind].wrong:
        with pytest.raises(AssertionError):
            check()


def test_neighbours_need_a_graph_that_reaches_every_item():
    with pytest.raises(ValueError, match="neighbours"):
        Neighbours(Catalog(np.ones(3)))
    with pytest.raises(ValueError, match="neighbours"):
        Neighbours(Catalog(np.ones(3), ((1,), (0,), ())))


@pytest.mark.parametrize("weights", [[], [1.0], [0.2, 0.3, 0.5]])
def test_a_mixture_needs_one_weight_for_each_kernel(weights):
    with pytest.raises(ValueError, match="weights"):
        Mixture(weights, [Independent(SMALL_CATALOGS["pair"])] * 2 if weights else [])
