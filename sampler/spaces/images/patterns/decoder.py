"""The embedded decoder: a network of patterns whose weights, symmetry, warp and colours are the latent.

    plane  →  symmetry (mirrors, kaleidoscope)  →  warp  →  two fields  →  picture (`painting`)

Every step is continuous in the latent: what looks like a choice (a family, a number of mirrors) is a blend that is
seldom found half-way. Near-by latents give pictures that look alike, unrelated ones give pictures that do not.

The same z gives the same bytes. Sums are written out and no matrix product is used, so that they add in one order
whatever the number of threads. Another machine's exponential may differ in the last bit, which rounding to 256
levels hides but for a rare pixel.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from sampler.spaces.images.patterns.dials import Dials, Vector
from sampler.spaces.images.patterns.fields import FAMILIES, Array, cosine, sine, smooth_step
from sampler.spaces.images.patterns.painting import paint

SIDE = 256
DIMENSION = 162
# Fields are worked out for this many rows at a time: what fits a core's cache takes half the time.
_ROWS = 32


class Patterns:
    """Pictures of 256 × 256 pixels from latents of `DIMENSION` numbers."""

    @property
    def dimension(self) -> int:
        """How many numbers a latent has."""
        return DIMENSION

    def pixels(self, vector: Vector) -> npt.NDArray[np.uint8]:
        """Return the picture: sRGB, shape (256, 256, 3).

        Raises:
            ValueError: the vector has another shape than (dimension,).
        """
        if vector.shape != (DIMENSION,):
            raise ValueError(f"vector must have the shape ({DIMENSION},), not {vector.shape}")
        dials = Dials(vector)
        base, figure = _fields(dials)
        return paint(dials, base, figure)


class _Symmetry:
    """Folds the plane by a kaleidoscope or by one mirror, or leaves it."""

    def __init__(self, dials: Dials) -> None:
        self._folded = dials.switch(0.38)
        self._mirrored = (1 - self._folded) * dials.switch(0.3)
        self._sectors, self._turn = _nearly_whole(dials.between(2.5, 7.5)), dials.between(-np.pi, np.pi)
        # A mirror stands upright in the middle, a kaleidoscope's centre in the middle.
        self._left = 0.3 * (1 - self._folded) * (1 - self._mirrored) * dials.normals(1)[0]
        self._up = 0.3 * (1 - self._folded) * dials.normals(1)[0]
        self._zoom = dials.between(0.9, 1.7)

    def __call__(self, x: Array, y: Array) -> tuple[Array, Array]:
        x, y = self._zoom * (x - self._left), self._zoom * (y - self._up)
        x = x + self._mirrored * (np.abs(x) - x)
        if not self._folded:
            return x, y
        # Measured both ways from above, so that what is left over of a sector is its own mirror image below.
        radius, angle = np.sqrt(x * x + y * y), np.abs(np.arctan2(x, -y))
        turns = self._sectors * angle / (2 * np.pi)
        # Up and down between 0 and half a turn: arccos of cos, without either.
        inside = 2 * np.pi * np.abs(turns - np.rint(turns)) / self._sectors + self._turn
        return x + self._folded * (radius * cosine(inside) - x), y + self._folded * (radius * sine(inside) - y)


class _Warp:
    """Displaces the plane by waves, twice; the second time finer."""

    def __init__(self, dials: Dials) -> None:
        self._strength = 0.34 * dials.between(0.0, 1.0) ** 1.5
        self._waves = [
            (scale, dials.normals(3), dials.normals(3), dials.angles(3), dials.angles(3)) for scale in (1.0, 1.8)
        ]

    def __call__(self, u: Array, v: Array) -> tuple[Array, Array]:
        for scale, across, down, phases, ways in self._waves:
            right, below = self._strength / scale * np.cos(ways), self._strength / scale * np.sin(ways)
            du, dv = np.zeros_like(u), np.zeros_like(v)
            for each in range(3):
                wave = sine(1.5 * scale * (across[each] * u + down[each] * v) + phases[each])
                du += right[each] * wave
                dv += below[each] * wave
            u, v = u + du, v + dv
        return u, v


def _fields(dials: Dials) -> tuple[Array, Array]:
    """Return the base field and the figure's field, each with mean 0 and standard deviation 1."""
    symmetry, warp = _Symmetry(dials), _Warp(dials)
    base, figure = dials.shares(len(FAMILIES), 4.0), dials.shares(len(FAMILIES), 4.0)
    families = [family(dials) for family in FAMILIES]
    shown = {place: np.empty((SIDE, SIDE)) for place in np.flatnonzero(base + figure)}
    for rows, x, y in _plane():
        u, v = warp(*symmetry(x, y))
        for place, values in shown.items():
            values[rows] = families[place](u, v)
    totals = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    for place, values in shown.items():
        standard = _standard(values)
        for total, shares in zip(totals, (base, figure), strict=True):
            if shares[place]:
                total += shares[place] * standard
    return _standard(totals[0]), _standard(totals[1])


def _plane() -> Iterator[tuple[slice, Array, Array]]:
    """Yield the picture's rows and their pixels' x and y, -1 to 1, each of shape (_ROWS, SIDE)."""
    axis = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    for first in range(0, SIDE, _ROWS):
        rows = slice(first, first + _ROWS)
        x, y = np.meshgrid(axis, axis[rows])
        yield rows, x, y


def _nearly_whole(number: float) -> float:
    """Return a number close to the nearest whole one, but for numbers half-way between two."""
    whole = np.floor(number)
    return float(whole + smooth_step(float(number - whole), 3))


def _standard(values: Array) -> Array:
    centred = values - np.mean(values)
    return np.asarray(centred / (np.sqrt(np.mean(centred * centred)) + 1e-6))
