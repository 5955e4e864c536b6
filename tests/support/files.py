"""Uploads as a researcher would send them, built in memory."""

from __future__ import annotations

import csv
import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence

from PIL import Image

from sampler import OBJECT_KINDS, Reading


def read(kind: str, data: bytes) -> Reading:
    """Read an upload of this kind of object, ignoring its progress."""
    return OBJECT_KINDS[kind].read(io.BytesIO(data), lambda done, total: None)


def table(rows: Iterable[Sequence[object]], delimiter: str = ",") -> bytes:
    """Return rows, the header first, as a spreadsheet would save them."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode()


def archive(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP of these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return data.getvalue()


def picture(colour: object = "red", size: tuple[int, int] = (8, 6), kind: str = "PNG", **saving: object) -> bytes:
    """Return an image of one colour."""
    return saved(Image.new("RGB", size, colour), kind, **saving)


def saved(image: Image.Image, kind: str = "PNG", **saving: object) -> bytes:
    """Return the image as a file's bytes."""
    data = io.BytesIO()
    image.save(data, kind, **saving)
    return data.getvalue()


def linear_grey_profile() -> bytes:
    """Return an ICC profile of greys whose numbers are proportional to light."""
    white = b"XYZ " + bytes(4) + struct.pack(">3i", *(round(each * 2**16) for each in (0.9642, 1.0, 0.8249)))
    curve = b"curv" + bytes(8)
    tags = {b"wtpt": white, b"kTRC": curve}
    at, table, content = 128 + 4 + 12 * len(tags), struct.pack(">I", len(tags)), b""
    for name, tag in tags.items():
        table += name + struct.pack(">II", at + len(content), len(tag))
        content += tag
    header = struct.pack(">I4xI", at + len(content), 0x02100000) + b"mntrGRAYXYZ " + bytes(12) + b"acsp"
    return header.ljust(68, b"\0") + white[8:].ljust(60, b"\0") + table + content


def png_that_claims(width: int, height: int) -> bytes:
    """Return a PNG of a hundred bytes whose header announces this size, checksums right."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(100))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
