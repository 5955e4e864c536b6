"""Each chain's own law after a fit is exact, for its score has seen nothing of it: enumerated, with two chains.

Both chains start in the target. Every proposal and vote of a warm-up of two steps is enumerated, and with it every
score that the product's own fit can come to. Then a chain moves by the product's own kernel with that score. A fit that
has seen the chain's own votes, be it only to decide whether the score is used, changes the chain's law.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from sampler import Catalog, Mixture, Neighbours, exact
from sampler.kernels.surrogates import Surrogate, WarmUpVotes, features_of, surrogates_for
from sampler.kernels.surrogates.surrogate import TAUS
from sampler.kernels.tilted import TiltedWalk
from sampler.kernels.walk import WalkKernel
from tests.sampler.kernels.test_tilted import SHARES, chain_of
from tests.sampler.kernels.test_walk import Space

TEXTS = ("a cat", "two cats sat there. Why?", "it rained “all” night, and all day")
CATALOG = Catalog(np.array([1.0, 2.0, 1.5]), ((1, 2), (0, 2), (0, 1)))
LENGTH, AFTER = 1, (1, 2, 3)
# The judge is sharp, so that a score matters; all votes of a comparison are asked.
SCORES, BUDGET = np.array([[0.0, 2.0, -1.5]]), 3
EXACT, WRONG = 1e-9, 1e-4


@dataclass(frozen=True)
class Step:
    """One way in which a chain's step can go, with its probability given where it starts."""

    chance: float
    start: int
    proposal: int
    votes_for: int
    end: int

    @property
    def votes(self) -> int:
        return BUDGET if self.start != self.proposal else 0


@dataclass(frozen=True)
class Path:
    """One way through a warm-up of two steps, begun in the target."""

    chance: float
    steps: tuple[Step, ...]

    @property
    def end(self) -> int:
        return self.steps[-1].end

    def votes(self, chain: int) -> list[WarmUpVotes]:
        return [
            WarmUpVotes(chain, step.votes, step.votes_for, TEXTS[step.start], TEXTS[step.proposal])
            for step in self.steps
        ]


def small() -> Space:
    found = Space([0, 1, 2], CATALOG.log_p0, Neighbours(CATALOG), Neighbours(CATALOG))
    found.scores = SCORES
    return found


SMALL = small()
PI = exact.target(SMALL.log_p0, SCORES)


def ways_from(start: int) -> Iterator[Step]:
    for proposal, chance in enumerate(SMALL.law(WalkKernel(Neighbours(CATALOG), LENGTH))[start]):
        if start == proposal:
            yield Step(chance, start, proposal, 0, start)
            continue
        p = 1 / (1 + math.exp(SCORES[0, start] - SCORES[0, proposal]))
        for won in range(BUDGET + 1):
            of_votes = chance * math.comb(BUDGET, won) * p**won * (1 - p) ** (BUDGET - won)
            accepted = min(1.0, won / (BUDGET - won + 1))
            yield Step(of_votes * accepted, start, proposal, won, proposal)
            yield Step(of_votes * (1 - accepted), start, proposal, won, start)


def paths() -> list[Path]:
    ways = [[way for way in ways_from(start) if way.chance > 0] for start in range(3)]
    return [
        Path(PI[start] * first.chance * second.chance, (first, second))
        for start in range(3)
        for first in ways[start]
        for second in ways[first.end]
    ]


PATHS = paths()


@cache
def fitted_to(path: Path) -> Surrogate:
    """Return the product's own fit for the first of two chains to a way of the second.

    The least number of chains is an argument. What the first one did itself has no part in it.
    """
    first, _ = surrogates_for([*path.votes(1), *PATHS[-1].votes(0)], 2, features_of("texts"), fewest=2)
    return first


def chain_with(surrogate: Surrogate) -> np.ndarray:
    """Return the chain of the product's own kernel with a score, shape (3, 3)."""
    features = features_of("texts")
    return _chain_with(tuple(tuple(surrogate.tilt(features(text), at) for text in TEXTS) for at in range(len(TAUS))))


@cache
def _chain_with(tilts: tuple[tuple[int, ...], ...]) -> np.ndarray:
    inner = Neighbours(CATALOG)
    parts = [WalkKernel(inner, LENGTH), *(TiltedWalk(inner, LENGTH, tilt.__getitem__) for tilt in tilts)]
    return chain_of(SMALL, Mixture(SHARES, parts), budgets=(1,))


OFF = replace(fitted_to(PATHS[0]), is_on=False)


def ends_of(some: list[Path]) -> np.ndarray:
    """Return how likely these ways are to end in each state, shape (3,)."""
    law = np.zeros(3)
    for path in some:
        law[path.end] += path.chance
    return law


def by_the_other() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the ends of the chain's ways and how it goes on, for each way of the other chain."""
    for other in PATHS:
        yield other.chance * ends_of(PATHS), chain_with(fitted_to(other))


def by_ones_own() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Wrong: the score is fitted to the votes of the chain that it moves."""
    for mine in PATHS:
        yield ends_of([mine]), chain_with(fitted_to(mine))


def on_by_ones_own() -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Wrong: fitted to the other chain's votes, and used only if one's own last proposal won a vote."""
    keen = [mine for mine in PATHS if mine.steps[-1].votes_for]
    others = [mine for mine in PATHS if not mine.steps[-1].votes_for]
    for other in PATHS:
        yield other.chance * ends_of(keen), chain_with(fitted_to(other))
        yield other.chance * ends_of(others), chain_with(OFF)


def distance(ways: Iterator[tuple[np.ndarray, np.ndarray]]) -> float:
    """Return the largest total variation from the target at the steps after the warm-up."""
    laws = np.zeros((len(AFTER), 3))
    for ends, chain in ways:
        laws += [ends @ np.linalg.matrix_power(chain, steps) for steps in AFTER]
    return 0.5 * float(np.abs(laws - PI).sum(axis=1).max())


def test_the_enumeration_is_whole_and_scores_are_used():
    assert sum(path.chance for path in PATHS) == pytest.approx(1, abs=1e-12)
    assert np.abs(ends_of(PATHS) - PI).max() < 1e-12
    assert sum(path.chance for path in PATHS if fitted_to(path).is_on) > 0.1


def test_a_chain_moved_by_a_score_of_the_others_keeps_its_law():
    assert distance(by_the_other()) <= EXACT


@pytest.mark.parametrize("wrong", [by_ones_own, on_by_ones_own])
def test_a_score_that_has_seen_the_chains_own_votes_changes_it(wrong):
    assert distance(wrong()) > WRONG


def test_the_chains_together_are_not_independent_but_nearly():
    """The two chains' joint law after the warm-up is not the product of their own laws, yet close to it.

    Pooled over chains, a mean has nearly the error of independent chains.
    """
    chains = [chain_with(fitted_to(path)) for path in PATHS]
    # P(the first goes i -> j by a score of a way of the second, which ends in k): summed over ways of the second.
    by_end = np.zeros((3, 3, 3))
    for path, chain in zip(PATHS, chains, strict=True):
        by_end[path.end] += path.chance * chain
    joint = np.einsum("kij,ikl->jl", by_end, np.stack([by_end[i] for i in range(3)]), optimize=True)
    gap = joint - np.outer(PI, PI)
    place = np.arange(3.0)
    variance = float(place**2 @ PI - (place @ PI) ** 2)
    assert joint.sum() == pytest.approx(1)
    assert 1e-6 < 0.5 * np.abs(gap).sum() < 0.05
    assert abs(place @ gap @ place) < 0.05 * variance
