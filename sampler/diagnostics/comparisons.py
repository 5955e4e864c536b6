"""Votes between pairs of items, and whether a Bradley-Terry model has a finite fit to them.

It has one exactly when the win graph, an arrow from each winner to each loser, is strongly connected (Ford,
"Solution of a ranking problem from binary comparisons", American Mathematical Monthly 64, 1957). Otherwise
some group was never compared with the rest, or never lost to it, and its scores could be moved up for ever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

_NAMED = 5


@dataclass(frozen=True)
class Comparisons:
    """How often each item won over each other.

    Args:
        items: n of them, in order of their first appearance.
        winners: places in `items`, shape (p,).
        losers: places in `items`, shape (p,); each ordered pair (winner, loser) appears once.
        counts: votes for each of these ordered pairs, at least 1, shape (p,).
    """

    items: tuple[Hashable, ...]
    winners: IntArray
    losers: IntArray
    counts: IntArray

    @classmethod
    def of(cls, votes: Iterable[tuple[Hashable, Hashable]]) -> Comparisons:
        """Count votes, each a pair (winner, loser).

        Raises:
            ValueError: an item is compared with itself.
        """
        tally = Counter(votes)
        place: dict[Hashable, int] = {}
        for winner, loser in tally:
            if winner == loser:
                raise ValueError(f"votes must be between two items, not {winner!r} and itself")
            place.setdefault(winner, len(place))
            place.setdefault(loser, len(place))
        ordered = np.array([(place[a], place[b]) for a, b in tally], dtype=np.int64).reshape(-1, 2)
        counts = np.array(list(tally.values()), dtype=np.int64)
        return cls(tuple(place), ordered[:, 0], ordered[:, 1], counts)

    @property
    def votes(self) -> int:
        """Votes in all."""
        return int(self.counts.sum())

    def among(self, items: Collection[Hashable]) -> Comparisons:
        """Return only the votes between these items."""
        chosen = set(items)
        keep = np.array([item in chosen for item in self.items], dtype=bool)
        kept = keep[self.winners] & keep[self.losers]
        place = np.cumsum(keep) - 1
        remaining = tuple(item for item in self.items if item in chosen)
        return Comparisons(remaining, place[self.winners[kept]], place[self.losers[kept]], self.counts[kept])

    def parts(self) -> IntArray:
        """Label the items by the group within which a fit exists, single items included, shape (n,)."""
        return self._components("strong")

    def fittable_parts(self) -> list[tuple[Hashable, ...]]:
        """Return the groups of items within which a fit exists, the largest first; single items are left out."""
        labels = self.parts()
        return [part for part in self._parts(labels) if len(part) > 1]

    def refusal(self) -> str | None:
        """Return why Bradley-Terry scores cannot be fitted, in one sentence; None when they can."""
        if not self.votes:
            return "there is no vote"
        groups = self._parts(self._components("weak"))
        if len(groups) > 1:
            sizes = ", ".join(str(len(group)) for group in groups[:_NAMED]) + (", …" if len(groups) > _NAMED else "")
            return f"{len(groups)} groups, of {sizes} items, were never compared with each other"
        labels = self.parts()
        if not labels.any():
            return None
        return self._one_sided(labels)

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
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        size = len(self.items)
        graph = coo_array((np.ones(len(self.winners)), (self.winners, self.losers)), shape=(size, size))
        labels: IntArray = connected_components(graph, directed=True, connection=connection)[1].astype(np.int64)
        return labels

    def _parts(self, labels: IntArray) -> list[tuple[Hashable, ...]]:
        groups: dict[int, list[Hashable]] = {}
        for item, label in zip(self.items, labels.tolist(), strict=True):
            groups.setdefault(label, []).append(item)
        return sorted((tuple(group) for group in groups.values()), key=len, reverse=True)
