"""A ZIP of files, each an object, with a table inside if wanted: a .csv file with columns file, weight, and others.

No list of files and no entry takes more memory than is said here, whatever it claims.

The table may stand in a folder, as it does where a whole folder was zipped; its names are then those of the files
beside it, or full names. A name that is not found as it stands is looked for in any normal form of its characters, in
capital letters or small ones, and with or without `./` before it.
"""

from __future__ import annotations

import io
import struct
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import BinaryIO, NamedTuple, cast

from sampler.archives import BROKEN_ARCHIVE, PACKINGS, Allowance, BoundedFile, TooLargeError, pieces_of
from sampler.objects.items import MAX_CATALOG_ITEMS, Collector, Item, Progress, Reading, parse_weight
from sampler.objects.tables import CatalogError, TableRow, demand_storable, quoted, table_rows

MAX_FILE_BYTES = 20 * 2**20
# Of the list of its files at an archive's end: room for 20,000 with long names, and as many that are clutter.
MAX_DIRECTORY_BYTES = 16 * 2**20


def _too_long() -> CatalogError:
    return CatalogError(
        f"The archive's list of files takes more than {MAX_DIRECTORY_BYTES // 2**20} MiB. "
        "Split the archive, or shorten the names of its files."
    )


def archive_of(file: BinaryIO) -> zipfile.ZipFile:
    """Return the ZIP archive that a file is.

    Raises:
        CatalogError: the file is none, or its list of files is longer than anybody needs.
    """
    try:
        return zipfile.ZipFile(cast(BinaryIO, BoundedFile(file, MAX_DIRECTORY_BYTES, _too_long)))
    except CatalogError:
        raise
    except UnicodeDecodeError as error:
        raise CatalogError(
            f"The archive names a file in a way that cannot be read: {bytes(error.object)[:60]!r}. "
            "Rename it, and pack the files again."
        ) from error
    except (*BROKEN_ARCHIVE, OverflowError, struct.error) as error:
        raise CatalogError("The file is not a ZIP archive. Put your files in one and upload that.") from error


def extract(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """Return an entry's content.

    Raises:
        ValueError: it is damaged, encrypted, packed otherwise than by Deflate, or larger than a file may be.
    """
    if entry.compress_type not in PACKINGS:
        raise ValueError("the file is packed in a way that is not read here; pack the archive again with Deflate")
    try:
        # The size that an archive states may be a lie: what comes is counted.
        return b"".join(pieces_of(archive, entry, Allowance(MAX_FILE_BYTES)))
    except TooLargeError as error:
        raise ValueError(f"the file is larger than {MAX_FILE_BYTES // 2**20} MiB") from error
    except (*BROKEN_ARCHIVE, OverflowError, struct.error) as error:
        raise ValueError(f"the archive's entry cannot be unpacked: {error}") from error


MAX_NAME_CHARACTERS = 1_000
_TABLE = ".csv"


class Encoded(NamedTuple):
    """A file of our own making and its media type; what is the same of all files that look or sound alike; and what of
    the stranger's file is not in it, if that should be said.
    """

    data: bytes
    media_type: str
    alike: str
    left_out: str = ""


Encode = Callable[[bytes], Encoded]
"""Turns a stranger's file into one of our own making, or raises ValueError with the reason."""


class FileKind:
    """A kind of object of which each is a file, in a ZIP."""

    noun: str
    """What one of the files is called in messages."""
    encode: Encode

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read every file of a ZIP archive as an object, which is named by its name in the archive.

        Raises:
            CatalogError: the archive gives no catalog.
        """
        return _read_folder(file, self.noun, self.encode, progress, Collector(pictures))

    def written(self, text: str) -> str:
        """Refuse: it is pixels or samples.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"a {self.noun} cannot be written down")


def _read_folder(file: BinaryIO, noun: str, encode: Encode, progress: Progress, collector: Collector) -> Reading:
    archive = archive_of(file)
    entries = [entry for entry in archive.infolist() if not _is_clutter(entry)]
    tables = [entry for entry in entries if entry.filename.lower().endswith(_TABLE)]
    if len(tables) > 1:
        found = ", ".join(entry.filename[:100] for entry in tables[:3])
        raise CatalogError(
            f"The archive may have one table, a {_TABLE} file with the column “file”; it has {len(tables)}: {found}."
        )
    files = [entry for entry in entries if entry not in tables]
    if len(files) > MAX_CATALOG_ITEMS:
        raise CatalogError(f"The archive has more than {MAX_CATALOG_ITEMS:,} files. Split it.")
    names = _Names(entry.filename for entry in files)
    rows = _read_table(archive, tables[0], names, noun, collector) if tables else None
    for done, entry in enumerate(files, start=1):
        try:
            _demand_name(entry)
            weight, extra = _said_of(rows, entry.filename)
            made = encode(extract(archive, entry))
        except ValueError as problem:
            collector.refuse(entry.orig_filename[:MAX_NAME_CHARACTERS], str(problem))
        else:
            name, kept = entry.filename, collector.keep(made.data)
            collector.add(Item(name, name, weight, kept, made.media_type, extra, made.alike))
            if made.left_out:
                collector.refuse(name, made.left_out)
        progress(done, len(files))
    return collector.reading()


class _Names:
    """The names of an archive's files, found as a table writes them."""

    def __init__(self, names: Iterable[str]) -> None:
        self._exact = set(names)
        self._plain: dict[str, list[str]] = {}
        for name in self._exact:
            self._plain.setdefault(_plain(name), []).append(name)

    def find(self, folder: str, cell: str) -> list[str]:
        """Return the names that a cell of a table in a folder may mean."""
        wanted = (folder + cell, cell)
        exact = [name for name in wanted if name in self._exact]
        return exact[:1] or next((self._plain[_plain(name)] for name in wanted if _plain(name) in self._plain), [])


def _plain(name: str) -> str:
    parts = unicodedata.normalize("NFC", name).replace("\\", "/").split("/")
    # Folding may part what was one character.
    return unicodedata.normalize("NFC", "/".join(part for part in parts if part not in ("", ".")).casefold())


def _is_clutter(entry: zipfile.ZipInfo) -> bool:
    parts = entry.filename.split("/")
    return not entry.filename or entry.is_dir() or parts[0] == "__MACOSX" or parts[-1].startswith(".")


def _demand_name(entry: zipfile.ZipInfo) -> None:
    # The name as it stands in the archive: zipfile cuts the other one at a NUL.
    demand_storable(entry.orig_filename, "the file's name")
    if len(entry.filename) > MAX_NAME_CHARACTERS:
        raise ValueError(f"the file's name has more than {MAX_NAME_CHARACTERS:,} characters; shorten it")


def _said_of(rows: Mapping[str, TableRow] | None, name: str) -> tuple[float, Mapping[str, str]]:
    """Return the weight and the extra cells of a file."""
    if rows is None:
        return parse_weight(None), {}
    if name not in rows:
        raise ValueError("the table in the archive does not name it")
    return parse_weight(rows[name].weight), rows[name].extra


def _read_table(
    archive: zipfile.ZipFile, table: zipfile.ZipInfo, names: _Names, noun: str, collector: Collector
) -> dict[str, TableRow]:
    """Return the rows by full name in the archive; refuse a row that names none of the files, or one once more."""

    def refuse(row: str, reason: str) -> None:
        collector.refuse(f"{table.filename[:100]}, {row}", reason)

    try:
        data = extract(archive, table)
    except ValueError as problem:
        raise CatalogError(f"{table.filename[:100]} cannot be read: {problem}.") from problem
    folder = table.filename[: table.filename.rfind("/") + 1]
    rows: dict[str, TableRow] = {}
    for row in table_rows(io.BytesIO(data), "file", refuse):
        cell = row.cell.strip()
        found = names.find(folder, cell)
        if not found:
            refuse(f"row {row.number}", f"the archive has no {noun} {quoted(cell)}")
        elif len(found) > 1:
            refuse(f"row {row.number}", f"{quoted(cell)} may be {len(found)} files; write it as in the archive")
        elif first := rows.get(found[0]):
            refuse(f"row {row.number}", f"row {first.number} has named {quoted(cell)}; what that says was taken")
        else:
            rows[found[0]] = row
    return rows
