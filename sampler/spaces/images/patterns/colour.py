"""Colour ramps that are even to the eye: lightness, chroma and hue in OKLab, brought into sRGB.

OKLab is Björn Ottosson's (2020). Its lightness runs from 0 to 1; the chroma of sRGB's colours is at most about 0.32.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

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
