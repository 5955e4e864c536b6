"""A ZIP of files, each an object, with a `weights.csv` (columns file, weight, and others) inside if wanted.

`weights.csv` may stand in a folder, as it does where a whole folder was zipped; its names are then those of the files
beside it, or full names.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Mapping

from sampler.objects.archives import Archive
from sampler.objects.characters import demand_storable, quoted
from sampler.objects.items import MAX_ITEMS, Collector, Item, Progress, Reading, parse_weight
from sampler.objects.tables import CatalogError, TableRow, table_rows

MAX_NAME_CHARACTERS = 1_000
_WEIGHTS = "weights.csv"

Encode = Callable[[bytes], tuple[bytes, str]]
"""Turns a stranger's file into one of our own making and its media type, or raises ValueError with the reason."""


def read_folder(archive: Archive, noun: str, encode: Encode, progress: Progress, collector: Collector) -> Reading:
    """Read every file of an archive as an object, which is named by its name in the archive.

    Args:
        noun: what one of the files is called in messages.

    Raises:
        CatalogError: the archive gives no catalog.
    """
    entries = [entry for entry in archive.entries if not _is_clutter(entry)]
    tables = [entry for entry in entries if entry.filename.split("/")[-1] == _WEIGHTS]
    if len(tables) > 1:
        found = ", ".join(entry.filename[:100] for entry in tables[:3])
        raise CatalogError(f"The archive may have one {_WEIGHTS}; it has {len(tables)}: {found}.")
    files = [entry for entry in entries if entry not in tables]
    if len(files) > MAX_ITEMS:
        raise CatalogError(f"The archive has more than {MAX_ITEMS:,} files. Split it.")
    names = {entry.filename for entry in files}
    rows = _read_weights(archive, tables[0], names, noun, collector) if tables else None
    for done, entry in enumerate(files, start=1):
        try:
            _demand_name(entry)
            weight, extra = _said_of(rows, entry.filename)
            data, media_type = encode(archive.extract(entry))
        except ValueError as problem:
            collector.refuse(entry.orig_filename[:MAX_NAME_CHARACTERS], str(problem))
        else:
            collector.add(Item(entry.filename, entry.filename, weight, collector.keep(data), media_type, extra))
        progress(done, len(files))
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
    """Return the weight and the extra cells of a file."""
    if rows is None:
        return parse_weight(None), {}
    if name not in rows:
        raise ValueError(f"{_WEIGHTS} does not name it")
    return parse_weight(rows[name].weight), rows[name].extra


def _read_weights(
    archive: Archive, table: zipfile.ZipInfo, files: set[str], noun: str, collector: Collector
) -> dict[str, TableRow]:
    """Return the rows by full name in the archive; refuse a row that names none of the files."""

    def refuse(row: str, reason: str) -> None:
        collector.refuse(f"{table.filename[:100]}, {row}", reason)

    try:
        data = archive.extract(table)
    except ValueError as problem:
        raise CatalogError(f"{table.filename[:100]} cannot be read: {problem}.") from problem
    folder = table.filename.removesuffix(_WEIGHTS)
    rows = {}
    for row in table_rows(io.BytesIO(data), "file", refuse):
        full_name = folder + row.cell if folder + row.cell in files else row.cell
        if full_name in files:
            rows[full_name] = row
        else:
            refuse(f"row {row.number}", f"the archive has no {noun} {quoted(row.cell)}")
    return rows
