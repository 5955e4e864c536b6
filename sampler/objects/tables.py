"""Rows of a CSV file, read as they come: no more of the file is in memory than one row.

Columns beside those that a catalog is made of are kept by name, and are never part of the distribution.

Bounds, each with a message that names it: `MAX_ROWS` rows; `MAX_ROW_CHARACTERS` characters and `MAX_CELL_LINES` lines
to a row; `csv.field_size_limit()` characters to a cell; of further columns `MAX_COLUMNS`, `MAX_NAME_CHARACTERS`
characters to a name and `MAX_CELL_CHARACTERS` to a cell. Of all cells together, see `items.Collector`.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, BinaryIO

# Control characters, halves of surrogate pairs, what turns the direction of a line, and what Unicode says is none.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SHOWN_CHARACTERS = 60


def visible(text: str) -> str:
    """Return a text in which every character that shows nothing stands as its escape: the NUL as \\u0000."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def quoted(text: str, longest: int = _SHOWN_CHARACTERS) -> str:
    """Return the beginning of a text in quotation marks, for a message."""
    return f"“{visible(text[:longest])}”"


def require_storable(text: str, where: str) -> None:
    """Require characters that every database takes and that UTF-8 can hold.

    Args:
        where: what the text is, as the message begins: "the cell of “text”".

    Raises:
        ValueError: there is another one; the message names it and what to do.
    """
    if found := _UNSTORABLE.search(text):
        name = "a NUL character" if found[0] == "\x00" else "half of a surrogate pair"
        raise ValueError(f"{where} holds {name} (U+{ord(found[0]):04X}); remove it")


MAX_COLUMNS = 50
MAX_NAME_CHARACTERS = 100
MAX_CELL_CHARACTERS = 20_000


MAX_ROWS = 1_000_000
# Of all cells of a row together. Nobody writes such rows; a file without line ends is one.
MAX_ROW_CHARACTERS = 1_000_000
# Of one cell. Longer than any text that may be in it, unless its lines are very short.
MAX_CELL_LINES = 1_000
_OPEN_QUOTE = (
    "A cell that begins with a quotation mark needs one at its end, right before the separator or the end of the line; "
    "inside, each mark is written twice."
)
# How ZIP archives begin; an Excel workbook is one.
ZIP_BEGIN = b"PK\x03\x04"
WEIGHT = "weight"
_DECIMAL_COMMA = re.compile(r"\s*\d+,\d+([eE][+-]?\d+)?\s*")
_THOUSANDS = re.compile(r"\s*[1-9]\d{0,2},\d{3}\s*")
# Of a header, what is not between quotation marks may part its cells.
_QUOTED = re.compile(r'"[^"]*("|$)')
# With this line, Excel says what parts the cells of a file; it does not show it.
_SEPARATOR = re.compile(r'"?sep=([,;\t])"?\s*', re.IGNORECASE)

# A reader of rows calls this with the source and the reason of each row that cannot become an item.
Refuse = Callable[[str, str], None]


class CatalogError(ValueError):
    """A file that gives no catalog at all; the message says what to change in it."""

    def __init__(self, message: str) -> None:
        # What a file holds is quoted in messages, which are stored and shown.
        super().__init__(visible(message))


@dataclass(frozen=True)
class TableRow:
    """What one row says of an object.

    Args:
        number: as a spreadsheet shows it.
        cell: of the column that holds the objects.
        weight: the cell of “weight”; None where there is no such column.
        extra: the cells of the other columns, by their names.
    """

    number: int
    cell: str
    weight: str | None
    extra: Mapping[str, str]


class Lines:
    """The lines of a text, each with its end, and a bound on how many characters make one row."""

    def __init__(self, text: io.TextIOWrapper) -> None:
        self._text = text
        self._line, self._row, self._characters = 0, 1, 0

    def begin_row(self, row: int) -> None:
        """Count the characters of this row from here."""
        self._row, self._characters = row, 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self._line += 1
        try:
            line = self._text.readline(MAX_ROW_CHARACTERS + 1 - self._characters)
        except UnicodeDecodeError as error:
            raise CatalogError(
                f"The file is not UTF-8 text (near line {self._line}). Save it as “CSV UTF-8” and upload it again."
            ) from error
        if not line:
            raise StopIteration
        self._characters += len(line)
        if self._characters > MAX_ROW_CHARACTERS:
            raise CatalogError(
                f"Row {self._row} (line {self._line} of the file) has more than {MAX_ROW_CHARACTERS:,} characters. "
                f"Shorten it, or end its lines. {_OPEN_QUOTE}"
            )
        return line


def table_rows(file: BinaryIO, column: str, refuse: Refuse) -> Iterator[TableRow]:
    """Yield the rows of a CSV file whose objects stand in `column`.

    A row that fills more cells than the first row names was cut where nobody meant it to be; it is refused. So is one
    with a character that cannot be kept, with the name of its column.

    Args:
        file: at its beginning, and seekable; left open.

    Raises:
        CatalogError: not UTF-8, no header row that names `column`, a row the CSV format does not allow, a cell of a
            further column that cannot be kept, or a bound exceeded.
    """
    with raw_rows(file) as (delimiter, rows):
        names, extra = _columns(rows, column)
        at, weight_at = names.index(column), names.index(WEIGHT) if WEIGHT in names else None
        for row, cells in rows:
            width = _filled(cells)
            if width > len(names):
                shown = "a tab" if delimiter == "\t" else f"“{delimiter}”"
                refuse(
                    f"row {row}",
                    f"the row has {width} cells, the first row names {len(names)}; put a cell that holds {shown} in "
                    "quotes",
                )
            elif width:
                padded = cells + [""] * (len(names) - len(cells))
                cell, weight = padded[at], None if weight_at is None else padded[weight_at]
                try:
                    require_storable(cell, f"the cell of “{column}”")
                    require_storable(weight or "", "the cell of “weight”")
                except ValueError as problem:
                    refuse(f"row {row}", str(problem))
                else:
                    weight = with_decimal_point(weight, delimiter)
                    yield TableRow(row, cell, weight, _extra_cells(extra, row, padded))


def extra_columns_of(file: BinaryIO, column: str) -> tuple[str, ...]:
    """Return the names of a CSV file's columns beside `column` and “weight”, in order. Only its first row is read.

    Args:
        file: as in `table_rows`.

    Raises:
        CatalogError: as in `table_rows`, of the first row.
    """
    with raw_rows(file) as (_, rows):
        return tuple(_columns(rows, column)[1])


@contextmanager
def raw_rows(file: BinaryIO) -> Iterator[tuple[str, Iterator[tuple[int, list[str]]]]]:
    """Yield what separates the cells of a CSV file, and its rows with their numbers; blank ones are empty.

    Args:
        file: as in `table_rows`.

    Raises:
        CatalogError: as in `table_rows`, of any file whatever its columns are.
    """
    if file.read(len(ZIP_BEGIN)) == ZIP_BEGIN:
        raise CatalogError(
            "The file looks like an Excel workbook or a ZIP, not like a CSV. Save it as “CSV UTF-8” and upload that."
        )
    with lines_of(file) as lines:
        header = next(lines, "")
        told = _SEPARATOR.fullmatch(header)
        header = next(lines, "") if told else header
        delimiter = told[1] if told else separator_of(header)
        reader = csv.reader(itertools.chain([header], lines), delimiter=delimiter, strict=True)
        yield delimiter, _rows(lines, reader, lines_before=1 if told else 0)


@contextmanager
def lines_of(file: BinaryIO) -> Iterator[Lines]:
    """Yield the lines of a text in UTF-8, from its beginning."""
    file.seek(0)
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
    try:
        yield Lines(text)
    finally:
        # Otherwise the wrapper closes the file with itself.
        text.detach()


def separator_of(line: str) -> str:
    """Return what parts the cells of a line most often."""
    return max(",;\t", key=_QUOTED.sub("", line).count)


def _columns(rows: Iterator[tuple[int, list[str]]], column: str) -> tuple[list[str], dict[str, int]]:
    """Take the first row, and return the names of its columns, and the indices of the extra ones by their names."""
    _, first = next(rows, (1, []))
    names = _names(first)
    if column not in names:
        found = ", ".join(quoted(name.strip(), 40) for name in first[: len(names)][:6]) or "nothing"
        raise CatalogError(
            f"The first row must name the columns: “{column}”, and “weight” if you have one. It has {found}."
        )
    return names, _extra_indices(names, (column, WEIGHT))


def _extra_indices(names: Sequence[str], read: Collection[str]) -> dict[str, int]:
    """Return the extra columns of a header, their indices in a row by their names. One without a name is not kept.

    Args:
        names: of all columns, in order.
        read: the names of the columns that the catalog is made of.

    Raises:
        CatalogError: there are too many, one has too long a name, or two columns have the same.
    """
    twice = [name for name, count in Counter(filter(None, names)).items() if count > 1]
    if twice:
        raise CatalogError(f"The first row names the column {quoted(twice[0], 40)} twice; rename one of the two.")
    indices = {name: index for index, name in enumerate(names) if name and name not in read}
    for name in indices:
        if len(name) > MAX_NAME_CHARACTERS:
            raise CatalogError(
                f"The name of the column {quoted(name, 40)} has {len(name):,} characters; at most "
                f"{MAX_NAME_CHARACTERS} are allowed."
            )
    if len(indices) > MAX_COLUMNS:
        raise CatalogError(
            f"The first row names {len(indices)} further columns; at most {MAX_COLUMNS} are kept. Remove those that "
            "nobody needs."
        )
    return indices


def _extra_cells(indices: Mapping[str, int], row: int, cells: Sequence[str]) -> dict[str, str]:
    """Return the extra cells of a row by their columns, without white space at their ends.

    Raises:
        CatalogError: one is too long or holds what cannot be kept. No object goes for the sake of a column that it does
            not need: the researcher decides.
    """
    found = {name: cells[index].strip() for name, index in indices.items()}
    for name, cell in found.items():
        _require_storable_in_table(cell, f"Row {row}: the cell of {quoted(name)}")
        if len(cell) > MAX_CELL_CHARACTERS:
            raise CatalogError(
                f"Row {row}: the cell of {quoted(name)} has {len(cell):,} characters; at most {MAX_CELL_CHARACTERS:,} "
                "are kept. Shorten it, or remove the column."
            )
    return found


def _require_storable_in_table(text: str, where: str) -> None:
    try:
        require_storable(text, where)
    except ValueError as problem:
        raise CatalogError(f"{problem}.") from problem


def _names(first: Sequence[str]) -> list[str]:
    """Return the columns' names; one that cannot be read as it is meant would be a column that nobody finds."""
    names = [name.strip().lower() for name in first[: _filled(first)]]
    for index, name in enumerate(names, start=1):
        _require_storable_in_table(name, f"Row 1, column {index}, {quoted(name, 40)},")
    return names


def _rows(lines: Lines, reader: Any, lines_before: int) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with its number, counted here, as a cell may run over several lines of the file.

    The reader has not seen the `lines_before` that are no rows.

    A quotation mark that is never closed makes one cell of all that follows, or of what comes before the next mark.

    Raises:
        CatalogError: the CSV format does not allow the row, or a cell runs over more lines than anybody means.
    """
    for row in itertools.count(1):
        line = reader.line_num + 1
        if row > 1:
            # The first line was counted when it was read.
            lines.begin_row(row)
        try:
            cells = next(reader, None)
        except csv.Error as error:
            runs_on = reader.line_num > line
            raise CatalogError(_why_unreadable(row, line + lines_before, runs_on=runs_on, error=error)) from error
        if cells is None:
            return
        if reader.line_num - line >= MAX_CELL_LINES:
            raise CatalogError(f"A cell of row {row} runs over {reader.line_num - line + 1:,} lines. {_OPEN_QUOTE}")
        if row > MAX_ROWS:
            raise CatalogError(
                f"The file has more than {MAX_ROWS:,} rows. Join those that repeat an object, or split it."
            )
        yield row, cells


def _why_unreadable(row: int, line: int, *, runs_on: bool, error: csv.Error) -> str:
    where = f"Row {row} (line {line} of the file)"
    if runs_on or "field larger" not in str(error):
        return f"{where} has a quotation mark that does not end its cell. {_OPEN_QUOTE}"
    return f"{where} has a cell of more than {csv.field_size_limit():,} characters. Shorten it."


def with_decimal_point(weight: str | None, delimiter: str) -> str | None:
    """Return 0.5 for 0,5, as spreadsheets write it in many languages; any other cell as it is.

    Where commas part cells, 1,234 may be a thousand and more.
    """
    is_decimal = weight and _DECIMAL_COMMA.fullmatch(weight) and not (delimiter == "," and _THOUSANDS.fullmatch(weight))
    return weight.replace(",", ".") if weight and is_decimal else weight


def _filled(cells: Sequence[str]) -> int:
    """Return how many cells there are up to the last one that is not blank."""
    return max((index for index, cell in enumerate(cells, start=1) if cell.strip()), default=0)
