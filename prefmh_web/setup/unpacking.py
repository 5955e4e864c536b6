"""ZIPs that strangers send: looked at before anything is unpacked."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from pathlib import PurePosixPath
from typing import BinaryIO, Final

from prefmh_web.setup.problems import SetupError, refused

BROKEN: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)
"""What zipfile raises for an archive that is damaged or encrypted."""
_MOST_MEMBERS = 1000
_MAX_DIRECTORY_BYTES = 2**20
# Of other packings, zipfile unpacks all that it has read at once: a kilobyte fills a memory.
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


class _Bounded(io.BufferedIOBase):
    """An archive's file that gives no more at a time than a list of members may be long: zipfile reads that at once."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > _MAX_DIRECTORY_BYTES:
            raise _too_many()
        return self._file.read(_MAX_DIRECTORY_BYTES if size is None or size < 0 else size)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


def archive_in(file: BinaryIO) -> zipfile.ZipFile:
    """Return the archive that a file is. Its members are only listed: the size that it states of one may be a lie.

    Raises:
        SetupError: it has too many members, or one that a setup has no use for.
        BROKEN: it is no archive.
    """
    archive = zipfile.ZipFile(_Bounded(file))
    members = archive.infolist()
    if len(members) > _MOST_MEMBERS:
        raise _too_many()
    seen = set()
    for member in members:
        shown = member.filename[:60]
        if "\\" in member.orig_filename or not _is_inside(PurePosixPath(member.filename)):
            raise refused(f"The ZIP names “{shown}”, which lies outside of it. Pack it again without that.")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise refused(f"“{shown}” in the ZIP is a link to another file. Pack that file itself.")
        if member.filename in seen:
            raise refused(f"“{shown}” is in the ZIP twice. Remove one of the two.")
        if member.compress_type not in _PACKINGS:
            raise refused(f"“{shown}” is packed in a way that is not read here. Pack it again with Deflate.")
        seen.add(member.filename)
    return archive


def _is_inside(path: PurePosixPath) -> bool:
    return not path.is_absolute() and ".." not in path.parts and ":" not in path.parts[0] if path.parts else False


def _too_many() -> SetupError:
    return refused(
        f"The ZIP has more than {_MOST_MEMBERS} files, or very long names. It holds campaign.yaml and one more."
    )
