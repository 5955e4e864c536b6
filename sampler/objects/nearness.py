"""Nearest neighbours, made symmetric: i and j are linked when either is among the other's nearest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


def nearest_by_distance(vectors: npt.NDArray[np.float64], count: int, metric: str) -> tuple[tuple[int, ...], ...]:
    """Return the symmetric graph of the `count` nearest rows, under scikit-learn's `metric`.

    Args:
        vectors: shape (n, d).
    """
    # Imported here: it costs a second, and only the reading of a catalog needs it.
    from sklearn.neighbors import NearestNeighbors

    count = min(count, len(vectors) - 1)
    found = NearestNeighbors(n_neighbors=count + 1, metric=metric).fit(vectors)
    return symmetric(found.kneighbors(vectors, return_distance=False), count)


def symmetric(ranked: Sequence[Sequence[int]] | npt.NDArray[np.int64], count: int) -> tuple[tuple[int, ...], ...]:
    """Link every item with the first `count` others in its row of `ranked`, in both directions.

    Args:
        ranked: for each of n items the nearest items, nearest first; an item may stand in its own row.
    """
    links: list[set[int]] = [set() for _ in ranked]
    for item, row in enumerate(ranked):
        others = [int(other) for other in row if int(other) != item][:count]
        for other in others:
            links[item].add(other)
            links[other].add(item)
    return tuple(tuple(sorted(row)) for row in links)
