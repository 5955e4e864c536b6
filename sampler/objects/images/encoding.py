"""Pictures as files: a lossless original, and small previews for pages."""

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


def _image(pixels: npt.NDArray[np.uint8]) -> Image.Image:
    if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8:
        raise ValueError(f"pixels must be uint8 of shape (height, width, 3), not {pixels.dtype} {pixels.shape}")
    return Image.fromarray(pixels)
