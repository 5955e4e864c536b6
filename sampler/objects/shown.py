"""An object as a model judge is shown it: its picture in the size and format that the judge's config says."""

from __future__ import annotations

import io
from dataclasses import replace

from PIL import Image

from sampler.judges.prompts import Exhibit, Picture
from sampler.judges.vision import Vision
from sampler.objects.images.encoding import on_white

_QUALITY = 90


def shown_as(exhibit: Exhibit, vision: Vision | None) -> Exhibit:
    """Return an object as a model gets it.

    Args:
        exhibit: its words, its picture, or both, as they are stored or drawn.
        vision: how the model is shown pictures; as they are if None.

    Raises:
        ValueError: its picture cannot be read.
    """
    if exhibit.picture is None or vision is None:
        return exhibit
    if exhibit.text and vision.molecules == "smiles":
        return replace(exhibit, picture=None)
    picture = replace(_encoded(exhibit.picture, vision), detail=vision.detail or "")
    return replace(exhibit, text="" if vision.molecules == "picture" else exhibit.text, picture=picture)


def size_of(picture: Picture) -> tuple[int, int]:
    """Return width and height in pixels.

    Raises:
        ValueError: it cannot be read.
    """
    return _opened(picture).size


def _encoded(picture: Picture, vision: Vision) -> Picture:
    """Return the picture in the wanted size and format; the same bytes for the same file."""
    if not vision.changes_files:
        return picture
    image = _opened(picture)
    stored_as = (image.format or "").lower()
    is_small = vision.edge is None or max(image.size) <= vision.edge
    wanted = vision.format or ("jpeg" if stored_as == "jpeg" else "png")
    if is_small and wanted == stored_as and vision.quality is None:
        return picture
    image = on_white(image)
    # With a palette, colours between two entries would be lost.
    image = image if image.mode in ("RGB", "L") else image.convert("RGB")
    if vision.edge is not None and not is_small:
        image.thumbnail((vision.edge, vision.edge), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    if wanted == "jpeg":
        image.save(out, "JPEG", quality=vision.quality or _QUALITY)
    else:
        image.save(out, "PNG")
    return Picture(f"image/{wanted}", out.getvalue())


def _opened(picture: Picture) -> Image.Image:
    try:
        image = Image.open(io.BytesIO(picture.data))
        image.load()
    except (OSError, SyntaxError, Image.DecompressionBombError) as error:
        raise ValueError(f"the picture cannot be read: {error}") from error
    return image
