"""Alias tables: a draw from any of n laws with one uniform number and two look-ups.

Walker, ACM Trans. Math. Softw. 3 (1977); the sweep that builds them follows Hübschle-Schneider and Sanders,
Parallel Weighted Random Sampling (2022), with all laws side by side.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def alias_tables(laws: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return (cut, other) such that v ~ Unif[0, n) with j = floor(v) draws j if v < cut[x, j], else other[x, j].

    Column j of row x holds a share of at most 1/n of outcome j, filled up by one other outcome. Each
    probability comes out right to about n units of rounding, n 2^-53.

    Args:
        laws: one law a row, shape (rows, n).

    Returns:
        cut in [j, j + 1], and other, both of shape (rows, n).
    """
    rows, outcomes = laws.shape
    weight = laws * (outcomes / laws.sum(axis=1, keepdims=True))
    share = np.ones_like(weight)
    other = np.tile(np.arange(outcomes), (rows, 1))
    everyone = np.arange(rows)
    # Columns with room first, then those with more than fits.
    order = np.argsort(weight > 1, axis=1, kind="stable")
    roomy = np.sum(weight <= 1, axis=1)
    giver = np.minimum(roomy, outcomes - 1)
    taker = np.zeros(rows, dtype=np.int64)
    rest = weight[everyone, order[everyone, giver]]
    # Each round closes one column of every row: a roomy one, or the giver once it has no more than one share left.
    for _ in range(outcomes - 1):
        filling = (rest > 1) & (taker < roomy)
        heir = np.minimum(giver + 1, outcomes - 1)
        closed = order[everyone, np.where(filling, np.minimum(taker, outcomes - 1), giver)]
        source = order[everyone, np.where(filling, giver, heir)]
        held = np.where(filling, weight[everyone, closed], rest)
        open_still = filling | (giver < outcomes - 1)
        share[everyone, closed] = np.where(open_still, np.clip(held, 0, 1), 1.0)
        other[everyone, closed] = np.where(open_still, source, closed)
        rest = np.where(filling, rest, weight[everyone, source]) + held - 1
        taker, giver = taker + filling, np.where(filling, giver, heir)
    return np.arange(outcomes) + share, other
