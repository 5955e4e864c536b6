"""What a catalog is read from: items, the rows that could not become one, and which items are nearest each other.

Nearest neighbours are made symmetric: i and j are linked when either is among the other's nearest.

A ZIP of files, each an object, with a table inside if wanted: a .csv file with columns file, weight, and others.

No list of files and no entry takes more memory than is said here, whatever it claims.

The table may stand in a folder, as it does where a whole folder was zipped; its names are then those of the files
beside it, or full names. A name that is not found as it stands is looked for in any normal form of its characters, in
capital letters or small ones, and with or without `./` before it.
"""

from __future__ import annotations

import io
import math
import struct
import unicodedata
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from sampler.archives import BROKEN_ARCHIVE, PACKINGS, Allowance, BoundedFile, TooLargeError, pieces_of
from sampler.objects.tables import CatalogError, TableRow, quoted, require_storable, table_rows, visible
from sampler.spaces.catalog import Catalog

MAX_CATALOG_ITEMS = 20_000
# Of all objects with their extra cells: what a catalog takes of memory while it is read follows from it.
MAX_CATALOG_CHARACTERS = 50_000_000
# Of all pictures or recordings together, as they are kept: on a disk, where the caller has given a file.
MAX_PICTURE_BYTES = 2 * 2**30
# Reasons beyond these are counted and not kept.
MAX_REFUSALS = 1_000
_REASONS_SHOWN = 3

# A reader calls this after each row with the number of rows done and, where it knows it, of rows in all.
Progress = Callable[[int, int | None], None]
Graph = tuple[tuple[int, ...], ...]
"""Of each item the numbers of those that are linked with it."""


@dataclass(frozen=True)
class MediaSlice:
    """A picture or a recording in a file that holds many, one behind the other."""

    file: BinaryIO
    at: int
    size: int

    def read(self) -> bytes:
        """Return the picture or the recording."""
        self.file.seek(self.at)
        return self.file.read(self.size)


@dataclass(frozen=True)
class Item:
    """One object of a catalog.

    Args:
        source: where it stood in the file: "row 3", or a name in the archive.
        content: what identifies it: the text, the canonical SMILES, or the file name of the image or the recording.
        weight: positive; p0 is proportional to it.
        kept: where the image or the recording is, encoded anew; None for kinds that have none.
        media_type: of what is kept.
        extra: the cells of the file's further columns, by their names.
        alike: the same for objects that are shown or heard alike, which are one; the content if empty.
    """

    source: str
    content: str
    weight: float = 1.0
    kept: MediaSlice | None = None
    media_type: str = ""
    extra: Mapping[str, str] = field(default_factory=dict)
    alike: str = ""

    @property
    def picture(self) -> bytes:
        """The image or the recording; empty for kinds that have none."""
        return self.kept.read() if self.kept else b""


@dataclass(frozen=True)
class Refusal:
    """A row or file that was not taken, was joined with an earlier one, or is not shown as a whole, and why."""

    source: str
    reason: str


@dataclass(frozen=True)
class Reading:
    """What one file gave: the items in order, what was refused or joined, and of how much of that no more is kept."""

    items: tuple[Item, ...]
    refusals: tuple[Refusal, ...]
    more_refusals: int = 0

    @property
    def extra_columns(self) -> tuple[str, ...]:
        """The names of the file's further columns, in their order."""
        return tuple(dict.fromkeys(name for item in self.items for name in item.extra))


@dataclass(frozen=True)
class ObjectKind(ABC):
    """A kind of object that catalogs are made of: how to read it from a file and how to compare two of them.

    Args:
        describe: measures one: a text, a SMILES, pixels, or the bytes of a recording.
        main_properties: what to follow of them where nobody has said so, of what is measured.
    """

    name: str
    describe: Callable[[Any], Any]
    main_properties: tuple[str, ...]

    @abstractmethod
    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read a catalog.

        Args:
            file: at its beginning, and seekable.
            pictures: an empty file that is open as long as the reading is used; images and recordings are kept in it.
                In memory without one.

        Raises:
            CatalogError: the file gives no catalog.
        """

    @abstractmethod
    def written(self, text: str) -> str:
        """Return what identifies an object that somebody has written down.

        Raises:
            ValueError: it is none; the message gives the reason.
        """

    @abstractmethod
    def neighbours(self, items: Sequence[Item], count: int) -> Graph:
        """Return the symmetric graph that links each item to its `count` nearest others."""


def parse_weight(cell: str | None) -> float:
    """Return a weight; 1 when the file has no weight column.

    Raises:
        ValueError: empty, or not a positive number; the message says so.
    """
    if cell is None:
        return 1.0
    if not cell.strip():
        raise ValueError("there is no weight")
    try:
        weight = float(cell)
    except ValueError:
        weight = math.nan
    if not (weight > 0 and math.isfinite(weight)):
        raise ValueError(f"the weight {quoted(cell.strip(), 40)} is not a positive number")
    return weight


class Collector:
    """Gathers items, joining those that are shown alike: p0 of an object is the sum of its rows' weights.

    Rows that say different things of one object are refused, as nothing says which of them is right.

    Args:
        pictures: as in `ObjectKind.read`.
    """

    def __init__(self, pictures: BinaryIO | None = None) -> None:
        self._pictures: BinaryIO = pictures or io.BytesIO()
        self._items: dict[str, Item] = {}
        # What is alike of the items of each name; why rows of one name, or alike, were refused for each other.
        self._named: dict[str, str] = {}
        self._disputed: dict[str, str] = {}
        self._refusals: list[Refusal] = []
        self._refused = self._characters = self._picture_bytes = 0

    def keep(self, picture: bytes) -> MediaSlice:
        """Put a picture or a recording with the others.

        Raises:
            CatalogError: there is more in them than may be.
        """
        kept = MediaSlice(self._pictures, self._picture_bytes, len(picture))
        self._picture_bytes += len(picture)
        if self._picture_bytes > MAX_PICTURE_BYTES:
            raise CatalogError(
                f"The files take more than {MAX_PICTURE_BYTES // 2**30} GiB once they are unpacked. Split the file."
            )
        self._pictures.seek(kept.at)
        self._pictures.write(picture)
        return kept

    def add(self, item: Item) -> None:
        """Take an item, or add its weight to the same object's.

        Raises:
            CatalogError: there are more, or longer ones, than a catalog may have.
        """
        alike = item.alike or item.content
        first, named = self._items.get(alike), self._items.get(self._named.get(item.content, ""))
        if disputed := self._disputed.get(alike) or self._disputed.get(item.content):
            self.refuse(item.source, disputed)
        elif first is not None:
            self._join(alike, first, item)
        elif named is not None:
            why = f"the archive has two different files named {quoted(item.content)}; rename one of them"
            self._dispute(item.content, named, item, why)
        else:
            self._take(alike, item)

    def _join(self, alike: str, first: Item, item: Item) -> None:
        if other := next((name for name, cell in item.extra.items() if first.extra.get(name) != cell), None):
            why = f"{first.source} and {item.source} are the same object and differ in {quoted(other)}"
            self._dispute(alike, first, item, f"{why}; make them equal, or remove one of them")
            return
        self._items[alike] = replace(first, weight=first.weight + item.weight)
        self._named[item.content] = alike
        self.refuse(item.source, f"repeats {first.source}; their weights were added")

    def _dispute(self, about: str, first: Item, item: Item, why: str) -> None:
        del self._items[first.alike or first.content]
        self._disputed[about] = why
        self.refuse(first.source, why)
        self.refuse(item.source, why)

    def _take(self, alike: str, item: Item) -> None:
        if len(self._items) == MAX_CATALOG_ITEMS:
            raise CatalogError(f"The file has more than {MAX_CATALOG_ITEMS:,} objects. Split it.")
        self._characters += len(item.content) + sum(map(len, item.extra.values()))
        if self._characters > MAX_CATALOG_CHARACTERS:
            fix = "Remove columns that nobody needs, or split the file." if item.extra else "Split the file."
            raise CatalogError(
                f"The objects have more than {MAX_CATALOG_CHARACTERS:,} characters in all, at {item.source}. {fix}"
            )
        self._items[alike] = item
        self._named[item.content] = alike

    def refuse(self, source: str, reason: str) -> None:
        """Note that `source` gave no item of its own."""
        self._refused += 1
        if self._refused <= MAX_REFUSALS:
            self._refusals.append(Refusal(visible(source), visible(reason)))

    def reading(self) -> Reading:
        """Return what was gathered.

        Raises:
            CatalogError: fewer than two objects, or weights that no double can hold the shares of.
        """
        if len(self._items) < 2:
            raise CatalogError(
                f"A catalog needs at least two different objects; the file gave {len(self._items)}.{self._reasons()}"
            )
        items = tuple(self._items.values())
        try:
            Catalog(np.array([item.weight for item in items]))
        except ValueError as error:
            raise CatalogError("The weights are too far apart, or too large to be added. Scale them down.") from error
        return Reading(items, tuple(self._refusals), self._refused - len(self._refusals))

    def _reasons(self) -> str:
        shown = "".join(f" {refusal.source}: {refusal.reason}." for refusal in self._refusals[:_REASONS_SHOWN])
        more = self._refused - _REASONS_SHOWN
        if more <= 0:
            return shown
        return f"{shown} There is 1 more reason." if more == 1 else f"{shown} There are {more:,} more reasons."


@dataclass(frozen=True)
class ListedKind(ObjectKind):
    """A kind of object of which each is written down in a cell of a CSV.

    Args:
        column: of the cells, beside which there is `weight` if wanted.
        parse: turns a cell into what identifies the object, or raises ValueError with the reason it cannot.
        nearest: links each of some objects to its nearest others.
        alike: what is the same of objects that are shown alike.
    """

    column: str
    parse: Callable[[str], str]
    nearest: Callable[[Sequence[str], int], Graph]
    alike: Callable[[str], str] = str

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read a CSV; see `ObjectKind`."""
        collector = Collector()
        for row in table_rows(file, self.column, collector.refuse):
            source = f"row {row.number}"
            try:
                content = self.parse(row.cell)
                item = Item(source, content, parse_weight(row.weight), extra=row.extra, alike=self.alike(content))
            except ValueError as problem:
                collector.refuse(source, str(problem))
            else:
                collector.add(item)
            progress(row.number, None)
        return collector.reading()

    def written(self, text: str) -> str:
        """Return what identifies the object; see `ObjectKind`."""
        require_storable(text, "the text")
        return self.parse(text)

    def neighbours(self, items: Sequence[Item], count: int) -> Graph:
        """Link the objects by what identifies them."""
        return self.nearest([item.content for item in items], count)


# Distances that differ by less are one: how a machine rounds must not choose the neighbours. Euclidean distances of
# unit vectors are exact to about 1e-8.
_DECIMALS = 6


def nearest_by_distance(vectors: npt.NDArray[np.float64], count: int, metric: str) -> Graph:
    """Return the symmetric graph of the `count` nearest rows, under scikit-learn's `metric`; of rows at one distance
    the first come first.

    Args:
        vectors: shape (n, d), of lengths near 1.
    """
    # Imported here: it costs a second, and only the reading of a catalog needs it.
    from sklearn.metrics import pairwise_distances_chunked

    count = min(count, len(vectors) - 1)
    blocks = pairwise_distances_chunked(vectors, metric=metric)
    ranked = [_nearest(np.round(row, _DECIMALS), count) for block in blocks for row in block]
    return symmetric(ranked, count)


def _nearest(distances: npt.NDArray[np.float64], count: int) -> list[int]:
    """Return the indices of the smallest distances, the item itself perhaps among them: at least `count` others."""
    farthest = np.partition(distances, count)[count]
    near = np.flatnonzero(distances <= farthest)
    return [int(index) for index in near[np.argsort(distances[near], kind="stable")][: count + 1]]


def symmetric(ranked: Sequence[Sequence[int]] | npt.NDArray[np.int64], count: int) -> Graph:
    """Link every item with the first `count` others in its row of `ranked`, in both directions.

    Args:
        ranked: for each of n items the nearest items, nearest first, `count` others at least; an item may stand in its
            own row.
    """
    links: list[set[int]] = [set() for _ in ranked]
    for item, row in enumerate(ranked):
        others = [int(other) for other in row if int(other) != item][:count]
        for other in others:
            links[item].add(other)
            links[other].add(item)
    return tuple(tuple(sorted(row)) for row in links)


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


@dataclass(frozen=True)
class FileKind(ObjectKind):
    """A kind of object of which each is a file, in a ZIP, and is named by its name there.

    Args:
        noun: what one of the files is called in messages.
        encode: turns a stranger's file into one of our own making, or raises ValueError with the reason.
        vector: where a file of ours lies among the others, of a length near 1: near ones are alike.
    """

    noun: str
    encode: Encode
    vector: Callable[[bytes], npt.NDArray[np.float64]]

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read every file of a ZIP archive; see `ObjectKind`."""
        return _read_folder(file, self.noun, self.encode, progress, Collector(pictures))

    def written(self, text: str) -> str:
        """Refuse: it is pixels or samples.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"a {self.noun} cannot be written down")

    def neighbours(self, items: Sequence[Item], count: int) -> Graph:
        """Link the files by the distances of their vectors."""
        return nearest_by_distance(np.stack([self.vector(item.picture) for item in items]), count, "euclidean")


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
            _require_name(entry)
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


def _require_name(entry: zipfile.ZipInfo) -> None:
    # The name as it stands in the archive: zipfile cuts the other one at a NUL.
    require_storable(entry.orig_filename, "the file's name")
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
    with _naming(table):
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


@contextmanager
def _naming(table: zipfile.ZipInfo) -> Iterator[None]:
    """Let errors say which file of the archive they are about."""
    try:
        yield
    except CatalogError as problem:
        raise CatalogError(f"In {table.filename[:100]}: {problem}") from problem
