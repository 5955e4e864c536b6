"""Palettes of the demo's images, and colour ramps through them that are even to the eye."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

# Dark to light, five colours each, chosen by eye; from vivid to nearly grey, so that colourfulness varies.
PALETTES: dict[str, str] = {
    "ember": "1b1026 5c1a3a b8383b f08a4b fbe3b5",
    "lagoon": "0b1d3a 14507a 1f96a3 7ed0b6 f3f0d7",
    "orchard": "1f2a1a 4a6b2f 9aab3f e8c15a f8efcf",
    "dusk": "171738 4b2e83 a64ca6 f28ba8 ffe1c9",
    "slate": "1c2026 3d4650 6f7a85 a9b1b8 eceae4",
    "clay": "2b1a17 6e3b2b b0694a dcae86 f5e9d8",
    "carnival": "1d2b64 d7263d f46036 2ebfa5 f7e27c",
    "glacier": "10233f 2f5d8c 6fa3c7 b8d8e3 f6fafb",
    "heather": "2a2135 5d4a73 9781a6 cbb8c9 f2ebe6",
    "saffron": "2d132c 801336 c72c41 ee8a2f ffd56b",
    "moss": "14211b 2f4d3c 66845f abb88b ebe6c8",
    "reef": "052f3b 0f7173 e7576b f2a65a f6efd9",
    "ink": "101014 2b2b33 5a5a66 a3a3ad f4f2ee",
    "peony": "3a0f2e 8e2157 d65a83 f3a6b2 fdf0e6",
    "harbour": "122a40 31617f c8553d e9a15b f1e5cb",
    "meadow": "12343b 2d6e5b 7fb069 e6c84f fff4d6",
}

# The two matrices that define OKLab (Björn Ottosson, 2020).
_LINEAR_TO_LMS = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_LMS_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def colours(name: str) -> Array:
    """Return a palette's five colours, dark to light, as sRGB from 0 to 1, shape (5, 3)."""
    return np.array([[int(code[at : at + 2], 16) / 255 for at in (0, 2, 4)] for code in PALETTES[name].split()])


def ramp(stops: Array, where: Array) -> Array:
    """Return the colours at `where` along the stops; 0 is the first stop, 1 the last.

    The way between two stops runs through OKLab, so that no stretch of it looks darker or duller than its ends.

    Args:
        stops: sRGB from 0 to 1, shape (k, 3).
        where: any shape; values outside 0 to 1 are clipped.

    Returns:
        sRGB from 0 to 1, shape (*where.shape, 3).
    """
    fine = np.linspace(0, len(stops) - 1, 1024)
    lab = _to_oklab(stops)
    table = _from_oklab(np.stack([np.interp(fine, np.arange(len(stops)), axis) for axis in lab.T], axis=-1))
    return table[np.rint(np.clip(where, 0, 1) * 1023).astype(np.intp)]


def _to_oklab(srgb: Array) -> Array:
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ _LINEAR_TO_LMS.T) @ _LMS_TO_LAB.T


def _from_oklab(lab: Array) -> Array:
    linear = (lab @ np.linalg.inv(_LMS_TO_LAB).T) ** 3 @ np.linalg.inv(_LINEAR_TO_LMS).T
    linear = np.clip(linear, 0, 1)
    return np.where(linear <= 0.0031308, linear * 12.92, 1.055 * linear ** (1 / 2.4) - 0.055)
