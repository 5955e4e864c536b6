"""The space of latents z ~ N(0, I): drawing them, and the codes by which a record holds them.

A code is the numbers' bytes as base64: `decode` gives back every bit. On the grid of float64 that is 11 characters a
number, on that of float32 half as many, which is what keeps 16,384 of them in a cell that every CSV reader takes.

The grid of float32. Starts, fresh draws and moves are worked out in float64 and each number is then rounded to
float32, by at most 2^-24 of its size. The rounded number is the state: it is what is stored, decoded and moved from,
and a replay draws the very same one. p0 is thus N(0, I) rounded, and moves are reversible for it up to rounding, as on
the grid of float64 but at 2^-24 in place of 2^-53. Rounding adds a variance of some 2^-50 to a step of variance β²: a
share of less than 10^-12 at β = 0.08. Nothing that is seen rests on it: image models work in float32 or in half of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

import numpy as np

from sampler.spaces.images.latent import Grid, Latent, log_p0, standard_normals

_NAME_LENGTH = 12
# Some units in the last place, carried along a chain; a move changes the numbers by a share β of 1, far more.
_TOLERANCE: Final[dict[Grid, float]] = {"<f8": 1e-9, "<f4": 1e-6}


class LatentSpace:
    """Latents of one dimension on one grid; p0 = N(0, I).

    Args:
        dimension: how many numbers a latent has.
        grid: which numbers they may be.
    """

    def __init__(self, dimension: int, grid: Grid = "<f8") -> None:
        self._dimension, self._grid = dimension, grid

    @property
    def dimension(self) -> int:
        """How many numbers a latent has."""
        return self._dimension

    def start(self, rng: np.random.Generator, chain: int) -> Latent:
        """Draw x^(0) of a chain: z ~ N(0, I)."""
        return Latent.of(standard_normals(rng, self.dimension), self._grid)

    def refresh(self, rng: np.random.Generator, state: Latent) -> Latent:
        """Draw z' ~ N(0, I) whatever the state is."""
        return Latent.of(standard_normals(rng, self.dimension), self._grid)

    def log_p0(self, state: Latent) -> float:
        """Return log p0(z) up to a constant."""
        return log_p0(state)

    def encode(self, state: Latent) -> str:
        """Return the state's numbers as base64 of their bytes; `decode` gives back every bit."""
        return base64.b64encode(state.data).decode("ascii")

    def decode(self, code: str) -> Latent:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: not base64, not `dimension` numbers, or a number that is not finite.
        """
        try:
            data = base64.b64decode(code, validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError("an image's code must be base64 as `encode` writes it") from error
        size = np.dtype(self._grid).itemsize
        if len(data) != size * self.dimension:
            raise ValueError(
                f"an image's code must hold {self.dimension} numbers of {size} bytes each, not {len(data)} bytes"
            )
        state = Latent.of(np.frombuffer(data, dtype=self._grid), self._grid)
        if self.encode(state) != code:
            # base64 has spare bits at the end; equal states must have one text only.
            raise ValueError("an image's code must be base64 as `encode` writes it, with its spare bits at zero")
        return state

    def is_close(self, one: Latent, other: Latent) -> bool:
        """True when two latents are the same but for rounding: within 1e-9 (float32: 1e-6), relative or absolute.

        `ndtri` may differ in the last bit from one machine to another, and a chain carries that along.
        """
        within = _TOLERANCE[self._grid]
        same_length = len(one.vector) == len(other.vector)
        return same_length and bool(np.allclose(one.vector, other.vector, rtol=within, atol=within))

    def content(self, state: Latent) -> str:
        """Return a name of the image: the first hexadecimal digits of its latent's SHA-256."""
        return hashlib.sha256(state.data).hexdigest()[:_NAME_LENGTH]
