"""Walks that a score pulls: exact whatever the score says, and each wrong way of pulling found out.

The transition matrix comes from the kernel's own `propose`, followed through every number it can draw, with the base
ratio that it returns for each of them; only the votes are averaged out.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from sampler import Chosen, Mixture, Proposal, exact, marginal_acceptance, parse_recipe
from sampler.kernels.inner_chain import after_steps
from sampler.kernels.surrogates import UNIT, Surrogate, features_of
from sampler.kernels.surrogates.surrogate import BAND, TAUS
from sampler.kernels.tilted import TiltedWalk
from sampler.kernels.walk import WalkKernel
from tests.sampler.kernels.test_walk import EXACT, LENGTHS, WRONG, space
from tests.support.catalogs import LOPSIDED
from tests.support.kernels import LEAST_P_VALUE
from tests.support.outcomes import law_of

NAMES = ("synthetic", "lopsided", "texts", "molecules")
BUDGETS = (1, 2)
SHARES = (0.7, 0.15, 0.15)


def tilt_of(small, tau: float):
    """Return a tilt that is not the judges' score."""
    tilts = {state: round(tau * (0.9 * np.cos(2 * i) - 0.1 * i) / UNIT) for i, state in enumerate(small.states)}
    return tilts.__getitem__


def chain_of(small, kernel, budgets=BUDGETS) -> np.ndarray:
    """Return the chain of a kernel and the space's judges, shape (n, n)."""
    place = {state: i for i, state in enumerate(small.states)}
    preference = exact.preferences(small.scores)
    chain = np.zeros((len(place), len(place)))
    for state, at in place.items():

        def outcome(rng, state=state):
            proposal = kernel.propose(rng, state)
            return proposal.state, proposal.log_r0

        for (reached, log_r0), chance in law_of(outcome).items():
            to = place[reached]
            accepted = 1.0 if to == at else float(marginal_acceptance(log_r0, preference[at, to], budgets))
            chain[at, to] += chance * accepted
            chain[at, at] += chance * (1 - accepted)
    return chain


def imbalance(small, kernel) -> float:
    chain = chain_of(small, kernel)
    assert np.abs(chain.sum(axis=1) - 1).max() < EXACT
    return exact.imbalance(exact.target(small.log_p0, small.scores), chain)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", NAMES)
def test_a_walk_that_is_pulled_is_in_detailed_balance(name, length):
    small = space(name)
    assert imbalance(small, TiltedWalk(small.first, length, tilt_of(small, 1))) < EXACT


@pytest.mark.parametrize("length", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_so_is_its_mixture_with_plain_walks(name, length):
    small = space(name)
    parts = [WalkKernel(small.first, length), *(TiltedWalk(small.first, length, tilt_of(small, t)) for t in TAUS)]
    assert imbalance(small, Mixture(SHARES, parts)) < EXACT


class WithoutTilt(TiltedWalk):
    """Wrong: the base ratio of a walk that nothing pulls."""

    def propose(self, rng, state):
        return Proposal(super().propose(rng, state).state, 0.0)


class OtherSign(TiltedWalk):
    """Wrong: the tilt of the base ratio the other way round."""

    def propose(self, rng, state):
        proposal = super().propose(rng, state)
        return Proposal(proposal.state, -proposal.log_r0)


class WithoutInnerRatio(TiltedWalk):
    """Wrong: the inner moves are corrected for the tilt, and not for their own base ratio."""

    def propose(self, rng, state):
        end = state
        for _ in range(self._length):
            new = self._inner._kernel.propose(rng, end).state
            if rng.random() < np.exp(min(0.0, (self._tilt(new) - self._tilt(end)) * UNIT)):
                end = new
        return Proposal(end, (self._tilt(state) - self._tilt(end)) * UNIT)


class MeanTilt(TiltedWalk):
    """Wrong: a walk of one tilt with the mean of several tilts in its base ratio."""

    def __init__(self, kernel, length, tilt, mean) -> None:
        super().__init__(kernel, length, tilt)
        self._mean = mean

    def propose(self, rng, state):
        end = after_steps(self._inner, rng, state, self._length)
        return Proposal(end, (self._mean(state) - self._mean(end)) * UNIT)


@pytest.mark.parametrize("wrong", [WithoutTilt, OtherSign, WithoutInnerRatio])
@pytest.mark.parametrize("name", ["synthetic", "lopsided", "texts"])
def test_a_wrong_base_ratio_is_found_out(name, wrong):
    small = space(name)
    assert imbalance(small, wrong(small.first, 2, tilt_of(small, 1))) > WRONG


@pytest.mark.parametrize("name", ["synthetic", "lopsided", "texts"])
def test_the_mean_tilt_in_every_part_is_found_out(name):
    small = space(name)
    tilts = [tilt_of(small, tau) for tau in TAUS]

    def mean(state) -> float:
        return sum(tilt(state) for tilt in tilts) / len(tilts)

    parts = [WalkKernel(small.first, 2), *(MeanTilt(small.first, 2, tilt, mean) for tilt in tilts)]
    assert imbalance(small, Mixture(SHARES, parts)) > WRONG


@pytest.mark.parametrize("walk", [TiltedWalk, WithoutInnerRatio])
def test_a_long_pulled_walk_ends_where_its_law_says(walk):
    """Chi-square over 20,000 walks of 40 moves from one state; the walk without the inner base ratio must fail."""
    small, length, draws = space("synthetic"), 40, 20_000
    tilt = tilt_of(small, 1)
    rng, kernel = np.random.default_rng(16), walk(small.first, length, tilt)
    proposals = [kernel.propose(rng, 0) for _ in range(draws)]
    pulled = small.log_p0 + np.array([tilt(state) for state in small.states]) * UNIT
    expected = draws * exact.walk_law(pulled, small.law(small.first), length)[0]
    ends = np.bincount([proposal.state for proposal in proposals], minlength=len(small.states))
    assert (stats.chisquare(ends, expected).pvalue > LEAST_P_VALUE) == (walk is TiltedWalk)
    assert {round(each.log_r0 / UNIT) for each in proposals if each.state == 3} == {tilt(0) - tilt(3)}


TEXTS = ("a", "a cat", "two cats sat", "it was a dark and stormy night. It rained", "Why?")
SURROGATE = Surrogate(
    is_on=True,
    means=(1.0, 1.0, 80.0, *(0.0,) * 18),
    scales=(2.0, 1.0, 50.0, *(1.0,) * 18),
    weights=tuple(0.2 - 0.03 * k for k in range(21)),
    root=tuple(tuple(0.01 + 0.001 * (i - j) if j <= i else 0.0 for j in range(21)) for i in range(21)),
    centres=(0.1, 0.2),
    votes=300,
    log_loss=0.6,
)


def recipe_of(chains: int = 5, **learned) -> dict:
    warm_up = {"steps": 3, "grid": [1, 3], "properties": ["words"], "settling": 1, "learned": {} | learned}
    return {
        "version": 1,
        "space": {"kind": "catalog", "objects": "texts", "neighbours": 2},
        "kernel": {"kind": "walk", "kernel": {"kind": "neighbours"}, "length": 2, "warm_up": warm_up},
        "judges": [{"question": "Which one?", "budget": 1}],
        "chains": chains,
        "steps": 9,
        "seed": 3,
    }


def test_a_plan_pulls_each_group_of_chains_by_its_own_score():
    """The law of the plan's own kernel, over the texts of a list: exact for each group, and not the same for two."""
    small = space("lopsided")
    recipe = parse_recipe(recipe_of())
    catalog = LOPSIDED
    off = Surrogate.read(SURROGATE.described() | {"is_on": False})
    plan = recipe.build(catalog, chosen=Chosen(2, (SURROGATE, off, SURROGATE, off, off)), contents=TEXTS)
    chains = [chain_of(small, plan.kernel_at(chain, 4)) for chain in range(5)]
    pi = exact.target(small.log_p0, small.scores)
    assert max(exact.imbalance(pi, chain) for chain in chains) < EXACT
    assert np.abs(chains[0] - chains[2]).max() == 0
    assert np.abs(chains[0] - chains[1]).max() > 1e-3
    plain = chain_of(small, WalkKernel(small.first, 2))
    assert np.abs(chains[1] - plain).max() < EXACT
    assert [recipe.part_of(0, step, Chosen(2, (SURROGATE,))) is None for step in (3, 4)] == [False, False]
    assert recipe.part_of(0, 4, Chosen(2)) is None


def test_a_tilt_is_rounded_once_and_stays_in_its_band():
    features = features_of("texts")
    for place, tau in enumerate(TAUS):
        for text in TEXTS:
            tilt = SURROGATE.tilt(features(text), place)
            raw = SURROGATE.raw_tilt(features(text), tau)
            assert abs(tilt * UNIT - SURROGATE.centres[place]) <= BAND + UNIT
            if abs(raw - SURROGATE.centres[place]) < BAND:
                assert abs(tilt * UNIT - raw) <= UNIT / 2
    tilts = [SURROGATE.tilt(features(text), 1) for text in TEXTS]
    assert sum(one - other for one, other in pairwise([*tilts, tilts[0]])) == 0
    assert Surrogate.read(SURROGATE.described()) == SURROGATE


def test_raw_tilts_follow_mean_and_variance():
    """τ·w·z + τ²·zᵀΣz / 2 by matrices, with z the scaled features."""
    z = (np.array(features_of("texts")(TEXTS[3])) - SURROGATE.means) / SURROGATE.scales
    root = np.array(SURROGATE.root)
    for tau in TAUS:
        expected = tau * z @ SURROGATE.weights + tau**2 * z @ root @ root.T @ z / 2
        assert SURROGATE.raw_tilt(features_of("texts")(TEXTS[3]), tau) == pytest.approx(expected, rel=1e-12)
