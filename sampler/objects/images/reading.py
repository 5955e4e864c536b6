"""Images: a ZIP of picture files, with a `weights.csv` (columns file, weight, and others) inside if wanted.

Every picture is decoded and encoded again, in sRGB, so nothing but pixels reaches a voter's browser.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageCms, UnidentifiedImageError

from sampler.objects.archives import Archive
from sampler.objects.folders import read_folder
from sampler.objects.items import Collector, Item, Progress, Reading
from sampler.objects.nearness import nearest_by_distance

MAX_PIXELS = 25_000_000
MAX_SIDE = 1024
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
# Many phones save photographs as MPO, which is JPEG with a second picture behind the first.
_LOSSY = ("JPEG", "MPO", "WEBP")
_THUMBNAIL = (12, 12)
# By the value of the EXIF tag Orientation.
_TURN_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


class Images:
    """Pictures."""

    name = "images"
    accepts = ".zip,application/zip"

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read a ZIP of pictures. Larger sides than 1024 pixels are scaled down; metadata is dropped."""
        return read_folder(Archive(file), "picture", _encode, progress, Collector(pictures))

    def written(self, text: str) -> str:
        """Refuse: an image is pixels.

        Raises:
            ValueError: always.
        """
        raise ValueError("an image cannot be written down")

    def neighbours(self, items: Sequence[Item], count: int) -> tuple[tuple[int, ...], ...]:
        """Link each picture to its nearest by distance between 12 by 12 thumbnails in opponent colours."""
        vectors = np.stack([_thumbnail(item.picture) for item in items])
        return nearest_by_distance(vectors, count, "euclidean")


def _encode(data: bytes) -> tuple[bytes, str]:
    """Decode a picture and encode its pixels again as PNG, or as WebP where the original was lossy already."""
    pixels, found = _decoded(data)
    lossy = found in _LOSSY
    encoded = io.BytesIO()
    pixels.save(encoded, "WEBP" if lossy else "PNG", **({"quality": 90} if lossy else {}))
    return encoded.getvalue(), "image/webp" if lossy else "image/png"


def _decoded(data: bytes) -> tuple[Image.Image, str]:
    """Return a picture upright, in sRGB, small enough and without metadata; and the format that it came in."""
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as original:
            if original.width * original.height > MAX_PIXELS:
                raise ValueError(
                    f"the image has {original.width} × {original.height} pixels; "
                    f"at most {MAX_PIXELS // 10**6} million are allowed"
                )
            found = original.format or ""
            # Not ImageOps.exif_transpose: it writes all EXIF data anew and fails on what cameras get wrong there.
            turn = _TURN_UPRIGHT.get(original.getexif().get(ExifTags.Base.Orientation, 1))
            upright = original if turn is None else original.transpose(turn)
            if upright.mode.startswith("I;16"):
                # Pillow would clip 16-bit greys at 255 and leave a white picture.
                upright = Image.fromarray((np.asarray(upright) >> 8).astype(np.uint8))
            pixels = _in_srgb(upright, original.info.get("icc_profile"))
    except UnidentifiedImageError as error:
        raise ValueError(f"not an image; accepted are {', '.join(FORMATS)}") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ValueError(f"the image has far too many pixels: {error}") from error
    except (OSError, SyntaxError, EOFError, struct.error) as error:
        raise ValueError(f"the image is broken: {error}") from error
    pixels.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
    # Pillow would write what it keeps here, such as a colour profile, into the file.
    pixels.info.clear()
    return pixels, found


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return the image as RGB, or RGBA where it has transparency, in sRGB; a profile that does not fit is ignored."""
    pixels = image.convert("RGBA" if image.has_transparency_data else "RGB")
    if not profile:
        return pixels
    for mode in {"CMYK": ("CMYK",), "1": ("L", "RGB"), "L": ("L", "RGB"), "LA": ("L", "RGB")}.get(image.mode, ("RGB",)):
        try:
            converted = ImageCms.profileToProfile(
                image.convert(mode), io.BytesIO(profile), ImageCms.createProfile("sRGB"), outputMode="RGB"
            )
        except ImageCms.PyCMSError:
            continue
        if converted is not None:
            if pixels.mode == "RGBA":
                converted.putalpha(pixels.getchannel("A"))
            return converted
    return pixels


def _thumbnail(picture: bytes) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    with Image.open(io.BytesIO(picture)) as image:
        small = image.convert("RGB").resize(_THUMBNAIL, Image.Resampling.BOX)
    red, green, blue = (np.asarray(band, dtype=np.float64) / 255 for band in small.split())
    # Opponent colours: lightness, red-green and yellow-blue, roughly as far apart as they look.
    opponents = np.stack([(red + green + blue) / 3, (red - green) / 2, (red + green) / 4 - blue / 2])
    return np.asarray(opponents.ravel(), dtype=np.float64)
