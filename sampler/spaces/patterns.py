"""Generated images: a state is a latent z ~ N(0, I), and a decoder makes the picture of it, a network of patterns whose
weights, symmetry, warp and colours are the latent.

    plane  →  symmetry (mirrors, kaleidoscope)  →  warp  →  two fields  →  picture

Every step is continuous in the latent: what looks like a choice (a family, a number of mirrors) is a blend that is
seldom found half-way. Near-by latents give pictures that look alike, unrelated ones give pictures that do not. `Dials`
reads the latent's numbers one after another, as amounts that a picture can use.

A field gives a number of order 1 to each point. Coordinates u and v run over about -1 to 1; shapes are (side, side).
Each family of fields reads its own dials when it is made, so all of them are read whether or not they are drawn. Two
fields make a picture: tones, layers, light, a figure upon a ground, and a palette for each. Colour ramps are even to
the eye: lightness, chroma and hue in OKLab (Björn Ottosson, 2020), brought into sRGB. Its lightness runs from 0 to 1;
the chroma of sRGB's colours is at most about 0.32.

The same z gives the same bytes. Sums are written out and no matrix product is used, so that they add in one order
whatever the number of threads. Another machine's exponential may differ in the last bit, which rounding to 256
levels hides but for a rare pixel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from pydantic import ConfigDict, Field, field_validator
from scipy import special

from sampler.declared import Declared, ui
from sampler.spaces.latents import Latent, LatentSpace, Vector

Array = Vector

_LAB_TO_ROOTS = (
    (1.0, 0.3963377774, 0.2158037573),
    (1.0, -0.1055613458, -0.0638541728),
    (1.0, -0.0894841775, -1.2914855480),
)
_CONES_TO_RGB = (
    (4.0767416621, -3.3077115913, 0.2309699292),
    (-1.2684380046, 2.6097574011, -0.3413193965),
    (-0.0041960863, -0.7034186147, 1.7076147010),
)
_HALVINGS = 10


def ramp(lightness: Array, chroma: Array, hue: Array) -> Array:
    """Return the colours as sRGB from 0 to 1, shape (n, 3); each input has shape (n,), hue in radians.

    A colour outside sRGB keeps its lightness and hue, and gets the largest chroma that fits.
    """
    across, along = np.cos(hue), np.sin(hue)
    low, high = np.zeros_like(chroma), chroma
    fits = _is_inside(_linear(lightness, chroma * across, chroma * along))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        inside = _is_inside(_linear(lightness, middle * across, middle * along))
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    fitting = np.where(fits, chroma, low)
    linear = np.clip(_linear(lightness, fitting * across, fitting * along), 0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)


def _linear(lightness: Array, a: Array, b: Array) -> Array:
    # Sums are written out: a matrix product may add in another order on another machine.
    cones = [(one * lightness + two * a + three * b) ** 3 for one, two, three in _LAB_TO_ROOTS]
    bands = [one * cones[0] + two * cones[1] + three * cones[2] for one, two, three in _CONES_TO_RGB]
    return np.stack(bands, axis=-1)


def _is_inside(linear: Array) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = np.all((linear >= 0) & (linear <= 1), axis=-1)
    return inside


class Dials:
    """Hands out the numbers of a latent in order. What each one means is the order of the calls.

    Raises:
        IndexError: more numbers are read than the latent has.
    """

    def __init__(self, vector: Vector) -> None:
        self._vector = vector
        self.read = 0

    def normals(self, count: int) -> Vector:
        """Return the next numbers as they are, N(0, 1) each, shape (count,)."""
        if self.read + count > len(self._vector):
            raise IndexError(f"the latent has {len(self._vector)} numbers, and {self.read + count} are read")
        self.read += count
        return self._vector[self.read - count : self.read]

    def between(self, low: float, high: float) -> float:
        """Return an amount that is uniform between two under N(0, 1)."""
        return low + (high - low) * float(special.ndtr(self.normals(1)[0]))

    def angles(self, count: int) -> Vector:
        """Return angles that are uniform on the circle, in radians, shape (count,)."""
        angles: Vector = 2 * np.pi * special.ndtr(self.normals(count))
        return angles

    def switch(self, share: float, steepness: float = 24.0) -> float:
        """Return 1 with probability about `share` and 0 otherwise; seldom, and so that nothing jumps, in between."""
        above = self.normals(1)[0] - special.ndtri(1 - share)
        return float(np.clip(1.02 * special.expit(steepness * above) - 0.01, 0, 1))

    def shares(self, count: int, steepness: float) -> Vector:
        """Return shares that sum to 1, shape (count,): one near 1 and many exactly 0 when steepness is 3 or more.

        Shares below a twentieth are cut to 0 without a jump, so that what they weigh need not be computed.
        """
        logits = steepness * self.normals(count)
        shares = np.exp(logits - logits.max())
        kept = np.maximum(shares / shares.sum() - 0.05, 0)
        result: Vector = kept / kept.sum()
        return result


_TURNS = 0.5 / np.pi


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
        points = zip(0.62 * self._across, 0.62 * self._down, strict=True)
        squares = [(u - across) ** 2 + (v - down) ** 2 for across, down in points]
        nearest = np.minimum.reduce(squares)
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


_Field = Callable[[Array, Array], Array]
"""From points of the plane to a number at each."""
FAMILIES: tuple[Callable[[Dials], _Field], ...] = (Waves, Marble, Stripes, Spiral, Petals, Cells, Crystal, Weave)


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


_TONES = 512
# Colours are brought into sRGB for this many tones, and mixed in between.
_KNOTS = 96
_BLUE, _CREAM, _YELLOW = (float(np.deg2rad(degrees)) for degrees in (285, 85, 100))


@dataclass(frozen=True)
class _Surface:
    """What the ground looks like before it is coloured; each of shape (side, side).

    Args:
        tone: place on the palette, 0 dark to 1 light.
        light: how brightly it is lit; 1 is the palette's own colour.
        line: how much a thin light line covers it, 0 to 1.
    """

    tone: Array
    light: Array
    line: Array


def paint(dials: Dials, base: Array, figure: Array) -> npt.NDArray[np.uint8]:
    """Return the picture of two fields, sRGB, shape (side, side, 3).

    Args:
        dials: how to paint.
        base: decides the tones; mean 0 and standard deviation 1, shape (side, side).
        figure: where it is high, a figure lies on the ground; as `base`.
    """
    ground, other = _palettes(dials)
    surface = _surface(dials, base)
    bands, light = _look_up(ground, surface.tone), surface.light
    sharpness, threshold = dials.between(0.3, 1.0), dials.between(-0.3, 1.1)
    shown, inverted = dials.switch(0.7), dials.switch(0.5)
    if shown:
        # Half-way the figure is small, not pale: a pale one would mix its colours with the ground's.
        inside, shadow = _cut_out(figure - threshold - 3 * (1 - shown), sharpness)
        opacity = min(4 * shown, 1.0)
        light = light - 0.3 * opacity * sharpness * shadow
        tone = surface.tone + inverted * (1 - 2 * surface.tone)
        for band, laid in zip(bands, _look_up(other, tone), strict=True):
            band += opacity * inside * (laid - band)
    for band, ink in zip(bands, ground[:, -1], strict=True):
        band *= light
        band += surface.line * (ink - band)
    return np.stack([np.rint(np.clip(band, 0, 255)).astype(np.uint8) for band in bands], axis=-1)


def _palettes(dials: Dials) -> tuple[Array, Array]:
    """Return the ramps of the ground and of the figure, dark to light, shape (3, _TONES) each, sRGB from 0 to 255."""
    dark, light = dials.between(0.16, 0.4), dials.between(0.88, 0.97)
    vivid, hue = dials.between(0.10, 0.21), dials.angles(1)[0]
    swing, bend = 2.0 * dials.normals(1)[0], 0.6 * dials.normals(1)[0]
    away = np.pi * dials.between(0.45, 1.55)
    where = np.linspace(0, 1, _KNOTS)
    lightness = dark + (light - dark) * where
    chroma = vivid * (0.45 + 0.55 * np.sin(np.pi * where**0.85))
    ground = hue + swing * (where - 0.5) + bend * np.cos(2 * np.pi * where)
    figure = hue + away - 0.35 * swing * (where - 0.5)
    return _daylight(lightness, chroma, ground), _daylight(lightness, chroma, figure)


def _daylight(lightness: Array, chroma: Array, hue: Array) -> Array:
    """Return a ramp with the dark hues drawn towards blue and the light ones towards cream, as daylight does.

    Dark yellows look like mud; the darkest are made nearly grey, the others lighter, into gold.
    """
    where = np.linspace(0, 1, _KNOTS)
    hue = hue + 0.7 * (1 - where) * np.sin(_BLUE - hue) + 0.3 * where * np.sin(_CREAM - hue)
    yellow = (0.5 + 0.5 * np.cos(hue - _YELLOW)) ** 2
    lifted = np.minimum(lightness + 0.18 * yellow * np.sin(np.pi * where), 0.98)
    colours = 255 * ramp(lifted, chroma * (1 - 0.45 * yellow * (1 - where)), hue)
    return np.stack([np.interp(np.linspace(0, 1, _TONES), where, band) for band in colours.T])


def _surface(dials: Dials, base: Array) -> _Surface:
    """Finish the ground as agate (fine veins), as a relief, or as layers of cut paper; seldom a blend of these."""
    agate, relief, paper = dials.shares(3, 4.0)
    key, spread = 0.4 * dials.normals(1)[0], dials.between(1.2, 2.2)
    depth, layers, drawn = dials.between(0.8, 2.6), dials.between(3, 7), dials.switch(0.3)
    tone = 1 / (1 + np.exp(-(spread * base + key)))
    steps = layers * tone
    steepness = _steepness(steps)
    # Where layers are hardly wider than a pixel, veins and lines would be noise.
    fine = np.clip(1.25 - 3 * steepness, 0, 1)
    light, line = np.ones_like(tone), np.zeros_like(tone)
    if veined := agate + 0.5 * relief:
        light += (0.5 * agate + relief) * np.clip(depth * _slope(base), -0.3, 0.2)
        tone += 0.3 * veined / layers * fine * sine(4 * np.pi * steps)
    if paper or drawn:
        cut, shadow, along = _layers(steps, steepness)
        tone += paper * (np.clip(cut / (layers - 1), 0, 1) - tone)
        light -= 0.4 * paper * fine * shadow
        line += 0.85 * drawn * fine * along
    return _Surface(tone, light, line)


def _layers(steps: Array, steepness: Array) -> tuple[Array, Array, Array]:
    """Cut a height into layers of paper, one upon the other; each result has the height's shape.

    Returns:
        The height of the layer on top, with smooth edges; the shadow that the next one above casts on it, and a line
        along the cuts, both from 0 to 1.
    """
    layer = np.floor(steps)
    # In pixels, from here to the cuts above and below.
    above, below = (layer + 1 - steps) / steepness, (steps - layer) / steepness
    smooth = layer + 0.5 * np.clip(1 - above, 0, 1) - 0.5 * np.clip(1 - below, 0, 1)
    return smooth, np.exp(-above / 5), np.clip(1.6 - np.minimum(above, below), 0, 1)


def _cut_out(height: Array, sharpness: float) -> tuple[Array, Array]:
    """Return where a figure covers the ground and the shadow around it; both from 0 to 1, of the height's shape."""
    distance = height / _steepness(height)
    # From an edge of one pixel to one of fifteen.
    width = 1 + 40 * (1 - sharpness) ** 3
    return np.clip(0.5 + distance / width, 0, 1), np.where(distance < 0, np.exp(np.minimum(distance, 0) / 6), 0)


def _look_up(palette: Array, tone: Array) -> list[Array]:
    """Return the colours of the tones, one array a band."""
    index = np.rint(np.clip(tone, 0, 1) * (_TONES - 1)).astype(np.intp)
    return [np.take(band, index) for band in palette]


def _steepness(height: Array) -> Array:
    """Return how much the height changes from one pixel to the next; never 0."""
    down, right = np.gradient(height)
    return np.asarray(np.sqrt(down * down + right * right + 1e-8))


def _slope(height: Array) -> Array:
    """Return how far the surface rises away from the light, which comes from the lower right."""
    down, right = np.gradient(height)
    return np.asarray(right + down)


SIDE = 256
DIMENSION = 162


class Patterns:
    """Pictures of 256 × 256 pixels from latents of `DIMENSION` numbers."""

    dimension = DIMENSION
    """How many numbers a latent has."""

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
    axis = (np.arange(SIDE) + 0.5) / SIDE * 2 - 1
    u, v = warp(*symmetry(*np.meshgrid(axis, axis)))
    totals = np.zeros((SIDE, SIDE)), np.zeros((SIDE, SIDE))
    for index in np.flatnonzero(base + figure):
        standard = _standard(families[index](u, v))
        for total, shares in zip(totals, (base, figure), strict=True):
            if shares[index]:
                total += shares[index] * standard
    return _standard(totals[0]), _standard(totals[1])


def _nearly_whole(number: float) -> float:
    """Return a number close to the nearest whole one, but for numbers half-way between two."""
    whole = np.floor(number)
    return float(whole + smooth_step(float(number - whole), 3))


def _standard(values: Array) -> Array:
    centred = values - np.mean(values)
    return np.asarray(centred / (np.sqrt(np.mean(centred * centred)) + 1e-6))


class ImagesConfig(Declared):
    """The part of a config that says: generate images from latents under N(0, I)."""

    model_config = ConfigDict(
        title="Abstract patterns from a decoder",
        json_schema_extra=ui(help="Coloured patterns that change by small and large steps. Nothing to prepare."),
    )

    objects: ClassVar[str] = "images"
    """Which kind of object it makes."""
    kind: Literal["images"] = "images"
    decoder: Literal["patterns"] = Field(default="patterns", json_schema_extra=ui(widget="none"))
    prior: Literal["standard-normal"] = Field(default="standard-normal", json_schema_extra=ui(widget="none"))

    @field_validator("prior", mode="before")
    @classmethod
    def _only_the_standard_normal(cls, prior: object) -> object:
        if prior != "standard-normal":
            raise ValueError(
                "must be 'standard-normal': the moves on latents are reversible for N(0, I) and no other distribution, "
                "so under another prior the chain would sample the wrong images"
            )
        return prior

    def build(self) -> GeneratedImages:
        """Return the space."""
        return GeneratedImages(Patterns())


class GeneratedImages(LatentSpace):
    """The space of a decoder's images; p0 = N(0, I) on latents. `describe` gives what `describe_image` measures."""

    def __init__(self, decoder: Patterns) -> None:
        super().__init__(decoder.dimension)
        self._decoder = decoder

    def pixels(self, state: Latent) -> npt.NDArray[np.uint8]:
        """Return the picture: sRGB, shape (height, width, 3).

        Raises:
            ValueError: the latent has another dimension than the decoder.
        """
        vector = state.vector
        if vector.shape != (self.dimension,):
            raise ValueError(f"a latent of this space must hold {self.dimension} numbers, not {len(vector)}")
        return self._decoder.pixels(vector)
