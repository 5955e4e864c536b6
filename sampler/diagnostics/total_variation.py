"""Total-variation distance to a known law, TV(p, q) = 1/2 sum_x |p(x) - q(x)|."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def total_variation(first: npt.ArrayLike, second: npt.ArrayLike) -> FloatArray | np.float64:
    """Return TV between laws on n states along the last axis, shape (...) for inputs of shape (..., n).

    Raises:
        ValueError: an input is no law, or the two have different numbers of states.
    """
    p, q = _laws("first", first), _laws("second", second)
    if p.shape[-1] != q.shape[-1]:
        raise ValueError(f"first has {p.shape[-1]} states, second has {q.shape[-1]}")
    distance: FloatArray = 0.5 * np.abs(p - q).sum(axis=-1)
    return distance[()]


def total_variation_curve(visited: npt.ArrayLike, target: npt.ArrayLike, every: int) -> FloatArray:
    """Return TV between the visits of steps 1..t and the target, for t = every, 2 every, ..., shape (T // every,).

    Args:
        visited: x^(1), ..., x^(T), numbers of states, shape (T,). The start x^(0) does not belong here.
        target: shape (n,).
        every: steps between two values.

    Raises:
        ValueError: `target` is no law, a state is not one of its n, or there are fewer than `every` steps.
    """
    law = _laws("target", target)
    states = np.asarray(visited)
    blocks = len(states) // every if every > 0 else 0
    if blocks < 1:
        raise ValueError(f"every must be 1 to {len(states)}, the number of steps, not {every}")
    if states.dtype.kind not in "iu" or states.min() < 0 or states.max() >= len(law):
        raise ValueError(f"visited must hold whole numbers from 0 to {len(law) - 1}")
    kept = states[: blocks * every]
    cell = np.arange(len(kept)) // every * len(law) + kept
    counts = np.bincount(cell, minlength=blocks * len(law)).reshape(blocks, len(law)).cumsum(axis=0)
    return np.asarray(total_variation(counts / counts.sum(axis=1, keepdims=True), law))


def _laws(name: str, values: npt.ArrayLike) -> FloatArray:
    law = np.asarray(values, dtype=np.float64)
    # NaN fails both comparisons.
    if law.ndim < 1 or not np.all(law >= 0) or not np.all(np.abs(law.sum(axis=-1) - 1) <= 1e-9):
        raise ValueError(f"{name} must be probabilities that sum to 1")
    return law
