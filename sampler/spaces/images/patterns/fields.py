"""Families of smooth fields on the plane: what the patterns are composed of.

A field gives a number of order 1 to each point. Coordinates u and v run over about -1 to 1; shapes are (side, side).
Each family reads its own dials when it is made, so all of them are read whether or not they are drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from sampler.spaces.images.patterns.dials import Dials, Vector

Array = Vector

_TURNS = 0.5 / np.pi


class Field(Protocol):
    """A number at every point of the plane."""

    def __call__(self, u: Array, v: Array) -> Array:
        """Return the values at the points."""
        ...


class Waves:
    """A few long plane waves added up: clouds without an edge."""

    def __init__(self, dials: Dials) -> None:
        self._across, self._down = 2.5 * dials.normals(5), 2.5 * dials.normals(5)
        self._phases, self._heights = dials.angles(5), dials.normals(5)

    def __call__(self, u: Array, v: Array) -> Array:
        return _sum_of_waves(u, v, self._across, self._down, self._phases, self._heights)


class Marble:
    """Veins: where waves that bend one another cross zero."""

    def __init__(self, dials: Dials) -> None:
        self._across, self._down = 1.3 * dials.normals(3), 1.3 * dials.normals(3)
        self._phases, self._pull = dials.angles(3), dials.between(0.6, 1.7)
        self._veins = dials.between(1.0, 2.2)

    def __call__(self, u: Array, v: Array) -> Array:
        bent = u
        for across, down, phase in zip(self._across, self._down, self._phases, strict=True):
            bent = cosine(across * bent + (down + self._pull) * v + phase + self._pull * bent)
        flow = u * self._across[0] + v * self._down[0] + self._pull * bent
        return 2 * np.abs(sine(self._veins * flow)) - 1 + 0.4 * bent


class Stripes:
    """Parallel bands, wider on one side than on the other."""

    def __init__(self, dials: Dials) -> None:
        self._turn = dials.angles(1)[0]
        self._count, self._widening = dials.between(4, 13), dials.between(-0.35, 0.35)
        self._sway, self._phase = dials.between(0.0, 1.6), dials.angles(1)[0]

    def __call__(self, u: Array, v: Array) -> Array:
        along = np.cos(self._turn) * u + np.sin(self._turn) * v
        beside = np.cos(self._turn) * v - np.sin(self._turn) * u
        bend = self._sway * sine(2.2 * beside + self._phase)
        return sine(self._count * along * (1 + self._widening * along) + bend)


class Spiral:
    """Arms that wind out from the middle; with none, rings."""

    def __init__(self, dials: Dials) -> None:
        self._arms, self._count = dials.between(0, 6), dials.between(4, 12)
        self._shrink, self._phase = dials.between(0.45, 1.0), dials.angles(1)[0]

    def __call__(self, u: Array, v: Array) -> Array:
        radius, angle = np.sqrt(u * u + v * v + 1e-4), np.arctan2(v, u)
        winding = self._count * radius**self._shrink + self._phase
        fewer = np.floor(self._arms)
        # Only whole numbers of arms close on themselves; in between, the two nearest are blended.
        more = smooth_step(self._arms - fewer, 2)
        value = cosine(winding + fewer * angle)
        return value + more * (cosine(winding + (fewer + 1) * angle) - value) if more else value


class Petals:
    """Rings whose radius swells and shrinks around the middle, like a flower's."""

    def __init__(self, dials: Dials) -> None:
        self._petals, self._depth = dials.between(3, 9), dials.between(0.15, 0.5)
        self._count, self._twist = dials.between(5, 11), dials.between(-1.2, 1.2)
        self._phase = dials.angles(1)[0]

    def __call__(self, u: Array, v: Array) -> Array:
        radius, angle = np.sqrt(u * u + v * v + 1e-4), np.arctan2(v, u)
        fewer = np.floor(self._petals)
        more = smooth_step(self._petals - fewer, 2)
        turned = self._twist * radius + self._phase
        crest = cosine(fewer * angle + turned)
        crest = crest + more * (cosine((fewer + 1) * angle + turned) - crest)
        return cosine(self._count * radius * (1 + self._depth * crest))


class Cells:
    """Panes of one tone each, around scattered points."""

    def __init__(self, dials: Dials) -> None:
        self._across, self._down = dials.normals(12), dials.normals(12)
        self._tones, self._sharpness = dials.normals(12), dials.between(25, 70)

    def __call__(self, u: Array, v: Array) -> Array:
        places = zip(0.62 * self._across, 0.62 * self._down, strict=True)
        squares = [(u - across) ** 2 + (v - down) ** 2 for across, down in places]
        nearest = squares[0].copy()
        for square in squares[1:]:
            np.minimum(nearest, square, out=nearest)
        total, weight = np.zeros_like(u), np.zeros_like(u)
        for square, tone in zip(squares, self._tones, strict=True):
            # Below e^-60 `exp` would slow down on numbers that no double holds in full.
            share = np.exp(np.maximum(self._sharpness * (nearest - square), -60))
            weight += share
            total += tone * share
        pane: Array = total / weight - 0.6 * np.sqrt(nearest)
        return pane


class Crystal:
    """Waves in directions evenly turned: at five or seven of them, the order of a quasicrystal."""

    def __init__(self, dials: Dials) -> None:
        self._turn, self._step = dials.angles(1)[0], dials.between(np.pi / 7, np.pi / 2)
        self._count, self._phases = dials.between(4, 10), dials.angles(5)

    def __call__(self, u: Array, v: Array) -> Array:
        turns = self._turn + self._step * np.arange(5)
        return _sum_of_waves(u, v, self._count * np.cos(turns), self._count * np.sin(turns), self._phases, np.ones(5))


class Weave:
    """Two sets of bands that cross over and under one another."""

    def __init__(self, dials: Dials) -> None:
        self._turn, self._count = dials.angles(1)[0], dials.between(3, 8)
        self._slant, self._phases = dials.between(0.35, 0.65) * np.pi, dials.angles(2)

    def __call__(self, u: Array, v: Array) -> Array:
        one = np.cos(self._turn) * u + np.sin(self._turn) * v
        two = np.cos(self._turn + self._slant) * u + np.sin(self._turn + self._slant) * v
        warp, weft = self._count * one + self._phases[0], self._count * two + self._phases[1]
        return sine(warp) * sine(weft) + 0.5 * cosine(2 * warp) * cosine(weft)


FAMILIES: tuple[Callable[[Dials], Field], ...] = (Waves, Marble, Stripes, Spiral, Petals, Cells, Crystal, Weave)


def sine(phase: Array) -> Array:
    """Return a wave of period 2π that is within 0.0011 of the sine everywhere and has its slope at every joint.

    Made of parabolas: about six times as fast as NumPy's sine of a float64, and of nothing but IEEE additions and
    multiplications, so that every machine finds the same bits.
    """
    wave = phase * _TURNS
    # Every other step works in place: new arrays of this size cost more than the arithmetic.
    bend = np.rint(wave)
    wave -= bend
    for twice, once in ((-16.0, 8.0), (0.225, 0.775)):
        np.abs(wave, out=bend)
        bend *= twice
        bend += once
        wave *= bend
    return wave


def cosine(phase: Array) -> Array:
    """Return `sine` a quarter of a period earlier."""
    return sine(phase + np.pi / 2)


def _sum_of_waves(u: Array, v: Array, across: Vector, down: Vector, phases: Vector, heights: Vector) -> Array:
    total = np.zeros_like(u)
    for right, below, phase, height in zip(across, down, phases, heights, strict=True):
        total += height * cosine(right * u + below * v + phase)
    return total


def smooth_step(part: float, times: int) -> float:
    """Return 0 to 1 for 0 to 1: flat at both ends, and in the middle the steeper the more times it is applied."""
    for _ in range(times):
        part = part * part * (3 - 2 * part)
    return part
