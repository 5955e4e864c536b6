"""The maximum-likelihood fit of Bradley-Terry scores and one lean to the left side, for many sets of weights at once.

The left item is chosen with probability sigma(s_left - s_right + b). The log-likelihood is concave; Newton's method
with a step that is halved until the likelihood grows finds its maximum from anywhere. When voting stopped does not
matter: that depends on earlier votes only, so the likelihood is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.choices import Choices
from sampler.diagnostics.clusters import FEWEST_CLUSTERS, cluster_weights
from sampler.diagnostics.comparisons import Comparisons
from sampler.logistic import logistic

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# After a full step as small as this the next one would be below rounding: Newton's steps shrink quadratically.
_LAST_STEP = 1e-7
_LONGEST_STEP = 5.0
_MOST_STEPS = 200
_MOST_HALVINGS = 40
# Numbers held in memory at once.
_CELLS = 4_000_000


class NoFit(ValueError):  # noqa: N818 - the data have no fit; nothing went wrong
    """These votes have no finite fit; the message gives the reason."""


@dataclass(frozen=True)
class JointFit:
    """Votes counted by what stood where; `solve` fits them under any weights of their clusters.

    Args:
        parts: which items have a mean of 0 together, shape (n,): those that votes connect.
        left: items, shape (k,), one entry for each ordered pair (left, right) that was shown.
        right: items, shape (k,).
        wins: votes for the left item, by cluster and pair, sparse, shape (c, k).
        losses: votes for the right item, the same way.
        has_lean: whether a lean is fitted; otherwise it is 0.
    """

    parts: IntArray
    left: IntArray
    right: IntArray
    wins: Any
    losses: Any
    has_lean: bool

    @classmethod
    def of_comparisons(cls, comparisons: Comparisons) -> JointFit:
        """Count votes without sides: one part, one cluster, no lean."""
        from scipy.sparse import csr_array

        counts = comparisons.counts.astype(np.float64)[None, :]
        one_part = np.zeros(len(comparisons.items), dtype=np.int64)
        ends = comparisons.winners, comparisons.losers
        return cls(one_part, *ends, csr_array(counts), csr_array(0 * counts), has_lean=False)

    @classmethod
    def of_choices(cls, choices: Choices, parts: IntArray | None = None) -> JointFit:
        """Count votes with sides; all items are one part unless `parts`, shape (n,), says otherwise."""
        from scipy.sparse import coo_array

        size = max(1, len(choices.items))
        shown, at = np.unique(choices.left * size + choices.right, return_inverse=True)
        shape = len(choices.clusters), len(shown)
        cell = choices.cluster, at.reshape(-1)
        wins = coo_array((choices.chose_left.astype(np.float64), cell), shape=shape).tocsr()
        losses = coo_array((1.0 - choices.chose_left, cell), shape=shape).tocsr()
        labels = np.zeros(len(choices.items), dtype=np.int64) if parts is None else parts
        return cls(labels, shown // size, shown % size, wins, losses, has_lean=True)

    def solve(self, weights: FloatArray, start: FloatArray | None = None) -> FloatArray:
        """Return scores, mean 0 in each part, and last the lean, shape (w, n + 1).

        Args:
            weights: of the clusters, above 0, shape (w, c).
            start: where to begin, shape (n + 1,); the fit under equal weights makes the rest fast.

        Raises:
            NoFit: no convergence; the votes were not checked (`Comparisons.refusal`, `lean_refusal`), or the values
                lie too far apart.
        """
        size = len(self.parts) + 1
        block = max(1, _CELLS // max(size * size, len(self.left), 1))
        begin = np.zeros(size) if start is None else start
        solved = np.empty((len(weights), size))
        for at in range(0, len(weights), block):
            solved[at : at + block] = self._solve(weights[at : at + block], begin)
        return solved

    @property
    def clusters(self) -> int:
        """How many clusters there are."""
        return int(self.wins.shape[0])

    def votes_and_chances(self, fitted: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return votes for the left item, votes, and the chance of the left one at a fit; all of shape (k,)."""
        wins, losses = (np.asarray(table.sum(axis=0)).reshape(-1) for table in (self.wins, self.losses))
        return wins, wins + losses, logistic(self._log_odds(fitted[None]))[0]

    def bias_of_lean(self, fitted: FloatArray) -> float:
        """Return the lean's bias to first order in 1/votes, at a fit of shape (n + 1,).

        Cox and Snell, "A general definition of residuals", JRSS B 30, 1968; for logits (X'WX)^-1 X' h (p - 1/2), with
        the leverages h.
        """
        _, asked, chance = self.votes_and_chances(fitted)
        variance = asked * chance * (1 - chance)
        inverse = np.linalg.inv(self._information(variance[None])[0])
        design = self.design.toarray()
        leverage = variance * ((design @ inverse) * design).sum(axis=1)
        return float((inverse @ (design.T @ (leverage * (chance - 0.5))))[-1])

    def _solve(self, weights: FloatArray, begin: FloatArray) -> FloatArray:
        wins, losses = weights @ self.wins, weights @ self.losses
        found = np.tile(begin, (len(weights), 1))
        open_rows = np.arange(len(weights))
        for _ in range(_MOST_STEPS):
            step = self._newton_step(found[open_rows], wins[open_rows], losses[open_rows])
            length = np.abs(step).max(axis=1)
            step *= np.minimum(1, _LONGEST_STEP / np.maximum(length, _LAST_STEP))[:, None]
            found[open_rows] = self._uphill(found[open_rows], step, wins[open_rows], losses[open_rows])
            open_rows = open_rows[length > _LAST_STEP]
            if not len(open_rows):
                return found
        raise NoFit(f"the values lie too far apart: no convergence within {_MOST_STEPS} steps")

    def _newton_step(self, at: FloatArray, wins: FloatArray, losses: FloatArray) -> FloatArray:
        chance = logistic(self._log_odds(at))
        surplus = wins - (wins + losses) * chance
        uphill = (self.design.T @ surplus.T).T
        information = self._information((wins + losses) * chance * (1 - chance))
        try:
            step: FloatArray = np.linalg.solve(information, uphill[..., None])[..., 0]
        except np.linalg.LinAlgError as error:
            raise NoFit("the values lie too far apart: votes no longer tell them") from error
        return step

    def _uphill(self, at: FloatArray, step: FloatArray, wins: FloatArray, losses: FloatArray) -> FloatArray:
        before = self._log_likelihood(at, wins, losses)
        share = np.ones(len(at))
        for _ in range(_MOST_HALVINGS):
            after = self._log_likelihood(at + share[:, None] * step, wins, losses)
            # Near the maximum the likelihood changes by less than its own rounding.
            lower = after < before - 1e-12 * np.abs(before)
            if not lower.any():
                break
            share[lower] /= 2
        return at + share[:, None] * step

    def _log_likelihood(self, at: FloatArray, wins: FloatArray, losses: FloatArray) -> FloatArray:
        gap = self._log_odds(at)
        total: FloatArray = -(wins * np.logaddexp(0, -gap) + losses * np.logaddexp(0, gap)).sum(axis=1)
        return total

    def _log_odds(self, at: FloatArray) -> FloatArray:
        return at[:, self.left] - at[:, self.right] + at[:, -1:] * self.has_lean

    def _information(self, variance: FloatArray) -> FloatArray:
        """Return X' diag(variance) X, shape (w, n + 1, n + 1), made regular where it says nothing.

        Shifting the scores of a part changes nothing. The matrix gets a unit of its own size there, which leaves a step
        that shifts nothing as it is.
        """
        size = len(self.parts) + 1
        information = (self._squares.T @ variance.T).T.reshape(len(variance), size, size)
        scale = np.trace(information, axis1=1, axis2=2) / size
        return np.asarray(information + scale[:, None, None] * self._shifts)

    @cached_property
    def design(self) -> Any:
        """X, the log-odds of the left item as a function of scores and lean: sparse, shape (k, n + 1)."""
        from scipy.sparse import coo_array

        pairs, size = len(self.left), len(self.parts) + 1
        rows = np.tile(np.arange(pairs), 3)
        columns = np.concatenate([self.left, self.right, np.full(pairs, size - 1)])
        values = np.repeat([1.0, -1.0, float(self.has_lean)], pairs)
        # Where an item meets itself, its two entries add up to nothing.
        return coo_array((values, (rows, columns)), shape=(pairs, size)).tocsr()

    @cached_property
    def _squares(self) -> Any:
        """Return x x' of each row x of X, laid out in a line: sparse, shape (k, (n + 1)^2)."""
        from scipy.sparse import coo_array

        pairs, size = len(self.left), len(self.parts) + 1
        columns = np.stack([self.left, self.right, np.full(pairs, size - 1)], axis=1)
        values = np.tile([1.0, -1.0, float(self.has_lean)], (pairs, 1))
        at = (columns[:, :, None] * size + columns[:, None, :]).reshape(-1)
        products = (values[:, :, None] * values[:, None, :]).reshape(-1)
        rows = np.repeat(np.arange(pairs), 9)
        return coo_array((products, (rows, at)), shape=(pairs, size * size)).tocsr()

    @cached_property
    def _shifts(self) -> FloatArray:
        same = (self.parts[:, None] == self.parts[None, :]).astype(np.float64)
        matrix = np.zeros((len(self.parts) + 1,) * 2)
        matrix[:-1, :-1] = same / same.sum(axis=0)
        if not self.has_lean:
            matrix[-1, -1] = 1
        return matrix


def joined(groups: Sequence[Choices]) -> Choices:
    """Return the votes of several groups as one, items of different groups apart; clusters keep their names."""
    return Choices.of(
        ((group, choices.items[left]), (group, choices.items[right]), chose_left, choices.clusters[cluster])
        for group, choices in enumerate(groups)
        for left, right, chose_left, cluster in zip(
            choices.left.tolist(), choices.right.tolist(), choices.chose_left.tolist(), choices.cluster.tolist(),
            strict=True,
        )
    )  # fmt: skip


def resampled_fits(model: JointFit, fitted: FloatArray, rng: np.random.Generator, resamples: int) -> FloatArray:
    """Return the fit under each resample's weights of clusters, shape (resamples, n + 1); none for too few clusters.

    Args:
        fitted: the fit under equal weights, shape (n + 1,).

    Raises:
        ValueError: there is no resample.
    """
    weights = cluster_weights(model.clusters, rng, resamples)
    return model.solve(weights if model.clusters >= FEWEST_CLUSTERS else weights[:0], fitted)
