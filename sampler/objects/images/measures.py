"""What can be measured of a picture without knowing what it shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

# Luma of sRGB values (ITU-R BT.601), as image libraries turn colour to grey.
_LUMA = (0.299, 0.587, 0.114)
# A step in brightness of a tenth of the range within one pixel is an edge.
_EDGE = 0.1


@dataclass(frozen=True)
class ImageDescription:
    """Measures of one picture.

    Args:
        colourfulness: M^(3) of Hasler and Süsstrunk (2003); 0 is grey, about 33 moderately, 59 highly and above 82
            extremely colourful by their raters.
        contrast: root mean square contrast: the standard deviation of brightness, 0 to 0.5.
        edge_density: the share of pixels where brightness rises by more than a tenth of its range per pixel, 0 to 1;
            None for a picture of one row or one column, where it has no slope in one of the two directions.
        symmetry: correlation of brightness with its left-right mirror image, -1 to 1; 1 for a picture of one tone.
    """

    colourfulness: float
    contrast: float
    edge_density: float | None
    symmetry: float


def describe_image(pixels: npt.NDArray[np.uint8]) -> ImageDescription:
    """Measure a picture.

    Args:
        pixels: sRGB, shape (height, width, 3), at least one pixel.

    Raises:
        ValueError: another shape.
    """
    if pixels.ndim != 3 or pixels.shape[2] != 3 or min(pixels.shape[:2]) < 1:
        raise ValueError(f"pixels must have the shape (height, width, 3), at least 1 × 1, not {pixels.shape}")
    red, green, blue = (pixels[..., band].astype(np.float64) for band in range(3))
    brightness = (_LUMA[0] * red + _LUMA[1] * green + _LUMA[2] * blue) / 255
    return ImageDescription(
        colourfulness=_colourfulness(red, green, blue),
        contrast=float(brightness.std()),
        edge_density=_edge_density(brightness),
        symmetry=_symmetry(brightness),
    )


def _colourfulness(
    red: npt.NDArray[np.float64], green: npt.NDArray[np.float64], blue: npt.NDArray[np.float64]
) -> float:
    red_green, yellow_blue = red - green, (red + green) / 2 - blue
    spread = np.hypot(red_green.std(), yellow_blue.std())
    return float(spread + 0.3 * np.hypot(red_green.mean(), yellow_blue.mean()))


def _edge_density(brightness: npt.NDArray[np.float64]) -> float | None:
    if min(brightness.shape) < 2:
        return None
    down, across = np.gradient(brightness)
    return float(np.mean(np.hypot(down, across) > _EDGE))


def _symmetry(brightness: npt.NDArray[np.float64]) -> float:
    centred = brightness - brightness.mean()
    power = float(np.mean(centred * centred))
    # A flat picture's variance is nothing but rounding; it is its own mirror image.
    return float(np.mean(centred * centred[:, ::-1])) / power if power > 1e-12 else 1.0
