"""Votes as they were cast: what stood first, what second, which was chosen, and the vote's cluster; and whether they
tell scores and a lean.

A Bradley-Terry model has a finite fit exactly when the win graph, an arrow from each winner to each loser, is strongly
connected (Ford, "Solution of a ranking problem from binary comparisons", American Mathematical Monthly 64, 1957).
Otherwise some group was never compared with the rest, or never lost to it, and its scores could be moved up for ever.

With a lean b, a vote for w over l says s_w - s_l + b or s_w - s_l - b is large, as w stood first or second. The
likelihood has no maximum exactly when some direction (u, beta) makes no vote less likely and is no mere shift of the
scores (Albert and Anderson, Biometrika 71, 1984). With beta = 0 these are the votes that are not strongly connected.
With beta = 1 it needs u_l <= u_w + 1 for each vote won standing first and u_l <= u_w - 1 for each won standing second:
difference constraints, which can be met exactly when no cycle of wins has a negative sum, that is when no cycle has
more wins in the second place than in the first. With beta = -1 the places change.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

Vote = tuple[Hashable, Hashable, bool, Hashable]
"""The first item, the second item, whether the first one was chosen, and the cluster."""
_NAMED = 5


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

    def parts(self) -> IntArray:
        """Label the items by the part within which their scores have a finite fit, shape (n,)."""
        return self._components("strong")

    def within(self, parts: IntArray) -> Choices:
        """Return only the votes between items of one part; `parts` labels the items, shape (n,)."""
        rows = parts[self.first] == parts[self.second]
        columns = (self.first[rows], self.second[rows], self.chose_first[rows], self.cluster[rows])
        return Choices.of(
            (self.items[first], self.items[second], bool(chose_first), self.clusters[cluster])
            for first, second, chose_first, cluster in zip(*(column.tolist() for column in columns), strict=True)
        )

    def score_refusal(self) -> str | None:
        """Return why Bradley-Terry scores cannot be fitted, in one sentence; None when they can."""
        if not np.any(self.first != self.second):
            return "there is no vote"
        sizes = np.sort(np.bincount(self._components("weak")))[::-1]
        if len(sizes) > 1:
            shown = ", ".join(map(str, sizes[:_NAMED])) + (", …" if len(sizes) > _NAMED else "")
            return f"{len(sizes)} groups, of {shown} items, were never compared with each other"
        labels = self.parts()
        return self._one_sided(labels) if labels.any() else None

    def lean_refusal(self) -> str | None:
        """Return why a lean cannot be fitted beside the scores, in one sentence; None when it can.

        Says nothing about the scores: see `score_refusal`.
        """
        to_first, to_second = (not self._has_cycle_against(towards_first=side) for side in (True, False))
        if to_first and to_second:
            return "the votes fit any position bias: what stood where and what was preferred cannot be told apart"
        if to_first or to_second:
            place = "first" if to_first else "second"
            return (
                f"the votes fit a bias to the {place} object without bound: no cycle of preferences speaks against it"
            )
        return None

    def _one_sided(self, labels: IntArray) -> str:
        crossing = labels[self.winners] != labels[self.losers]
        beaten, beating = set(labels[self.losers[crossing]]), set(labels[self.winners[crossing]])
        parts = range(int(labels.max()) + 1)
        perfect = [i for i, label in enumerate(labels) if label not in beaten]
        hopeless = [i for i, label in enumerate(labels) if label not in beating]
        tops, bottoms = sum(part not in beaten for part in parts), sum(part not in beating for part in parts)
        # One group on top or at the bottom has a name; several are counted.
        top = "" if tops == 1 else f"{tops} groups of items, "
        bottom = "" if bottoms == 1 else f"{bottoms} groups of items, "
        return (
            f"{top}{self._names(perfect)}, never lost to any other; {bottom}{self._names(hopeless)}, never won over any"
        )

    def _names(self, places: list[int]) -> str:
        shown = ", ".join(str(self.items[i])[:60] for i in places[:_NAMED])
        more = f" and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
        return ("item " if len(places) == 1 else f"{len(places)} items (") + shown + more + ")" * (len(places) > 1)

    def _components(self, connection: str) -> IntArray:
        from scipy.sparse.csgraph import connected_components

        graph = _graph(self.winners, self.losers, np.ones(self.votes), len(self.items))
        labels: IntArray = connected_components(graph, directed=True, connection=connection)[1].astype(np.int64)
        return labels

    def _has_cycle_against(self, *, towards_first: bool) -> bool:
        """Tell whether some cycle of wins has more wins on the other side than on the one that the lean is to."""
        from scipy.sparse.csgraph import NegativeCycleError, bellman_ford

        size = len(self.items)
        length = np.where(self.chose_first == towards_first, 1, -1)
        # Of the votes for one item over another, one against the lean is all that matters.
        edges, at = np.unique(self.winners * (size + 1) + self.losers, return_inverse=True)
        shortest = np.full(len(edges), 1)
        np.minimum.at(shortest, at.reshape(-1), length)
        # The search begins at a place of its own, from which all items are reached.
        begins = np.full(size, size)
        winners, losers = np.append(edges // (size + 1), begins), np.append(edges % (size + 1), np.arange(size))
        graph = _graph(winners, losers, np.append(shortest, np.ones(size)), size + 1)
        try:
            bellman_ford(graph, indices=size)
        except NegativeCycleError:
            return True
        return False


def _graph(begins: IntArray, ends: IntArray, lengths: npt.NDArray[Any], size: int) -> Any:
    from scipy.sparse import coo_array

    return coo_array((lengths.astype(np.float64), (begins, ends)), shape=(size, size)).tocsr()
