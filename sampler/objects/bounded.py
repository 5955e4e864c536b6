"""The file of a ZIP from a stranger, read no further at a time than its list of members may be long."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO


class BoundedFile(io.BufferedIOBase):
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

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def _left(self) -> int:
        # Python makes room for all that is asked for, however little there is.
        here = self._file.tell()
        end = self._file.seek(0, io.SEEK_END)
        self._file.seek(here)
        return end - here
