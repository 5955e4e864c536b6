"""The maximum-likelihood fit of Bradley-Terry scores and one lean to the first item.

The first item is chosen with probability sigma(s_first - s_second + b). When voting stopped does not matter: that
depends on earlier votes only, so the likelihood is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from sampler.diagnostics import newton
from sampler.diagnostics.choices import Choices
from sampler.diagnostics.clusters import FEWEST_CLUSTERS, cluster_weights
from sampler.diagnostics.comparisons import Comparisons

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Numbers held in memory at once.
_CELLS = 4_000_000


class NoFit(ValueError):  # noqa: N818 - the data have no fit; nothing went wrong
    """These votes have no finite fit; the message gives the reason."""


@dataclass(frozen=True)
class JointFit:
    """Votes counted by what stood where; `solve` fits them under any weights of their clusters.

    Args:
        parts: which items have a mean of 0 together, shape (n,): those that votes connect.
        first: items, shape (k,), one entry for each ordered pair (first, second) that was shown.
        second: items, shape (k,).
        wins: votes for the first item, by pair and cluster, sparse, shape (k, c).
        losses: votes for the second item, the same way.
        has_lean: whether a lean is fitted; otherwise it is 0.
    """

    parts: IntArray
    first: IntArray
    second: IntArray
    wins: Any
    losses: Any
    has_lean: bool

    @classmethod
    def of_comparisons(cls, comparisons: Comparisons) -> JointFit:
        """Count votes without sides: one part, one cluster, no lean."""
        from scipy.sparse import csr_array

        counts = comparisons.counts.astype(np.float64)[:, None]
        one_part = np.zeros(len(comparisons.items), dtype=np.int64)
        ends = comparisons.winners, comparisons.losers
        return cls(one_part, *ends, csr_array(counts), csr_array(0 * counts), has_lean=False)

    @classmethod
    def of_choices(cls, choices: Choices, parts: IntArray | None = None) -> JointFit:
        """Count votes with sides; all items are one part unless `parts`, shape (n,), says otherwise."""
        from scipy.sparse import coo_array

        size = max(1, len(choices.items))
        shown, at = np.unique(choices.first * size + choices.second, return_inverse=True)
        shape, cell = (len(shown), len(choices.clusters)), (at.reshape(-1), choices.cluster)
        wins = coo_array((choices.chose_first.astype(np.float64), cell), shape=shape).tocsr()
        losses = coo_array((1.0 - choices.chose_first, cell), shape=shape).tocsr()
        labels = np.zeros(len(choices.items), dtype=np.int64) if parts is None else parts
        return cls(labels, shown // size, shown % size, wins, losses, has_lean=True)

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

    def solve(self) -> FloatArray:
        """Return the scores, mean 0 in each part, and last the lean, shape (n + 1,).

        Raises:
            NoFit: no convergence; the votes were not checked (`Comparisons.refusal`, `lean_refusal`), or the values
                lie too far apart.
        """
        fitted: FloatArray = self._solved(np.ones((1, self.clusters)), np.zeros(len(self.parts) + 1), newton.EXACT)[0]
        return fitted

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
        near = np.asarray(np.linalg.inv(self._information(fitted)), dtype=np.float64)
        return self._solved(weights, fitted, newton.CLOSE, near)

    def votes_and_chances(self, fitted: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return votes for the first item, votes, and the chance of the first one at a fit; all of shape (k,)."""
        wins, losses = (np.asarray(table.sum(axis=1)).reshape(-1) for table in (self.wins, self.losses))
        return wins, wins + losses, expit(self.design @ fitted)

    def bias_of_lean(self, fitted: FloatArray) -> float:
        """Return the lean's bias to first order in 1/votes, at a fit of shape (n + 1,).

        Cox and Snell, "A general definition of residuals", JRSS B 30, 1968; for logits (X'WX)^-1 X' h (p - 1/2), with
        the leverages h.
        """
        _, asked, chance = self.votes_and_chances(fitted)
        inverse = np.linalg.inv(self._information(fitted))
        leverage = asked * chance * (1 - chance) * ((self.design @ inverse) * self.design.toarray()).sum(axis=1)
        return float((inverse @ (self.design.T @ (leverage * (chance - 0.5))))[-1])

    @cached_property
    def design(self) -> Any:
        """X, the log-odds of the first item as a function of scores and lean: sparse, shape (k, n + 1)."""
        from scipy.sparse import coo_array

        pairs, size = len(self.first), len(self.parts) + 1
        rows = np.tile(np.arange(pairs), 3)
        columns = np.concatenate([self.first, self.second, np.full(pairs, size - 1)])
        values = np.repeat([1.0, -1.0, float(self.has_lean)], pairs)
        # Where an item meets itself, its two entries add up to nothing.
        return coo_array((values, (rows, columns)), shape=(pairs, size)).tocsr()

    def _information(self, fitted: FloatArray) -> FloatArray:
        _, asked, chance = self.votes_and_chances(fitted)
        information: FloatArray = self._answers.information((asked * chance * (1 - chance))[:, None])[0]
        return information

    def _solved(
        self, weights: FloatArray, begin: FloatArray, last_step: float, near: FloatArray | None = None
    ) -> FloatArray:
        size = len(begin)
        block = max(1, _CELLS // max(len(self.first), size if near is not None else size * size))
        found = np.empty((len(weights), size))
        for at in range(0, len(weights), block):
            these = weights[at : at + block].T
            wins, losses = self.wins @ these, self.losses @ these
            try:
                found[at : at + block] = self._answers.maximum(wins, losses, begin, last_step, near).T
            except newton.NoConvergence as reason:
                raise NoFit(f"the values lie too far apart: {reason}") from reason
        return found

    @cached_property
    def _answers(self) -> newton.Answers:
        """Shifting the scores of a part changes nothing, nor does a lean that no vote has."""
        same = (self.parts[:, None] == self.parts[None, :]).astype(np.float64)
        free = np.zeros((len(self.parts) + 1,) * 2)
        free[:-1, :-1] = same / same.sum(axis=0)
        if not self.has_lean:
            free[-1, -1] = 1
        return newton.Answers(self.design, free)


def joined(groups: Sequence[Choices]) -> Choices:
    """Return the votes of several groups as one, items of different groups apart; clusters keep their names."""
    return Choices.of(
        ((group, choices.items[first]), (group, choices.items[second]), chose_first, choices.clusters[cluster])
        for group, choices in enumerate(groups)
        for first, second, chose_first, cluster in zip(
            choices.first.tolist(), choices.second.tolist(), choices.chose_first.tolist(), choices.cluster.tolist(),
            strict=True,
        )
    )  # fmt: skip
