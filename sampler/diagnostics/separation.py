"""Can scores and a lean be told apart from these votes? Only then has their joint fit finite values.

A vote for w over l says s_w - s_l + b or s_w - s_l - b is large, as w stood first or second. The likelihood
has no maximum exactly when some direction (u, beta) makes no vote less likely and is no mere shift of the scores
(Albert and Anderson, Biometrika 71, 1984). With beta = 0 these are the votes that are not strongly connected
(`Comparisons.refusal`). With beta = 1 it needs u_l <= u_w + 1 for each vote won standing first and u_l <= u_w - 1
for each won standing second: difference constraints, which can be met exactly when no cycle of wins has a negative
sum, that is when no cycle has more wins in the second place than in the first. With beta = -1 the places change.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sampler.diagnostics.choices import Choices

IntArray = npt.NDArray[np.int64]


def lean_refusal(choices: Choices) -> str | None:
    """Return why a lean cannot be fitted beside the scores, in one sentence; None when it can.

    Says nothing about the scores: see `Comparisons.refusal`.
    """
    to_first = not _has_cycle_against(choices, towards_first=True)
    to_second = not _has_cycle_against(choices, towards_first=False)
    if to_first and to_second:
        return "the votes fit any position bias: what stood where and what was preferred cannot be told apart"
    if to_first or to_second:
        place = "first" if to_first else "second"
        return f"the votes fit a bias to the {place} object without bound: no cycle of preferences speaks against it"
    return None


def _has_cycle_against(choices: Choices, *, towards_first: bool) -> bool:
    """Tell whether some cycle of wins has more wins on the other side than on the one that the lean is to."""
    size = len(choices.items)
    length = np.where(choices.chose_first == towards_first, 1, -1)
    # Of the votes for one item over another, one against the lean is all that matters.
    edges, at = np.unique(choices.winners * size + choices.losers, return_inverse=True)
    shortest = np.full(len(edges), 1)
    np.minimum.at(shortest, at.reshape(-1), length)
    winners, losers = edges // max(size, 1), edges % max(size, 1)
    return _has_short_cycle(winners, losers, shortest, size) or _has_negative_cycle(winners, losers, shortest, size)


def _has_short_cycle(winners: IntArray, losers: IntArray, length: IntArray, size: int) -> bool:
    """Look at pairs of items only: nearly always there is one, and it is found at once."""
    against = length < 0
    there, back = winners[against] * size + losers[against], losers[against] * size + winners[against]
    return bool(np.isin(there, back).any())


def _has_negative_cycle(winners: IntArray, losers: IntArray, length: IntArray, size: int) -> bool:
    """Bellman and Ford's search, from all items at once."""
    reached = np.zeros(size, dtype=np.int64)
    while reached.min(initial=0) > -size:
        shorter = reached.copy()
        np.minimum.at(shorter, losers, reached[winners] + length)
        if np.array_equal(shorter, reached):
            return False
        reached = shorter
    return size > 0
