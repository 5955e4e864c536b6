"""Files as a researcher would send them, built in memory, and how they are read."""

from __future__ import annotations

import csv
import io
import struct
import zipfile
import zlib
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import soundfile
from PIL import Image

from sampler import (
    OBJECT_KINDS,
    Reading,
)


def read(kind: str, data: bytes) -> Reading:
    """Read an upload of this kind of object, ignoring its progress."""
    return OBJECT_KINDS[kind].read(io.BytesIO(data), lambda done, total: None)


def spreadsheet(rows: Iterable[Sequence[object]], delimiter: str = ",") -> bytes:
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


def refused(kind: str, good: Mapping[str, bytes], name: str, content: bytes) -> str:
    """Return why one file of an archive is refused; the good ones beside it must be kept."""
    reading = read(kind, archive({**good, name: content}))
    assert [item.content for item in reading.items] == [*good]
    (refusal,) = reading.refusals
    assert refusal.source == name
    return refusal.reason


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
    at, spreadsheet, content = 128 + 4 + 12 * len(tags), struct.pack(">I", len(tags)), b""
    for name, tag in tags.items():
        spreadsheet += name + struct.pack(">II", at + len(content), len(tag))
        content += tag
    header = struct.pack(">I4xI", at + len(content), 0x02100000) + b"mntrGRAYXYZ " + bytes(12) + b"acsp"
    return header.ljust(68, b"\0") + white[8:].ljust(60, b"\0") + spreadsheet + content


def png(**chunks: bytes) -> bytes:
    """Return a PNG of these chunks and its end, checksums right."""
    written = b"\x89PNG\r\n\x1a\n"
    for name, content in (chunks | {"IEND": b""}).items():
        named = name.encode() + content
        written += struct.pack(">I", len(content)) + named + struct.pack(">I", zlib.crc32(named))
    return written


def png_that_claims(width: int, height: int, pixels: int = 100) -> bytes:
    """Return a PNG whose header announces this size, with as many bytes of black behind the tightest compression."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return png(IHDR=header, IDAT=zlib.compress(bytes(pixels), 9))


def tone(
    hertz: float = 440.0, seconds: float = 0.5, rate: int = 16_000, channels: int = 1, loudness: float = 0.5
) -> np.ndarray:
    """Return the samples of a tone, shape (frames, channels)."""
    time = np.arange(round(seconds * rate)) / rate
    return np.tile((loudness * np.sin(2 * np.pi * hertz * time))[:, None], channels)


def recorded(samples: np.ndarray, rate: int = 16_000, kind: str = "WAV", subtype: str | None = None) -> bytes:
    """Return samples as the bytes of a file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return file.getvalue()


def recording(hertz: float = 440.0, kind: str = "WAV", subtype: str | None = None, **of_tone: float) -> bytes:
    """Return a tone as the bytes of a file."""
    samples = tone(hertz, **of_tone)
    return recorded(samples, int(of_tone.get("rate", 16_000)), kind, subtype)
