"""From two fields to a picture: tones, layers, light, a figure upon a ground, and a palette for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sampler.spaces.images.patterns.colour import ramp
from sampler.spaces.images.patterns.dials import Dials
from sampler.spaces.images.patterns.fields import Array, sine

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
    place = np.rint(np.clip(tone, 0, 1) * (_TONES - 1)).astype(np.intp)
    return [np.take(band, place) for band in palette]


def _steepness(height: Array) -> Array:
    """Return how much the height changes from one pixel to the next; never 0."""
    down, right = _rises(height)
    return np.asarray(np.sqrt(down * down + right * right + 1e-8))


def _slope(height: Array) -> Array:
    """Return how far the surface rises away from the light, which comes from the lower right."""
    down, right = _rises(height)
    return np.asarray(right + down)


def _rises(height: Array) -> tuple[Array, Array]:
    """Return how much the height rises down and to the right a pixel: what `np.gradient` gives, in half the time."""
    down, right = np.empty_like(height), np.empty_like(height)
    np.subtract(height[2:], height[:-2], out=down[1:-1])
    np.subtract(height[:, 2:], height[:, :-2], out=right[:, 1:-1])
    down[1:-1] *= 0.5
    right[:, 1:-1] *= 0.5
    down[0], down[-1] = height[1] - height[0], height[-1] - height[-2]
    right[:, 0], right[:, -1] = height[:, 1] - height[:, 0], height[:, -1] - height[:, -2]
    return down, right
