"""Nearest neighbours, made symmetric: i and j are linked when either is among the other's nearest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

# Distances that differ by less are one: how a machine rounds must not choose the neighbours. Euclidean distances of
# unit vectors are exact to about 1e-8.
_DECIMALS = 6


def nearest_by_distance(vectors: npt.NDArray[np.float64], count: int, metric: str) -> tuple[tuple[int, ...], ...]:
    """Return the symmetric graph of the `count` nearest rows, under scikit-learn's `metric`; of rows at one distance
    the first come first.

    Args:
        vectors: shape (n, d), of lengths near 1.
    """
    # Imported here: it costs a second, and only the reading of a catalog needs it.
    from sklearn.metrics import pairwise_distances_chunked

    count = min(count, len(vectors) - 1)
    blocks = pairwise_distances_chunked(vectors, metric=metric)
    ranked = [_nearest(np.round(row, _DECIMALS), count) for block in blocks for row in block]
    return symmetric(ranked, count)


def _nearest(distances: npt.NDArray[np.float64], count: int) -> list[int]:
    """Return the places of the smallest distances, the item itself perhaps among them: at least `count` others."""
    farthest = np.partition(distances, count)[count]
    near = np.flatnonzero(distances <= farthest)
    return [int(place) for place in near[np.argsort(distances[near], kind="stable")][: count + 1]]


def symmetric(ranked: Sequence[Sequence[int]] | npt.NDArray[np.int64], count: int) -> tuple[tuple[int, ...], ...]:
    """Link every item with the first `count` others in its row of `ranked`, in both directions.

    Args:
        ranked: for each of n items the nearest items, nearest first, `count` others at least; an item may stand in its
            own row.
    """
    links: list[set[int]] = [set() for _ in ranked]
    for item, row in enumerate(ranked):
        others = [int(other) for other in row if int(other) != item][:count]
        for other in others:
            links[item].add(other)
            links[other].add(item)
    return tuple(tuple(sorted(row)) for row in links)
