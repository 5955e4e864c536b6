"""Bradley-Terry scores and one lean to the first item, fitted together, with their intervals.

The first item is chosen with probability sigma(s_first - s_second + b). When voting stopped does not matter: that
depends on earlier votes only, so the likelihood is the same. It is concave, and SciPy's trust-region Newton method
finds its maximum.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, log_expit

from sampler.diagnostics.choices import Choices, IntArray
from sampler.diagnostics.intervals import cluster_reach

FloatArray = npt.NDArray[np.float64]

FEWEST_VOTES_PER_SCORE = 10
"""With fewer, the joint fit's lean is too far from 0, whatever the number of votes (Neyman and Scott, Econometrica 16,
1948): with one score for two votes it is twice what it should be."""

# Of the slope of the likelihood at its maximum, relative to the votes.
_FLAT = 1e-10
_MOST_STEPS = 500


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
    """Scores in nats of log-odds, mean 0, with their intervals; all of shape (n,), in the order of `items`.

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


def bradley_terry_intervals(votes: Choices, level: float = 0.95) -> Scores:
    """Return scores, fitted with the lean, and intervals by clusters. Below 15 clusters no interval can be trusted, and
    there is none.

    Raises:
        NoFit: the win graph is not strongly connected, or the lean cannot be told from the scores.
        ValueError: `level` is not between 0 and 1.
    """
    model = fittable(votes)
    fitted = model.solve()
    reach = model.reach(fitted, level)[:-1]
    lean = model.lean(fitted, level) if model.tells_lean else None
    estimate = fitted[:-1]
    return Scores(votes.items, estimate, estimate - reach, estimate + reach, level, model.clusters, lean)


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
    """Votes counted by what stood where and by their clusters.

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
        from scipy.optimize import minimize

        wins, asked, _ = self.votes_and_chances(np.zeros(len(self.parts) + 1))

        def surprise(at: FloatArray) -> float:
            gap = self.design @ at
            return -float((wins * log_expit(gap) + (asked - wins) * log_expit(-gap)).sum())

        def slope(at: FloatArray) -> FloatArray:
            return np.asarray(self.design.T @ (asked * expit(self.design @ at) - wins))

        found = minimize(
            surprise, np.zeros(len(self.parts) + 1), jac=slope, hess=self._information, method="trust-exact",
            options={"gtol": _FLAT * self.votes, "maxiter": _MOST_STEPS},
        ).x  # fmt: skip
        if np.abs(slope(found)).max(initial=0.0) > math.sqrt(_FLAT) * self.votes:
            raise NoFit(f"the values lie too far apart: no convergence within {_MOST_STEPS} steps")
        return np.asarray(found)

    def reach(self, fitted: FloatArray, level: float) -> FloatArray:
        """Return how far the intervals go to either side of scores and lean, shape (n + 1,); NaN of too few clusters.

        Raises:
            ValueError: `level` is not between 0 and 1.
        """
        _, _, chance = self.votes_and_chances(fitted)
        left_over = self.wins - (self.wins + self.losses).multiply(chance[:, None])
        moved = np.linalg.inv(self._information(fitted)) @ (self.design.T @ left_over).toarray()
        return cluster_reach(moved, level)

    def lean(self, fitted: FloatArray, level: float) -> SourceLean:
        """Return the lean of a fit, its bias of first order in 1/votes taken away.

        Cox and Snell, "A general definition of residuals", JRSS B 30, 1968; for logits (X'WX)^-1 X' h (p - 1/2), with
        the leverages h.

        Args:
            fitted: what `solve` returned, shape (n + 1,).

        Raises:
            ValueError: as `reach`.
        """
        _, asked, chance = self.votes_and_chances(fitted)
        variance, inverse = asked * chance * (1 - chance), np.linalg.inv(self._information(fitted))
        leverage = variance * ((self.design @ inverse) * self.design.toarray()).sum(axis=1)
        bias = float((inverse @ (self.design.T @ (leverage * (chance - 0.5))))[-1])
        middle, reach = float(fitted[-1]) - bias, float(self.reach(fitted, level)[-1])
        return SourceLean(middle, middle - reach, middle + reach, level, self.votes, self.clusters, "joint fit")

    def votes_and_chances(self, fitted: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return votes for the first item, votes, and the chance of the first one at a fit; all of shape (k,)."""
        wins, losses = (np.asarray(table.sum(axis=1)).reshape(-1) for table in (self.wins, self.losses))
        return wins, wins + losses, expit(self.design @ fitted)

    @cached_property
    def design(self) -> Any:
        """X, the log-odds of the first item as a function of scores and lean: sparse, shape (k, n + 1)."""
        from scipy.sparse import coo_array

        shown = len(self.first)
        columns = np.concatenate([self.first, self.second, np.full(shown, len(self.parts))])
        # Where an item meets itself, its two entries add up to nothing.
        entries, rows = np.repeat([1.0, -1.0, 1.0], shown), np.tile(np.arange(shown), 3)
        return coo_array((entries, (rows, columns)), shape=(shown, len(self.parts) + 1)).tocsr()

    def _information(self, at: FloatArray) -> FloatArray:
        """Return X' W X, made regular, shape (n + 1, n + 1).

        X leaves shifts of the scores of a part free. In these directions it gets a unit of its own size, which leaves a
        step that does not go there as it is.
        """
        _, asked, chance = self.votes_and_chances(at)
        information = (self.design.T @ self.design.multiply((asked * chance * (1 - chance))[:, None])).toarray()
        same = (self.parts[:, None] == self.parts[None, :]).astype(np.float64)
        unit = np.trace(information) / len(information)
        return np.asarray(information + unit * np.pad(same / same.sum(axis=0), (0, 1)))
