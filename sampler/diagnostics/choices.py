"""Votes as they were cast: what stood first, what second, which was chosen, and the vote's cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.comparisons import Comparisons

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Vote = tuple[Hashable, Hashable, bool, Hashable]
"""The first item, the second item, whether the first one was chosen, and the cluster."""


@dataclass(frozen=True)
class Choices:
    """The votes of one population of voters on one question; nothing here depends on how items are called.

    Args:
        items: n of them, in order of their first appearance.
        first: places in `items`, shape (v,), one for each vote.
        second: places in `items`, shape (v,). Two items that look the same may meet: such a vote says only how its
            voter leans.
        chose_first: shape (v,).
        clusters: c of them, in order of their first appearance. Votes of one cluster may depend on each other.
        cluster: places in `clusters`, shape (v,).
    """

    items: tuple[Hashable, ...]
    first: IntArray
    second: IntArray
    chose_first: BoolArray
    clusters: tuple[Hashable, ...]
    cluster: IntArray

    @classmethod
    def of(cls, votes: Iterable[Vote]) -> Choices:
        """Return these votes, each (first item, second item, whether first was chosen, cluster)."""
        item_at: dict[Hashable, int] = {}
        cluster_at: dict[Hashable, int] = {}
        rows = [
            (
                item_at.setdefault(first, len(item_at)),
                item_at.setdefault(second, len(item_at)),
                bool(chose_first),
                cluster_at.setdefault(cluster, len(cluster_at)),
            )
            for first, second, chose_first, cluster in votes
        ]
        table = np.array(rows, dtype=np.int64).reshape(-1, 4)
        return cls(tuple(item_at), table[:, 0], table[:, 1], table[:, 2] == 1, tuple(cluster_at), table[:, 3])

    @property
    def votes(self) -> int:
        """Votes in all."""
        return len(self.first)

    @property
    def winners(self) -> IntArray:
        """The item that each vote chose, shape (v,)."""
        return np.where(self.chose_first, self.first, self.second)

    @property
    def losers(self) -> IntArray:
        """The item that each vote did not choose, shape (v,)."""
        return np.where(self.chose_first, self.second, self.first)

    def comparisons(self) -> Comparisons:
        """Return who won over whom, whatever the sides; an item against itself is left out, all items are kept."""
        tally = Counter(zip(self.winners.tolist(), self.losers.tolist(), strict=True))
        counted = [(winner, loser, votes) for (winner, loser), votes in tally.items() if winner != loser]
        table = np.array(counted, dtype=np.int64).reshape(-1, 3)
        return Comparisons(self.items, table[:, 0], table[:, 1], table[:, 2])

    def with_clusters(self, clusters: Iterable[Hashable]) -> Choices:
        """Return the same votes in other clusters, one label for each vote."""
        names = [self.items[place] for place in self.first], [self.items[place] for place in self.second]
        return Choices.of(zip(*names, self.chose_first.tolist(), clusters, strict=True))

    def among(self, items: Collection[Hashable]) -> Choices:
        """Return only the votes between these items."""
        chosen = set(items)
        keep = np.array([item in chosen for item in self.items], dtype=bool)
        return self._kept(keep[self.first] & keep[self.second])

    def parts(self) -> IntArray:
        """Label the items by the part within which their scores have a finite fit, shape (n,)."""
        return self.comparisons().parts()

    def within(self, parts: IntArray) -> Choices:
        """Return only the votes between items of one part; `parts` labels the items, shape (n,)."""
        return self._kept(parts[self.first] == parts[self.second])

    def _kept(self, rows: BoolArray) -> Choices:
        columns = (self.first[rows], self.second[rows], self.chose_first[rows], self.cluster[rows])
        return Choices.of(
            (self.items[first], self.items[second], bool(chose_first), self.clusters[cluster])
            for first, second, chose_first, cluster in zip(*(column.tolist() for column in columns), strict=True)
        )
