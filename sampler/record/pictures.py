"""The stored pictures of an export, read as pictures of strangers are: bounded, decoded, and encoded again.

Nothing of an archive is ever unpacked into a folder, and no name in it becomes the name of a file.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from sampler.objects.archives import Archive
from sampler.objects.images.reading import picture_as_png
from sampler.objects.tables import CatalogError
from sampler.record.replay import RecordError

FOLDER = "pictures/"
EXPORT_AGAIN = "export the campaign again with this version of prefmh"
_NAME = re.compile(r"pictures/(?:(?:0|[1-9][0-9]{0,9})\.(?:png|webp)|[0-9a-f]{64}\.png)")


class RecordPictures:
    """The pictures of one export.

    Args:
        name: of its file, for messages.

    Raises:
        RecordError: an entry is named as no export names one, or twice.
    """

    def __init__(self, name: str, archive: Archive) -> None:
        self._name, self._archive = name, archive
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for entry in archive.entries:
            # As it stands in the archive: zipfile cuts the other one at a NUL.
            named = entry.orig_filename
            if _leads_away(named) or (named.startswith(FOLDER) and not _NAME.fullmatch(named)):
                raise self._error(f"it has a file {named[:100]!r}, which no export has; {EXPORT_AGAIN}")
            if not named.startswith(FOLDER):
                continue
            if named in self._entries:
                raise self._error(f"it has {named} twice; {EXPORT_AGAIN}")
            self._entries[named] = entry

    def png(self, state: str, content: str, row: int) -> bytes:
        """Return the picture of an object, at most 1024 pixels on a side, as PNG.

        Args:
            state: its number.
            content: of the object; of given pairs, the name of its picture.
            row: of states.csv, for messages.

        Raises:
            RecordError: there is none, or it is not what it is named after.
        """
        if not self._entries:
            raise self._error(
                f"it holds no pictures, as exports of earlier versions do not; {EXPORT_AGAIN}, where it was made"
            )
        names = (f"{FOLDER}{state}.png", f"{FOLDER}{state}.webp", f"{FOLDER}{content}")
        entry = next((self._entries[name] for name in names if name in self._entries), None)
        if entry is None:
            raise self._error(f"the picture of state {state} (row {row} of states.csv) is missing; {EXPORT_AGAIN}")
        try:
            return picture_as_png(self._archive.extract(entry), entry.filename.rpartition(".")[2].upper())
        except ValueError as problem:
            told = f"{entry.filename}, of row {row} of states.csv, cannot be used: {problem}"
            raise self._error(f"{told}; {EXPORT_AGAIN}") from problem

    def _error(self, problem: str) -> RecordError:
        return RecordError(f"{self._name}: {problem}")


@contextmanager
def record_pictures(path: Path) -> Iterator[RecordPictures]:
    """Open an export for its pictures.

    Raises:
        RecordError: it is no ZIP archive, or names a file as no export does.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        try:
            archive = Archive(file)
        except CatalogError as error:
            raise RecordError(f"{path.name} cannot be read: {error}") from error
        yield RecordPictures(path.name, archive)


def _leads_away(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or "\\" in name or "\0" in name
