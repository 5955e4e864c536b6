"""Bradley-Terry scores and one lean to the first item, fitted together, with their intervals.

The first item is chosen with probability sigma(s_first - s_second + b). When voting stopped does not matter: that
depends on earlier votes only, so the likelihood is the same. It is concave, and a Newton step that is halved until it
grows leads to its maximum from anywhere.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from sampler.diagnostics.bootstrap import CELLS, FEWEST_CLUSTERS, cluster_weights, interval
from sampler.diagnostics.choices import Choices, IntArray

FloatArray = npt.NDArray[np.float64]

FEWEST_VOTES_PER_SCORE = 10
"""With fewer, the joint fit's lean is too far from 0, whatever the number of votes (Neyman and Scott, Econometrica 16,
1948): with one score for two votes it is twice what it should be."""

# The step that follows one as small as this is below rounding: steps shrink quadratically.
_EXACT = 1e-7
# For percentiles of resamples; what is left after such a step is about its square.
_CLOSE = 1e-3
_LONGEST_STEP = 5.0
_MOST_STEPS = 200
_MOST_HALVINGS = 40
# Up to so many unknowns a factorisation for each set of weights costs less than conjugate gradients.
_FEW = 30
_MOST_GRADIENTS = 500
_LOOSE = 1e-4


class NoFit(ValueError):  # noqa: N818 - the data have no fit; nothing went wrong
    """These votes have no finite fit; the message gives the reason."""


@dataclass(frozen=True)
class SourceLean:
    """The lean b to the first object, in nats of log-odds, with its interval; NaN where too few clusters."""

    log_odds: float
    low: float
    high: float
    level: float
    votes: int
    """That the estimate rests on."""
    clusters: int
    method: Literal["joint fit", "pairs"]


@dataclass(frozen=True)
class Scores:
    """Scores in nats of log-odds, mean 0, with percentile intervals; all of shape (n,), in the order of `items`.

    The intervals are NaN where there are fewer than 15 clusters: they would be too narrow.
    """

    items: tuple[Hashable, ...]
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    level: float
    clusters: int
    lean: SourceLean | None
    """To the first object, fitted with the scores; None where votes are too few to tell it without a bias."""


def bradley_terry_intervals(
    votes: Choices, rng: np.random.Generator, resamples: int = 1_000, level: float = 0.95
) -> Scores:
    """Return scores, fitted with the lean, and percentile intervals from the Bayesian bootstrap over clusters.

    Each resample gives every cluster one Exponential(1) weight, shared by its votes (`cluster_weights`). Votes that
    depend on each other belong in one cluster: resampled one by one, they give intervals that cover far less than
    they say. Below 15 clusters no interval can be trusted, and there is none.

    Raises:
        NoFit: the win graph is not strongly connected, or the lean cannot be told from the scores.
        ValueError: `level` is not between 0 and 1, or there is no resample.
    """
    model = fittable(votes)
    fitted = model.solve()
    drawn = model.resampled(fitted, rng, resamples)
    low, high = interval(drawn[:, :-1], model.clusters, level)
    lean = model.lean(fitted, drawn, level) if model.tells_lean else None
    return Scores(votes.items, fitted[:-1], low, high, level, model.clusters, lean)


def fittable(votes: Choices) -> JointFit:
    """Return the votes counted for a fit, once it is known to have one.

    Raises:
        NoFit: the win graph is not strongly connected, or the lean cannot be told from the scores.
    """
    if reason := votes.score_refusal() or votes.lean_refusal():
        raise NoFit(reason)
    return JointFit.of(votes)


@dataclass(frozen=True)
class JointFit:
    """Votes counted by what stood where; `solve` fits them under any weights of their clusters.

    Args:
        parts: which items have a mean of 0 together, shape (n,): those that votes connect.
        first: items, shape (k,), one entry for each ordered pair (first, second) that was shown.
        second: items, shape (k,).
        wins: votes for the first item, by pair and cluster, sparse, shape (k, c).
        losses: votes for the second item, the same way.
    """

    parts: IntArray
    first: IntArray
    second: IntArray
    wins: Any
    losses: Any

    @classmethod
    def of(cls, choices: Choices, parts: IntArray | None = None) -> JointFit:
        """Count votes; all items are one part unless `parts`, shape (n,), says otherwise."""
        from scipy.sparse import coo_array

        size = max(1, len(choices.items))
        shown, at = np.unique(choices.first * size + choices.second, return_inverse=True)
        shape, cell = (len(shown), len(choices.clusters)), (at.reshape(-1), choices.cluster)
        wins = coo_array((choices.chose_first.astype(np.float64), cell), shape=shape).tocsr()
        losses = coo_array((1.0 - choices.chose_first, cell), shape=shape).tocsr()
        labels = np.zeros(len(choices.items), dtype=np.int64) if parts is None else parts
        return cls(labels, shown // size, shown % size, wins, losses)

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return int(self.wins.shape[1])

    @property
    def votes(self) -> int:
        """Votes in all."""
        return int(self.wins.sum() + self.losses.sum())

    @property
    def free_scores(self) -> int:
        """How many scores there are to fit: in each part one follows from the others."""
        return len(self.parts) - len(set(self.parts.tolist()))

    @property
    def tells_lean(self) -> bool:
        """True where there are votes enough for each score to tell the lean."""
        return self.votes >= FEWEST_VOTES_PER_SCORE * self.free_scores

    def solve(self) -> FloatArray:
        """Return the scores, mean 0 in each part, and last the lean, shape (n + 1,).

        Raises:
            NoFit: no convergence; the votes were not checked (`Choices.score_refusal`, `lean_refusal`), or the values
                lie too far apart.
        """
        found: FloatArray = self._solved(np.ones((1, self.clusters)), np.zeros(len(self.parts) + 1), _EXACT)[0]
        return found

    def resampled(self, fitted: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
        """Return the fit under each resample's weights of clusters, shape (resamples, n + 1), within about 1e-6.

        No rows where clusters are too few for an interval.

        Args:
            fitted: what `solve` returned.
            resamples: how many; see `cluster_weights`.

        Raises:
            NoFit: as `solve`.
            ValueError: there is no resample.
        """
        weights = cluster_weights(self.clusters, rng, resamples)
        if self.clusters < FEWEST_CLUSTERS:
            return np.empty((0, len(fitted)))
        return self._solved(weights, fitted, _CLOSE, self._inverse(fitted))

    def lean(self, fitted: FloatArray, drawn: FloatArray, level: float) -> SourceLean:
        """Return the lean of a fit, its bias of first order in 1/votes taken away.

        Cox and Snell, "A general definition of residuals", JRSS B 30, 1968; for logits (X'WX)^-1 X' h (p - 1/2), with
        the leverages h.

        Args:
            fitted: what `solve` returned, shape (n + 1,).
            drawn: what `resampled` returned, shape (resamples, n + 1).
        """
        _, asked, chance = self.votes_and_chances(fitted)
        variance = asked * chance * (1 - chance)
        inverse = self._inverse(fitted)
        leverage = variance * ((self.design @ inverse) * self.design.toarray()).sum(axis=1)
        bias = float((inverse @ (self.design.T @ (leverage * (chance - 0.5))))[-1])
        low, high = interval(drawn[:, -1] - bias, self.clusters, level)
        return SourceLean(
            float(fitted[-1]) - bias, float(low), float(high), level, self.votes, self.clusters, "joint fit"
        )

    def votes_and_chances(self, fitted: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return votes for the first item, votes, and the chance of the first one at a fit; all of shape (k,)."""
        wins, losses = (np.asarray(table.sum(axis=1)).reshape(-1) for table in (self.wins, self.losses))
        return wins, wins + losses, expit(self.design @ fitted)

    @cached_property
    def design(self) -> Any:
        """X, the log-odds of the first item as a function of scores and lean: sparse, shape (k, n + 1)."""
        from scipy.sparse import coo_array

        rows = np.broadcast_to(np.arange(len(self.first)), self._columns.shape)
        entries = np.broadcast_to(_SIGNS[:, None], self._columns.shape)
        shape = len(self.first), len(self.parts) + 1
        # Where an item meets itself, its two entries add up to nothing.
        return coo_array((entries.ravel(), (rows.ravel(), self._columns.ravel())), shape=shape).tocsr()

    @cached_property
    def _columns(self) -> IntArray:
        """Where each row of X has an entry: at the first item, at the second and at the lean; shape (3, k)."""
        return np.stack([self.first, self.second, np.full(len(self.first), len(self.parts))])

    @cached_property
    def _squares(self) -> Any:
        """x x' of each row x of X, laid out in a line: sparse, shape ((n + 1)^2, k)."""
        from scipy.sparse import coo_array

        size = len(self.parts) + 1
        at = self._columns[:, None] * size + self._columns[None]
        rows = np.broadcast_to(np.arange(len(self.first)), at.shape)
        entries = np.broadcast_to(np.outer(_SIGNS, _SIGNS)[:, :, None], at.shape)
        shape = size * size, len(self.first)
        return coo_array((entries.ravel(), (at.ravel(), rows.ravel())), shape=shape).tocsr()

    @cached_property
    def _shifts(self) -> FloatArray:
        """The projection on what X leaves free, shifts of the scores of a part; shape (n + 1, n + 1)."""
        same = (self.parts[:, None] == self.parts[None, :]).astype(np.float64)
        return np.pad(same / same.sum(axis=0), (0, 1))

    def _information(self, variance: FloatArray) -> FloatArray:
        """Return X' diag(variance) X for variances of shape (k, w), made regular; shape (w, n + 1, n + 1).

        In the free directions it gets a unit of its own size, which leaves a step that does not go there as it is.
        """
        size = len(self._shifts)
        information = np.ascontiguousarray((self._squares @ variance).T).reshape(-1, size, size)
        scale = np.trace(information, axis1=1, axis2=2) / size
        information += scale[:, None, None] * self._shifts
        return information

    def _inverse(self, fitted: FloatArray) -> FloatArray:
        _, asked, chance = self.votes_and_chances(fitted)
        return np.asarray(np.linalg.inv(self._information((asked * chance * (1 - chance))[:, None])[0]))

    def _solved(
        self, weights: FloatArray, begin: FloatArray, last_step: float, near: FloatArray | None = None
    ) -> FloatArray:
        """Return the fit under each row of cluster weights, shape (w, n + 1), after a step of at most `last_step`.

        Args:
            near: the inverse of the information somewhere near; makes large problems fast.
        """
        size = len(begin)
        block = max(1, CELLS // max(len(self.first), size if near is not None else size * size))
        found = np.empty((len(weights), size))
        for at in range(0, len(weights), block):
            these = weights[at : at + block].T
            found[at : at + block] = self._maximum(self.wins @ these, self.losses @ these, begin, last_step, near).T
        return found

    def _maximum(
        self, wins: FloatArray, losses: FloatArray, begin: FloatArray, last_step: float, near: FloatArray | None
    ) -> FloatArray:
        """Return the fits to weighted votes, shape (k, w) each; one column for each set of weights, (n + 1, w)."""
        found = np.repeat(begin[:, None], wins.shape[1], axis=1)
        moving = np.arange(wins.shape[1])
        for _ in range(_MOST_STEPS):
            votes = wins[:, moving], losses[:, moving]
            step = self._newton_step(*votes, expit(self.design @ found[:, moving]), near)
            length = np.abs(step).max(axis=0)
            step *= np.minimum(1, _LONGEST_STEP / np.maximum(length, _EXACT))
            found[:, moving] = self._uphill(found[:, moving], step, *votes)
            moving = moving[length > last_step]
            if not len(moving):
                return found
        raise NoFit(f"the values lie too far apart: no convergence within {_MOST_STEPS} steps")

    def _newton_step(
        self, wins: FloatArray, losses: FloatArray, chance: FloatArray, near: FloatArray | None
    ) -> FloatArray:
        asked = wins + losses
        uphill, variance = self.design.T @ (wins - asked * chance), asked * chance * (1 - chance)
        if near is not None and len(uphill) > _FEW:
            return self._conjugate_gradients(variance, uphill, near)
        try:
            step = np.linalg.solve(self._information(variance), uphill.T[:, :, None])
        except np.linalg.LinAlgError as error:
            raise NoFit("the values lie too far apart: the answers no longer tell the values") from error
        return np.ascontiguousarray(step[:, :, 0].T)

    def _conjugate_gradients(self, variance: FloatArray, uphill: FloatArray, near: FloatArray) -> FloatArray:
        step, rest = np.zeros_like(uphill), uphill.copy()
        ahead = near @ rest
        direction, size = ahead.copy(), (rest * ahead).sum(axis=0)
        enough = size * _LOOSE**2
        for _ in range(_MOST_GRADIENTS):
            open_columns = size > enough
            if not open_columns.any():
                break
            bent = self.design.T @ (variance * (self.design @ direction))
            along = (direction * bent).sum(axis=0)
            share = np.divide(size, along, out=np.zeros_like(size), where=open_columns & (along > 0))
            step += share * direction
            rest -= share * bent
            ahead = near @ rest
            before, size = size, (rest * ahead).sum(axis=0)
            direction = ahead + direction * np.divide(size, before, out=np.zeros_like(size), where=before > 0)
        return step

    def _uphill(self, at: FloatArray, step: FloatArray, wins: FloatArray, losses: FloatArray) -> FloatArray:
        """Return where the step leads, halved as often as it takes for the likelihood to grow."""
        height, share = self._likelihood(at, wins, losses), np.ones(at.shape[1])
        for _ in range(_MOST_HALVINGS):
            there = at + share * step
            # Near the maximum the likelihood changes by less than its own rounding.
            lower = self._likelihood(there, wins, losses) < height - 1e-12 * np.abs(height)
            if not lower.any():
                break
            share[lower] /= 2
        return there

    def _likelihood(self, at: FloatArray, wins: FloatArray, losses: FloatArray) -> FloatArray:
        gap = self.design @ at
        total: FloatArray = (wins * log_expit(gap) + losses * log_expit(-gap)).sum(axis=0)
        return total


_SIGNS = np.array([1.0, -1.0, 1.0])
"""The entries of a row of X: at the first item, at the second and at the lean."""
