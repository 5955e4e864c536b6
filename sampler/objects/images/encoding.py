"""Pictures as files: a lossless original, and small previews for pages; and the white that clear pictures stand on."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np
import numpy.typing as npt
from PIL import Image

_PREVIEW_QUALITY = 85


def png(pixels: npt.NDArray[np.uint8]) -> bytes:
    """Return the lossless original as PNG.

    Args:
        pixels: sRGB, shape (height, width, 3).

    Raises:
        ValueError: the pixels have another shape or type.
    """
    encoded = io.BytesIO()
    _image(pixels).save(encoded, "PNG")
    return encoded.getvalue()


def preview(pixels: npt.NDArray[np.uint8], side: int, format: Literal["webp", "png"] = "webp") -> bytes:
    """Return the picture with its longer side at most `side` pixels; smaller ones are not enlarged.

    Args:
        pixels: sRGB, shape (height, width, 3).
        side: at least 1.
        format: "webp" (lossy, a fraction of the bytes) or "png".

    Raises:
        ValueError: the pixels have another shape or type, or `side` or `format` is none of these.
    """
    if side < 1:
        raise ValueError(f"side must be at least 1 pixel, not {side}")
    if format not in ("webp", "png"):
        raise ValueError(f"format must be 'webp' or 'png', not {format!r}")
    image = _image(pixels)
    image.thumbnail((side, side), Image.Resampling.LANCZOS)
    encoded = io.BytesIO()
    if format == "webp":
        image.save(encoded, "WEBP", quality=_PREVIEW_QUALITY)
    else:
        image.save(encoded, "PNG")
    return encoded.getvalue()


def on_white(image: Image.Image) -> Image.Image:
    """Return a picture as it looks on white, mixed in its own colours, without transparency and with eight bits a band.

    Raises:
        ValueError: nothing of it is seen on white.
    """
    clear = image.info.get("transparency")
    if image.mode.startswith("I;16"):
        image = _with_eight_bits(image, clear)
    elif isinstance(clear, tuple) and max(clear) > 255:
        # Pillow reads 16-bit colours in eight bits, and leaves the one that is clear as it was.
        image.info["transparency"] = tuple(band >> 8 for band in clear)
    if not image.has_transparency_data:
        return image
    mode = "L" if image.mode in ("1", "L", "LA", "La") else "RGB"
    image = image.convert(f"{mode}A")
    opacity = image.getchannel("A")
    seen = Image.new(mode, image.size, "white")
    seen.paste(image.convert(mode), mask=opacity)
    if _is_one_colour(seen) and (opacity.getextrema() == (0, 0) or not _is_one_colour(image)):
        raise ValueError("the image is transparent and one colour on white; put what it shows on a ground of its own")
    return seen


def _with_eight_bits(image: Image.Image, clear: int | None) -> Image.Image:
    """Return a picture of 16-bit greys in eight; Pillow would clip them at 255 and leave a white picture."""
    greys = np.asarray(image)
    eight = Image.fromarray((greys >> 8).astype(np.uint8))
    if clear is not None:
        eight.putalpha(Image.fromarray(np.where(greys == clear, 0, 255).astype(np.uint8)))
    return eight


def _is_one_colour(image: Image.Image) -> bool:
    return all(low == high for low, high in (band.getextrema() for band in image.split()))


def _image(pixels: npt.NDArray[np.uint8]) -> Image.Image:
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"pixels must be uint8 of shape (height, width, 3), not {pixels.dtype} {pixels.shape}")
    return Image.fromarray(pixels)
