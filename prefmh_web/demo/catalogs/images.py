"""The demo's images, and a simulated viewer who likes them colourful."""

from __future__ import annotations

import functools
import io
import zipfile

import numpy as np
import numpy.typing as npt
from PIL import Image

from prefmh_web.demo.catalogs.image_palettes import PALETTES, colours
from prefmh_web.demo.catalogs.image_patterns import FAMILIES

_PER_FAMILY = 6
# A ZIP stores times from 1980 on; one fixed time makes the same bytes on every day.
_TIMESTAMP = (1980, 1, 1, 0, 0, 0)

NAMES = tuple(f"{family.__name__}-{number:02}.png" for family in FAMILIES for number in range(1, _PER_FAMILY + 1))


def write() -> bytes:
    """Return the catalog as a ZIP of PNG files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as files:
        for name in NAMES:
            files.writestr(zipfile.ZipInfo(name, _TIMESTAMP), _png(paint(name)))
    return archive.getvalue()


def paint(name: str) -> npt.NDArray[np.uint8]:
    """Return the pixels of the image called `name`, shape (SIDE, SIDE, 3).

    Raises:
        ValueError: no image of the catalog has this name.
    """
    place = NAMES.index(name)
    rng = np.random.default_rng(place)
    family, number = divmod(place, _PER_FAMILY)
    # Stepping by 5 through 16 palettes gives a family different ones, and neighbours in the list too.
    palette = list(PALETTES)[(5 * number + 3 * family) % len(PALETTES)]
    picture = FAMILIES[family](rng, colours(palette))
    return np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)


@functools.cache
def colourfulness(name: str) -> float:
    """Return how colourful an image is, after Hasler and Süsstrunk (2003), stretched to about -2..2.

    Raises:
        ValueError: no image of the catalog has this name.
    """
    red, green, blue = np.moveaxis(paint(name).astype(np.float64), -1, 0)
    red_green, yellow_blue = red - green, (red + green) / 2 - blue
    spread = np.hypot(red_green.std(), yellow_blue.std())
    shift = np.hypot(red_green.mean(), yellow_blue.mean())
    # The square root, because a grey picture gains more from a little colour than a gaudy one from a little more.
    return float(np.sqrt(spread + 0.3 * shift) - 6.7) / 2.3


def _png(pixels: npt.NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    # Half the time of the usual level 6 for a tenth more bytes.
    Image.fromarray(pixels).save(file, "PNG", compress_level=4)
    return file.getvalue()
