"""Images: a ZIP of picture files, with a `weights.csv` (columns file, weight, and others) inside if wanted.

Every picture is decoded and encoded again, in sRGB, so nothing but pixels reaches a voter's browser.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Mapping, Sequence
from typing import BinaryIO

import numpy as np
from PIL import ExifTags, Image, ImageCms, UnidentifiedImageError

from sampler.objects.archives import Archive
from sampler.objects.characters import demand_storable, quoted
from sampler.objects.items import (
    MAX_ITEMS,
    Collector,
    Item,
    Progress,
    Reading,
    parse_weight,
)
from sampler.objects.nearness import nearest_by_distance
from sampler.objects.tables import CatalogError, TableRow, table_rows

MAX_PIXELS = 25_000_000
MAX_SIDE = 1024
MAX_NAME_CHARACTERS = 1_000
FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "BMP")
# Many phones save photographs as MPO, which is JPEG with a second picture behind the first.
_LOSSY = ("JPEG", "MPO", "WEBP")
_WEIGHTS = "weights.csv"
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
        """Read a ZIP of pictures. Larger sides than 1024 pixels are scaled down; metadata is dropped.

        `weights.csv` may stand in a folder, as it does where a whole folder was zipped; its names are then those of
        the files beside it, or full names.
        """
        return _read_archive(Archive(file), progress, Collector(pictures))

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


def _read_archive(archive: Archive, progress: Progress, collector: Collector) -> Reading:
    entries = [entry for entry in archive.entries if not _is_clutter(entry)]
    tables = [entry for entry in entries if entry.filename.split("/")[-1] == _WEIGHTS]
    if len(tables) > 1:
        found = ", ".join(entry.filename[:100] for entry in tables[:3])
        raise CatalogError(f"The archive may have one {_WEIGHTS}; it has {len(tables)}: {found}.")
    pictures = [entry for entry in entries if entry not in tables]
    if len(pictures) > MAX_ITEMS:
        raise CatalogError(f"The archive has more than {MAX_ITEMS:,} files. Split it.")
    names = {entry.filename for entry in pictures}
    rows = _read_weights(archive, tables[0], names, collector) if tables else None
    for done, entry in enumerate(pictures, start=1):
        try:
            _demand_name(entry)
            weight, extra = _said_of(rows, entry.filename)
            picture, media_type = _encode(archive.extract(entry))
        except ValueError as problem:
            collector.refuse(entry.orig_filename[:MAX_NAME_CHARACTERS], str(problem))
        else:
            collector.add(Item(entry.filename, entry.filename, weight, collector.keep(picture), media_type, extra))
        progress(done, len(pictures))
    return collector.reading()


def _is_clutter(entry: zipfile.ZipInfo) -> bool:
    parts = entry.filename.split("/")
    return not entry.filename or entry.is_dir() or parts[0] == "__MACOSX" or parts[-1].startswith(".")


def _demand_name(entry: zipfile.ZipInfo) -> None:
    # The name as it stands in the archive: zipfile cuts the other one at a NUL.
    demand_storable(entry.orig_filename, "the file's name")
    if len(entry.filename) > MAX_NAME_CHARACTERS:
        raise ValueError(f"the file's name has more than {MAX_NAME_CHARACTERS:,} characters; shorten it")


def _said_of(rows: Mapping[str, TableRow] | None, name: str) -> tuple[float, Mapping[str, str]]:
    """Return the weight and the extra cells of a picture."""
    if rows is None:
        return parse_weight(None), {}
    if name not in rows:
        raise ValueError(f"{_WEIGHTS} does not name it")
    return parse_weight(rows[name].weight), rows[name].extra


def _read_weights(
    archive: Archive, table: zipfile.ZipInfo, pictures: set[str], collector: Collector
) -> dict[str, TableRow]:
    """Return the rows by full name in the archive; refuse a row that names none of the pictures."""

    def refuse(row: str, reason: str) -> None:
        collector.refuse(f"{table.filename[:100]}, {row}", reason)

    try:
        data = archive.extract(table)
    except ValueError as problem:
        raise CatalogError(f"{table.filename[:100]} cannot be read: {problem}.") from problem
    folder = table.filename.removesuffix(_WEIGHTS)
    rows = {}
    for row in table_rows(io.BytesIO(data), "file", refuse):
        full_name = folder + row.cell if folder + row.cell in pictures else row.cell
        if full_name in pictures:
            rows[full_name] = row
        else:
            refuse(f"row {row.number}", f"the archive has no picture {quoted(row.cell)}")
    return rows


def picture_as_png(data: bytes, named: str) -> bytes:
    """Return the pixels of a picture as PNG: larger sides than 1024 pixels are scaled down, metadata is dropped.

    Args:
        named: the format that its name says: "PNG" or "WEBP".

    Raises:
        ValueError: it is no picture, one of another format, or one of too many pixels.
    """
    pixels, found = _decoded(data)
    if found != named:
        raise ValueError(f"the image is {found}, and its name says {named}")
    encoded = io.BytesIO()
    pixels.save(encoded, "PNG")
    return encoded.getvalue()


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
