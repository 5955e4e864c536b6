"""Walks pulled towards a score that was learned: what a sample costs, on the spaces where it can be worked out.

A tilt t(x) = tau s^(x), bounded to a band about its median under p0. The inner walk is reversible for p0·exp(t), and
the base ratio is log r0 = t(x) - t(x'). Proposals come from the walk without a tilt with weight w, and from two tilts
(tau = 1/2 and 1) with the rest; each keeps its own base ratio.

    perfect       s^ = s, the score itself
    reversed      s^ = -s: as wrong as can be
    learned V     s^ is fitted to V votes of a warm-up: ridge regression of Bradley-Terry's log-odds on features
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from sampler import NVote, exact
from tests.benchmarks.votes_spaces import SEED, FiniteSpace

Matrix = npt.NDArray[np.float64]
TAUS = (0.5, 1.0)
BAND = 3.0
"""Nats about the median."""
WALK_SHARES = (0.7, 0.2)
VOTES = (100, 300, 1000)
FITS = 8
_RIDGE = 1.0
_STEPS_OF_A_BETA = 16


@dataclass(frozen=True)
class Part:
    """A component of the mixture: its weight, its proposal law and its log base ratio, of shape (n, n)."""

    weight: float
    q: Matrix
    log_r0: Matrix


@dataclass(frozen=True)
class Tilted:
    """One method: its name, w, and the cost by fit."""

    method: str
    walk_share: float
    costs: tuple[float, ...]


def tilted(space: FiniteSpace, length: float) -> Iterator[Tilted]:
    """Yield the cost of every surrogate on a space, with walks of this length."""
    rng = np.random.default_rng(SEED)
    surrogates = {"perfect": [space.score], "reversed": [-space.score]}
    surrogates |= {f"learned {votes}": [_fitted(rng, space, votes) for _ in range(FITS)] for votes in VOTES}
    for share in WALK_SHARES:
        for name, scores in surrogates.items():
            yield Tilted(name, share, tuple(_cost(space, length, share, score) for score in scores))


def _cost(space: FiniteSpace, length: float, share: float, surrogate: Matrix) -> float:
    parts = [Part(share, space.proposals(length), np.zeros_like(space.q))]
    # Where a length names a β, a score pulls a chain of steps of that size.
    moves, count = (space.proposals(length), _STEPS_OF_A_BETA) if space.walked else (space.q, int(length))
    for tau in TAUS:
        tilt = _bounded(space, tau * surrogate)
        # Given p0·exp(tilt), it works out the ratio against that by itself.
        inner = exact.walk_law(space.log_p0 + tilt, moves, count)
        parts.append(Part((1 - share) / len(TAUS), inner, tilt[:, None] - tilt[None]))
    rule, scores = NVote((1,)), space.score[None]
    law = exact.target(space.log_p0, scores)
    chain = sum(
        part.weight * exact.transition_matrix(space.log_p0, part.q, scores, rule, part.log_r0) for part in parts
    )
    votes = sum(
        part.weight * exact.votes_per_step(space.log_p0, part.q, scores, rule, log_r0=part.log_r0) for part in parts
    )
    return float(np.max(votes * exact.autocorrelation_time(np.asarray(chain), law, space.functions)))


def _bounded(space: FiniteSpace, tilt: Matrix) -> Matrix:
    order = np.argsort(tilt)
    median = tilt[order][np.searchsorted(np.cumsum(np.exp(space.log_p0)[order]), 0.5)]
    return np.asarray(np.clip(tilt, median - BAND, median + BAND))


def _fitted(rng: np.random.Generator, space: FiniteSpace, votes: int) -> Matrix:
    """Return a score fitted to votes on pairs of a walk, in stationarity."""
    law = exact.target(space.log_p0, space.score[None])
    ends = np.cumsum(space.proposals(space.grid[len(space.grid) // 2]), axis=1)
    first = rng.choice(len(law), size=20 * votes, p=law)
    second = (ends[first] <= rng.random(len(first))[:, None] * ends[first, -1:]).sum(axis=1)
    differ = np.flatnonzero(first != second)[:votes]
    first, second = first[differ], second[differ]
    won = rng.random(len(first)) < special.expit(space.score[second] - space.score[first])
    features = _features(space)
    rows = features[second] - features[first]
    sign = np.where(won, 1.0, -1.0)

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        margin = sign * (rows @ weights)
        slope = -(sign * special.expit(-margin)) @ rows + _RIDGE * weights
        return float(np.logaddexp(0, -margin).sum() + 0.5 * _RIDGE * weights @ weights), slope

    weights = optimize.minimize(loss, np.zeros(features.shape[1]), jac=True, method="L-BFGS-B").x
    return np.asarray(features @ weights)


def _features(space: FiniteSpace) -> Matrix:
    """Return bumps along each property and what the functions see but the score, each with spread 1."""
    columns = []
    for values in space.properties.T:
        for centre in np.quantile(values, np.linspace(0.05, 0.95, 8)):
            columns.append(np.exp(-0.5 * ((values - centre) / (values.std() / 3)) ** 2))
        columns.append(values)
    features = np.stack(columns, axis=1)
    spread = features.std(axis=0)
    return np.asarray((features - features.mean(axis=0))[:, spread > 0] / spread[spread > 0])
