"""What a catalog is read from: items, and the rows that could not become one."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Protocol

import numpy as np

from sampler.spaces.catalogs.catalog import Catalog

MAX_ITEMS = 20_000
# Of one cell. Longer than any text that may be in it, unless its lines are very short.
MAX_CELL_LINES = 1_000
_OPEN_QUOTE = (
    "A cell that begins with a quotation mark needs one at its end, right before the separator or the end of the line; "
    "inside, each mark is written twice."
)
_REASONS_SHOWN = 3
# How ZIP archives begin; an Excel workbook is one.
_ZIP = b"PK\x03\x04"
_DECIMAL_COMMA = re.compile(r"\s*\d+,\d+([eE][+-]?\d+)?\s*")

# A reader of rows calls this with the source and the reason of each row that cannot become an item.
Refuse = Callable[[str, str], None]

# A reader calls this after each row with the number of rows done and, where it knows it, of rows in all.
Progress = Callable[[int, int | None], None]


@dataclass(frozen=True)
class Item:
    """One object of a catalog.

    Args:
        source: where it stood in the file: "row 3", or a name in the archive.
        content: what identifies it: the text, the canonical SMILES, or the image's file name.
        weight: positive; p0 is proportional to it.
        picture: the image, re-encoded; empty for kinds that have none.
        media_type: of `picture`.
    """

    source: str
    content: str
    weight: float = 1.0
    picture: bytes = b""
    media_type: str = ""


@dataclass(frozen=True)
class Refusal:
    """A row or file that was not taken, or that was joined with an earlier one, and why."""

    source: str
    reason: str


@dataclass(frozen=True)
class Reading:
    """Everything one file gave: the items in order, and what was refused or joined."""

    items: tuple[Item, ...]
    refusals: tuple[Refusal, ...]


class CatalogError(ValueError):
    """A file that gives no catalog at all; the message says what to change in it."""


class _Reader(Protocol):
    """What `csv.reader` returns; the standard library does not name it."""

    line_num: int

    def __next__(self) -> list[str]: ...

    def __iter__(self) -> Iterator[list[str]]: ...


class ObjectKind(Protocol):
    """A kind of object that catalogs are made of: how to read it from a file and how to compare two of them."""

    name: str
    accepts: str
    """File name endings a browser should offer, as in an HTML `accept` attribute."""

    def read(self, file: BinaryIO, progress: Progress) -> Reading:
        """Read a catalog.

        Raises:
            CatalogError: the file gives no catalog.
        """
        ...

    def neighbours(self, items: Sequence[Item], count: int) -> tuple[tuple[int, ...], ...]:
        """Return the symmetric graph that links each item to its `count` nearest others."""
        ...


def table_rows(file: BinaryIO, column: str, refuse: Refuse) -> Iterator[tuple[int, str, str | None]]:
    """Yield (row number as a spreadsheet shows it, cell of `column`, weight cell or None) of a CSV file.

    A row that fills more cells than the first row names was cut where nobody meant it to be; it is refused.

    Raises:
        CatalogError: not UTF-8, no header row that names `column`, or a row the CSV format does not allow.
    """
    text = _decoded(file.read())
    header, _, _ = text.partition("\n")
    delimiter = max(",;\t", key=header.count)
    rows = _rows(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))
    _, first = next(rows, (1, []))
    names = [name.strip().lower() for name in first[: _filled(first)]]
    if column not in names:
        found = ", ".join(f"“{name[:40]}”" for name in names[:6]) or "nothing"
        raise CatalogError(
            f"The first row must name the columns: “{column}”, and “weight” if you have one. It has {found}."
        )
    at, weight_at = names.index(column), names.index("weight") if "weight" in names else None
    for row, cells in rows:
        width = _filled(cells)
        if width > len(names):
            shown = "a tab" if delimiter == "\t" else f"“{delimiter}”"
            refuse(
                f"row {row}",
                f"the row has {width} cells, the first row names {len(names)}; put a cell that holds {shown} in quotes",
            )
        elif width:
            padded = cells + [""] * (len(names) - len(cells))
            weight = None if weight_at is None else padded[weight_at]
            yield row, padded[at].strip(), weight if delimiter == "," else _with_decimal_point(weight)


def _rows(reader: _Reader) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with its number, counted here, as a cell may run over several lines of the file.

    A quotation mark that is never closed makes one cell of all that follows, or of what comes before the next mark.

    Raises:
        CatalogError: the CSV format does not allow the row, or a cell runs over more lines than anybody means.
    """
    for row in itertools.count(1):
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            raise CatalogError(_why_unreadable(row, line, runs_on=reader.line_num > line, error=error)) from error
        if cells is None:
            return
        if reader.line_num - line >= MAX_CELL_LINES:
            raise CatalogError(f"A cell of row {row} runs over {reader.line_num - line + 1:,} lines. {_OPEN_QUOTE}")
        yield row, cells


def _why_unreadable(row: int, line: int, *, runs_on: bool, error: csv.Error) -> str:
    where = f"Row {row} (line {line} of the file)"
    if runs_on or "field larger" not in str(error):
        return f"{where} has a quotation mark that does not end its cell. {_OPEN_QUOTE}"
    return f"{where} has a cell of more than {csv.field_size_limit():,} characters. Shorten it."


def _decoded(data: bytes) -> str:
    if data.startswith(_ZIP):
        raise CatalogError(
            "The file looks like an Excel workbook or a ZIP, not like a CSV. Save it as “CSV UTF-8” and upload that."
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CatalogError("The file is not UTF-8 text. Save it as “CSV UTF-8” and upload it again.") from error


def _with_decimal_point(weight: str | None) -> str | None:
    """Return 0.5 for 0,5, as spreadsheets write it in many languages; any other cell as it is."""
    return weight.replace(",", ".") if weight and _DECIMAL_COMMA.fullmatch(weight) else weight


def _filled(cells: Sequence[str]) -> int:
    """Return how many cells there are up to the last one that is not blank."""
    return max((place for place, cell in enumerate(cells, start=1) if cell.strip()), default=0)


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
        raise ValueError(f"the weight “{cell.strip()[:40]}” is not a positive number")
    return weight


class Collector:
    """Gathers items, joining repeated objects: p0 of an object is the sum of its rows' weights."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._refusals: list[Refusal] = []

    def add(self, item: Item) -> None:
        """Take an item, or add its weight to the same object's."""
        first = self._items.get(item.content)
        if first is None:
            if len(self._items) == MAX_ITEMS:
                raise CatalogError(f"The file has more than {MAX_ITEMS:,} objects. Split it.")
            self._items[item.content] = item
            return
        self._items[item.content] = Item(
            first.source, first.content, first.weight + item.weight, first.picture, first.media_type
        )
        self.refuse(item.source, f"repeats {first.source}; their weights were added")

    def refuse(self, source: str, reason: str) -> None:
        """Note that `source` gave no item of its own."""
        self._refusals.append(Refusal(source, reason))

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
        return Reading(items, tuple(self._refusals))

    def _reasons(self) -> str:
        shown = "".join(f" {refusal.source}: {refusal.reason}." for refusal in self._refusals[:_REASONS_SHOWN])
        more = len(self._refusals) - _REASONS_SHOWN
        if more <= 0:
            return shown
        return f"{shown} There is 1 more reason." if more == 1 else f"{shown} There are {more:,} more reasons."


def read_table(file: BinaryIO, column: str, parse: Callable[[str], str], progress: Progress) -> Reading:
    """Read a CSV whose cells of `column` are the objects.

    Args:
        parse: turns a cell into what identifies the object, or raises ValueError with the reason it cannot.

    Raises:
        CatalogError: the file gives no catalog.
    """
    collector = Collector()
    for row, cell, weight in table_rows(file, column, collector.refuse):
        source = f"row {row}"
        try:
            item = Item(source, parse(cell), parse_weight(weight))
        except ValueError as problem:
            collector.refuse(source, str(problem))
        else:
            collector.add(item)
        progress(row, None)
    return collector.reading()
