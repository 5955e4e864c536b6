"""Latent vectors z under p0 = N(0, I): the states of generated images, and how to draw them.

p0 is fixed. Crank-Nicolson moves (`sampler.kernels.crank_nicolson`) are reversible for N(0, I) and for nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy import special

Vector = npt.NDArray[np.float64]
Grid = Literal["<f8", "<f4"]
"""The numbers a latent may have: those of float64 or of float32, both stored little-endian."""

_HALF_STEP = 2.0**-54


@dataclass(frozen=True)
class Latent:
    """A latent vector as its bytes, so that it is quick to hash and compares number by number, bit by bit.

    Args:
        data: the numbers, 8 or 4 bytes each.
        grid: which numbers they may be. What is drawn for such a latent is worked out in float64, then rounded.
    """

    data: bytes
    grid: Grid = "<f8"

    @classmethod
    def of(cls, vector: npt.ArrayLike, grid: Grid = "<f8") -> Latent:
        """Return the latent of a vector, shape (d,), each number rounded to the nearest of the grid.

        Raises:
            ValueError: not one row of finite numbers.
        """
        with np.errstate(over="ignore"):
            numbers = np.asarray(vector).astype(grid)
        if numbers.ndim != 1 or not numbers.size:
            raise ValueError(f"a latent must be one row of numbers, not an array of shape {numbers.shape}")
        if not np.all(np.isfinite(numbers)):
            raise ValueError("a latent must hold finite numbers only, no NaN and no infinity")
        return cls(numbers.tobytes(), grid)

    @property
    def vector(self) -> Vector:
        """The numbers, shape (d,), read-only."""
        numbers: Vector = np.frombuffer(self.data, dtype=self.grid).astype(np.float64, copy=False)
        numbers.flags.writeable = False
        return numbers


def log_p0(latent: Latent) -> float:
    """Return log N(z; 0, I) up to a constant: -|z|²/2."""
    vector = latent.vector
    return -0.5 * float(np.sum(vector * vector))


def standard_normals(rng: np.random.Generator, dimension: int) -> Vector:
    """Draw z ~ N(0, I), shape (dimension,), from `rng.random()` alone.

    `rng.standard_normal()` would be quicker, but NumPy may change its algorithm in any release, and then a record
    could not be redrawn; `sampler.streams` says more.
    """
    return normals_of(rng.random(dimension))


def normals_of(uniforms: Vector) -> Vector:
    """Return the normal quantiles of `rng.random()`'s numbers, any shape; all are finite, at most 8.3 in size.

    Those numbers are k 2^-53 with k from 0 to 2^53 - 1. The middle of each step, 2^-54 further on, keeps the quantile
    of 0 finite and makes the law symmetric. Near 1 a double cannot hold that middle (1 - 2^-54 rounds to 1, whose
    quantile is infinite), so the upper half is measured from 1 downwards, where every difference is exact.
    """
    upper = uniforms >= 0.5
    tail = np.where(upper, (1 - uniforms) - _HALF_STEP, uniforms + _HALF_STEP)
    below = special.ndtri(tail)
    return np.asarray(np.where(upper, -below, below), dtype=np.float64)
