"""Newton's method for the likelihood of binary answers, for many sets of weights at once.

Answers have log-odds X theta. Their log-likelihood is concave, and a step that is halved until it grows leads to its
maximum from anywhere. Arrays have one column for each set of weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# The step that follows one as small as this is below rounding: steps shrink quadratically.
EXACT = 1e-7
# For percentiles of resamples; what is left after such a step is about its square.
CLOSE = 1e-3
_LONGEST_STEP = 5.0
_MOST_STEPS = 200
_MOST_HALVINGS = 40
# Up to so many unknowns a factorisation for each set of weights costs less than conjugate gradients.
_FEW = 30
_MOST_GRADIENTS = 500
_LOOSE = 1e-4


class NoConvergence(ArithmeticError):  # noqa: N818 - says what happened, not that code is wrong
    """The maximum lies too far away, or nowhere."""


@dataclass(frozen=True)
class Answers:
    """The model: X of shape (k, p), sparse, and what to add to X'WX where X leaves a direction free, shape (p, p)."""

    design: Any
    free: FloatArray

    def maximum(
        self, wins: FloatArray, losses: FloatArray, begin: FloatArray, last_step: float, near: FloatArray | None = None
    ) -> FloatArray:
        """Return theta at the maximum, shape (p, w).

        Args:
            wins: weighted answers "yes" for each row of X, shape (k, w).
            losses: answers "no", the same way.
            begin: shape (p,).
            last_step: return after a Newton step whose largest entry is this or less.
            near: the inverse of X'WX somewhere near, shape (p, p); makes large problems fast.

        Raises:
            NoConvergence: there is no maximum within reach.
        """
        found = np.repeat(begin[:, None], wins.shape[1], axis=1)
        moving = np.arange(wins.shape[1])
        height, chance = self._evaluate(found, wins, losses)
        for _ in range(_MOST_STEPS):
            step = self._step(wins[:, moving], losses[:, moving], chance, near)
            length = np.abs(step).max(axis=0)
            step *= np.minimum(1, _LONGEST_STEP / np.maximum(length, EXACT))
            found[:, moving], height, chance = self._uphill(
                found[:, moving], step, height, wins[:, moving], losses[:, moving]
            )
            still = length > last_step
            moving, height, chance = moving[still], height[still], chance[:, still]
            if not len(moving):
                return found
        raise NoConvergence(f"no convergence within {_MOST_STEPS} steps")

    def information(self, variance: FloatArray) -> FloatArray:
        """Return X' diag(variance) X for variances of shape (k, w), made regular; shape (w, p, p).

        In the free directions it gets a unit of its own size, which leaves a step that does not go there as it is.
        """
        size = len(self.free)
        information = np.ascontiguousarray((self._squares @ variance).T).reshape(-1, size, size)
        scale = np.trace(information, axis1=1, axis2=2) / size
        information += scale[:, None, None] * self.free
        return information

    def _evaluate(self, at: FloatArray, wins: FloatArray, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the log-likelihood, shape (w,), and the chances of "yes", shape (k, w)."""
        gap = self.design @ at
        smaller = np.exp(-np.abs(gap))
        surprise = np.maximum(gap, 0) + np.log1p(smaller)
        chance = np.where(gap >= 0, 1.0, smaller) / (1 + smaller)
        return (wins * gap - (wins + losses) * surprise).sum(axis=0), chance

    def _step(self, wins: FloatArray, losses: FloatArray, chance: FloatArray, near: FloatArray | None) -> FloatArray:
        asked = wins + losses
        uphill = self.design.T @ (wins - asked * chance)
        variance = asked * chance * (1 - chance)
        if near is not None and len(uphill) > _FEW:
            return self._conjugate_gradients(variance, uphill, near)
        try:
            step = np.linalg.solve(self.information(variance), uphill.T[:, :, None])
        except np.linalg.LinAlgError as error:
            raise NoConvergence("the answers no longer tell the values") from error
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

    def _uphill(
        self, at: FloatArray, step: FloatArray, height: FloatArray, wins: FloatArray, losses: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        share = np.ones(at.shape[1])
        for _ in range(_MOST_HALVINGS):
            there = at + share * step
            reached, chance = self._evaluate(there, wins, losses)
            # Near the maximum the likelihood changes by less than its own rounding.
            lower = reached < height - 1e-12 * np.abs(height)
            if not lower.any():
                break
            share[lower] /= 2
        return there, reached, chance

    @cached_property
    def _squares(self) -> Any:
        """x x' of each row x of X, laid out in a line: sparse, shape (p^2, k)."""
        from scipy.sparse import coo_array

        rows, size = self.design.tocoo(), len(self.free)
        counts = np.diff(self.design.indptr)
        # Each entry of a row meets each entry of the same row.
        first = np.repeat(np.arange(rows.nnz), np.repeat(counts, counts))
        begins = np.repeat(self.design.indptr[:-1], counts**2)
        within = np.arange(len(first)) - np.repeat(np.cumsum(counts**2) - counts**2, counts**2)
        second = begins + within % np.repeat(counts, counts**2)
        columns, values = self.design.indices, self.design.data
        at = columns[first].astype(np.int64) * size + columns[second]
        row = np.repeat(np.arange(len(counts)), counts**2)
        return coo_array((values[first] * values[second], (at, row)), shape=(size * size, len(counts))).tocsr()
