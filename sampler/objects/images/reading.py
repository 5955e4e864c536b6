"""Images: a ZIP of picture files, with a `weights.csv` (columns file, weight, and others) inside if wanted.

Every picture is decoded and encoded again, in sRGB and on white, so nothing but pixels reaches a voter's browser, and
everybody sees the same: pages may be dark, and each model's server has a ground of its own.
"""

from __future__ import annotations

import hashlib
import io
import re
import struct
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageCms, UnidentifiedImageError

from sampler.objects.archives import Archive
from sampler.objects.folders import Encoded, read_folder
from sampler.objects.images.encoding import on_white
from sampler.objects.items import Collector, Item, Progress, Reading
from sampler.objects.nearness import nearest_by_distance

MAX_PIXELS = 25_000_000
# Of a JPEG that is decoded at a fraction of its size. One that is saved progressively needs all of it at once.
MAX_JPEG_PIXELS = 89_000_000
MAX_SIDE = 1024
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
_OTHER_FORMATS = re.compile(rb".{4}ftyp(?:hei|hev|mif1|msf1|avi)|II\*\0|MM\0\*", re.DOTALL)
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

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read a ZIP of pictures. Larger sides than 1024 pixels are scaled down; metadata is dropped; what is clear
        becomes white.
        """
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


def _encode(data: bytes) -> Encoded:
    """Decode a picture and encode its pixels again as PNG, or as WebP where the original was lossy already."""
    pixels, found, is_animated = _decoded(data)
    lossy = found in _LOSSY
    encoded = io.BytesIO()
    pixels.save(encoded, "WEBP" if lossy else "PNG", **({"quality": 90} if lossy else {}))
    alike = hashlib.sha256(f"{pixels.size}".encode() + pixels.tobytes()).hexdigest()
    left_out = "is animated; only its first frame is shown" if is_animated else ""
    return Encoded(encoded.getvalue(), "image/webp" if lossy else "image/png", alike, left_out)


def _decoded(data: bytes) -> tuple[Image.Image, str, bool]:
    """Return a picture upright, in sRGB, on white, small enough and without metadata; the format that it came in; and
    whether it has more frames.
    """
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as original:
            found, is_animated = original.format or "", getattr(original, "is_animated", False)
            _demand_pixels(original)
            # Not ImageOps.exif_transpose: it writes all EXIF data anew and fails on what cameras get wrong there.
            turn = _TURN_UPRIGHT.get(original.getexif().get(ExifTags.Base.Orientation, 1))
            upright = original if turn is None else original.transpose(turn)
            pixels = _in_srgb(on_white(upright), original.info.get("icc_profile"))
    except UnidentifiedImageError as error:
        if _OTHER_FORMATS.match(data):
            raise ValueError("HEIC, AVIF and TIFF are not accepted; save the image as JPEG or PNG") from error
        raise ValueError(f"not an image; accepted are {', '.join(FORMATS)}") from error
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise ValueError(f"the image has far too many pixels: {error}") from error
    except (OSError, SyntaxError, EOFError, struct.error) as error:
        raise ValueError(f"the image is broken: {error}") from error
    pixels.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
    # Pillow would write what it keeps here, such as a colour profile, into the file.
    pixels.info.clear()
    return pixels, found, is_animated and found != "MPO"


def _demand_pixels(original: Image.Image) -> None:
    """Demand that a picture can be decoded in little memory; of a large JPEG, a fraction of it will be."""
    is_photograph = original.format in ("JPEG", "MPO") and not original.info.get("progressive")
    most = MAX_JPEG_PIXELS if is_photograph else MAX_PIXELS
    if original.width * original.height > most:
        raise ValueError(
            f"the image has {original.width} × {original.height} pixels; at most {most // 10**6} million are allowed. "
            "Make it smaller"
        )
    if original.width * original.height > MAX_PIXELS:
        original.draft(original.mode, (2 * MAX_SIDE, 2 * MAX_SIDE))


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """Return an image without transparency as RGB, in sRGB; a profile that does not fit is ignored."""
    if profile:
        for mode in {"CMYK": ("CMYK",), "1": ("L", "RGB"), "L": ("L", "RGB")}.get(image.mode, ("RGB",)):
            try:
                converted = ImageCms.profileToProfile(
                    image.convert(mode), io.BytesIO(profile), ImageCms.createProfile("sRGB"), outputMode="RGB"
                )
            except ImageCms.PyCMSError:
                continue
            if converted is not None:
                return converted
    return image.convert("RGB")


def _thumbnail(picture: bytes) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    with Image.open(io.BytesIO(picture)) as image:
        small = image.convert("RGB").resize(_THUMBNAIL, Image.Resampling.BOX)
    red, green, blue = (np.asarray(band, dtype=np.float64) / 255 for band in small.split())
    # Opponent colours: lightness, red-green and yellow-blue, roughly as far apart as they look.
    opponents = np.stack([(red + green + blue) / 3, (red - green) / 2, (red + green) / 4 - blue / 2])
    return np.asarray(opponents.ravel(), dtype=np.float64)
