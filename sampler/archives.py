"""ZIPs that strangers send: looked at before anything is unpacked; their lists and what they unpack to are bounded."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Final, cast


class BoundedFile:
    """A file for zipfile, which reads the whole list of members at once, as long as the archive claims it to be.

    Args:
        file: the archive.
        most: bytes that may be asked for at a time.
        refusal: makes the error for more.
    """

    def __init__(self, file: BinaryIO, most: int, refusal: Callable[[], Exception]) -> None:
        self._file, self._most, self._refusal = file, most, refusal

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > self._most:
            raise self._refusal()
        return self._file.read(min(self._most, self._left()) if size is None or size < 0 else size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def _left(self) -> int:
        # Python makes room for all that is asked for, however little there is.
        here = self._file.tell()
        end = self._file.seek(0, io.SEEK_END)
        self._file.seek(here)
        return end - here


BROKEN_ARCHIVE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    OSError,
)
"""What zipfile raises for an archive that is damaged or encrypted."""
# Of other packings, zipfile unpacks all that it has read at once: a kilobyte fills a memory.
PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_PIECE = 2**16
_SHOWN = 60


class ArchiveError(ValueError):
    """An archive that is not read; the message says why, and what would be."""


class TooLargeError(ArchiveError):
    """An archive that unpacks to more than is allowed."""


def _too_long() -> TooLargeError:
    return TooLargeError("The ZIP has a list of files that is too long.")


def archive_in(file: BinaryIO, max_members: int, max_listing: int) -> zipfile.ZipFile:
    """Return the archive that a file is. Its members are only listed: the size that it states of one may be a lie.

    Args:
        max_members: how many there may be.
        max_listing: how many bytes the list of them may take.

    Raises:
        ArchiveError: it has too many members, two of one name, or one that lies outside, is a link, or is packed in a
            way that cannot be unpacked piece by piece.
        BROKEN_ARCHIVE: it is no archive.
    """
    archive = zipfile.ZipFile(cast(BinaryIO, BoundedFile(file, max_listing, _too_long)))
    members = archive.infolist()
    if len(members) > max_members:
        raise TooLargeError(f"The ZIP has more than {max_members} files.")
    seen = set()
    for member in members:
        shown = member.filename[:_SHOWN]
        if "\\" in member.orig_filename or not _is_inside(PurePosixPath(member.filename)):
            raise ArchiveError(f"The ZIP names “{shown}”, which lies outside of it. Pack it again without that.")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise ArchiveError(f"“{shown}” in the ZIP is a link to another file. Pack that file itself.")
        if member.filename in seen:
            raise ArchiveError(f"“{shown}” is in the ZIP twice. Remove one of the two.")
        if member.compress_type not in PACKINGS:
            raise ArchiveError(f"“{shown}” is packed in a way that is not read here. Pack it again with Deflate.")
        seen.add(member.filename)
    return archive


@dataclass
class Allowance:
    """How much may still be unpacked, or kept, in bytes."""

    left: float

    def take(self, size: float, name: str) -> None:
        """Take some of it for a file.

        Raises:
            TooLargeError: less is left.
        """
        self.left -= size
        if self.left < 0:
            raise TooLargeError(f"The ZIP unpacks to more than is allowed, at “{name[:_SHOWN]}”.")


def pieces_of(archive: zipfile.ZipFile, member: str | zipfile.ZipInfo, allowance: Allowance) -> Iterator[bytes]:
    """Yield a member's bytes, a piece at a time.

    Raises:
        TooLargeError: the allowance does not cover them.
        KeyError: there is no such member.
        BROKEN_ARCHIVE: it cannot be unpacked.
    """
    with archive.open(member) as file:
        while piece := file.read(_PIECE):
            allowance.take(len(piece), file.name or "")
            yield piece


@contextmanager
def told_apart() -> Iterator[None]:
    """Turn what zipfile raises for a damaged archive into an ArchiveError."""
    try:
        yield
    except ArchiveError:
        raise
    except BROKEN_ARCHIVE as error:
        raise ArchiveError(f"The ZIP is damaged or encrypted: {error}") from error


def _is_inside(path: PurePosixPath) -> bool:
    return not path.is_absolute() and ".." not in path.parts and ":" not in path.parts[0] if path.parts else False
