"""What a table of the record is: its columns and what they hold, and how cells are written, read and kept harmless.

No spreadsheet may run a cell as a formula, and nothing may be lost. A text of unknown origin gets one apostrophe in
front if what a spreadsheet would look at first, behind white space and characters that show nothing, is one of
= + - @ or an apostrophe, in any of their widths; or a semicolon, which starts a new cell where semicolons separate; or
if it begins with a tab, the end of a line or another control character, which spreadsheets skip or split at.

Reading takes one apostrophe away wherever there is one. A text that begins with an apostrophe always gets another, so
nothing is lost, and a record that was written when fewer texts were protected is read alike. Numbers that we write
ourselves are left alone.
"""

from __future__ import annotations

import json
import math
import re
import string
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol

Cell = str | int | float | None
"""What `csv.writer` writes: of a number every digit, so that reading gives the same number; of None an empty cell."""

# Most texts begin with one of these, and whoever looks no further saves most of the time.
_PLAIN = frozenset(string.ascii_letters + string.digits)
_DANGEROUS = frozenset("=+-@';")
# White space, and what shows nothing: control and format characters, such as a zero-width space.
_UNSEEN = frozenset(("Cc", "Cf", "Zl", "Zp", "Zs"))
# The minus of mathematics has no narrow form in Unicode's tables.
_MINUS = "\N{MINUS SIGN}"


class Moment(Protocol):
    """A date and time with its zone."""

    def isoformat(self, *, timespec: str) -> str:
        """Return it as ISO 8601 writes it."""
        ...


def escaped(text: str) -> str:
    """Return the cell to write for a text of unknown origin."""
    return text if text[:1] in _PLAIN or not _is_dangerous(text) else f"'{text}"


def unescaped(cell: str) -> str:
    """Return the text of a cell that `escaped` has made."""
    return cell.removeprefix("'")


def _is_dangerous(text: str) -> bool:
    if unicodedata.category(text[:1] or "a") == "Cc":
        return True
    seen = next((character for character in text if unicodedata.category(character) not in _UNSEEN), "")
    # Full-width and small forms are, in this normal form, the plain character.
    return seen == _MINUS or bool(_DANGEROUS.intersection(unicodedata.normalize("NFKC", seen)))


def moment(value: Moment | None) -> str:
    """Return a moment as the record writes it; empty if there is none."""
    return "" if value is None else value.isoformat(timespec="milliseconds")


def measure(value: float | str | None) -> Cell:
    """Write a measured property, which may be a word."""
    return escaped(value) if isinstance(value, str) else _written(value)


def _written(value: float | None) -> Cell:
    # Every digit, so that reading gives the same number.
    return "" if value is None else repr(value)


def _told(value: object) -> Any:
    return "" if value is None else value


def _joined(values: Iterable[int]) -> str:
    return " ".join(map(str, values))


def _number(cell: str) -> float | int | str:
    """Return a number; as its word where it is none that JSON has."""
    try:
        return int(cell)
    except ValueError:
        found = float(cell)
    return found if math.isfinite(found) else repr(found)


@dataclass(frozen=True)
class Kind:
    """What a column may hold.

    Args:
        values: in words.
        write: makes a cell of a value; of None an empty one.
        read: says what a cell says as JSON can say it; it is not asked about an empty cell.
        form: of a cell that is not empty; None where any text will do.
    """

    values: str
    write: Callable[[Any], Cell]
    read: Callable[[str], Any]
    form: re.Pattern[str] | None = None

    def allows(self, cell: str) -> bool:
        """True where a cell that is not empty is of this kind."""
        return self.form is None or self.form.fullmatch(cell) is not None


_DIGITS = r"-?\d{1,18}"
WHOLE = Kind("whole number", _told, int, re.compile(_DIGITS))
WHOLES = Kind(
    "whole numbers, separated by spaces",
    _joined,
    lambda cell: [*map(int, cell.split())],
    re.compile(f"{_DIGITS}( {_DIGITS})*"),
)
NUMBER = Kind("real number", _written, _number, re.compile(r"-?(\d+(\.\d*)?(e[+-]?\d+)?|inf)"))
FLAG = Kind("1 or 0", lambda value: "" if value is None else int(value), lambda cell: cell == "1", re.compile("[01]"))
MOMENT = Kind(
    "ISO 8601, UTC offset included",
    moment,
    str,
    re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)"),
)
WORD = Kind("word", _told, str)
"""One of our own words, which no spreadsheet can mistake."""
TEXT = Kind("text", escaped, unescaped)
MEASURE = Kind("number or word", measure, _number)
JSON = Kind("JSON object", lambda value: json.dumps(value, ensure_ascii=False), json.loads, re.compile(r"\{.*\}"))

Row = dict[str, str]
"""The cells of a row that was read, texts without their protecting apostrophe, by the columns' names."""

META = "meta_"
"""In states.csv, what the columns begin with that are an uploaded list's own."""
# Why a changed cell is not found.
TIME, DURATION = "a time", "a duration"
CLIENT = "what a browser told"
ALONE = "nothing else says it"


@dataclass(frozen=True)
class Column:
    """A column.

    Args:
        name: in the header.
        kind: what its cells hold.
        meaning: in words.
        values: the unit, or which values there are, where the kind does not say it.
        words: all that a cell may be, of a column of words.
        optional: whether a cell may be empty.
        excused: why nothing in the record shows that a cell was changed; empty where that is found.
    """

    name: str
    kind: Kind
    meaning: str
    values: str = ""
    words: tuple[str, ...] = ()
    optional: bool = False
    excused: str = ""

    @property
    def says(self) -> str:
        """The unit, or which values there are."""
        return self.values or ", ".join(self.words) or self.kind.values

    def problem(self, cell: str) -> str:
        """Return why a cell that was read cannot be one of the column; empty if it can."""
        if not cell:
            return "" if self.optional or self.kind is TEXT else f"“{self.name}” is empty"
        if (cell in self.words) if self.words else self.kind.allows(cell):
            return ""
        return f"“{self.name}” must be {self.says}, not “{cell[:60]}”"


@dataclass(frozen=True)
class Table:
    """A CSV file of the record, its columns in order.

    Args:
        name: of the file, without its ending.
        meaning: in words.
        columns: in their order.
        excused: why nothing in it is checked; empty where columns say it for themselves.
    """

    name: str
    meaning: str
    columns: tuple[Column, ...]
    excused: str = ""
    ending: str = "csv"

    @property
    def file(self) -> str:
        """The file's name."""
        return f"{self.name}.{self.ending}"

    @property
    def header(self) -> list[Cell]:
        """The first row."""
        return [column.name for column in self.columns]

    def row(self, **values: Any) -> list[Cell]:
        """Return the cells for a value of each column, in the columns' order.

        Raises:
            KeyError: a column has no value.
            TypeError: a value is of no column.
        """
        ordered = self.ordered(**values)
        return [column.kind.write(value) for column, value in zip(self.columns, ordered, strict=True)]

    def ordered(self, **values: Any) -> list[Any]:
        """Return what is given for each column as it is, in the columns' order: cells, or what will give the cells.

        Raises:
            KeyError: a column has no value.
            TypeError: a value is of no column.
        """
        if len(values) > len(self.columns):
            raise TypeError(f"{self.file} has no column {(values.keys() - set(self.header)).pop()}")
        return [values[column.name] for column in self.columns]

    def values(self, row: Iterable[Cell | None]) -> dict[str, Any]:
        """Return what a row says, by the columns' names, as JSON can say it: empty cells are null, or an empty text."""
        told: dict[str, Any] = {}
        for column, cell in zip(self.columns, row, strict=True):
            is_empty = cell is None or cell == ""
            nothing: Any = {TEXT: "", WHOLES: []}.get(column.kind)
            told[column.name] = nothing if is_empty else column.kind.read(str(cell))
        return told

    def unescape(self, row: Row) -> None:
        """Take the apostrophes from the texts of a row that was read, in place.

        Which `meta_*` columns states.csv has depends on the list, so that those of a row are found by their names.
        """
        for name, cell in row.items():
            if name in self._texts or name.startswith(META):
                row[name] = unescaped(cell)

    @property
    def _texts(self) -> set[str]:
        return {column.name for column in self.columns if column.kind is TEXT}

    def with_columns(self, columns: Iterable[Column]) -> Table:
        """Return the table with further columns."""
        return replace(self, columns=(*self.columns, *columns))

    def excuse(self, column: Column) -> str:
        """Return why a changed cell of a column is not found; empty where it is."""
        return self.excused or column.excused


def whole(name: str, meaning: str, values: str = "from 0", **more: Any) -> Column:
    """Return a column of whole numbers."""
    return Column(name, WHOLE, meaning, f"whole number, {values}", **more)


def count(name: str, meaning: str, **more: Any) -> Column:
    """Return a column of counts."""
    return Column(name, WHOLE, meaning, "count", **more)


def real(name: str, meaning: str, values: str = "", **more: Any) -> Column:
    """Return a column of real numbers."""
    return Column(name, NUMBER, meaning, values, **more)


def flag(name: str, meaning: str, **more: Any) -> Column:
    """Return a column of 1 and 0."""
    return Column(name, FLAG, meaning, **more)


def time(name: str, meaning: str, **more: Any) -> Column:
    """Return a column of moments."""
    return Column(name, MOMENT, meaning, excused=TIME, **more)


def word(name: str, meaning: str, *words: str, **more: Any) -> Column:
    """Return a column of our own words: of these, if there are any."""
    return Column(name, WORD, meaning, words=words, **more)


def text(name: str, meaning: str, values: str = "", **more: Any) -> Column:
    """Return a column of texts of unknown origin."""
    return Column(name, TEXT, meaning, values, **more)


def milliseconds(name: str, meaning: str) -> Column:
    """Return a column of durations."""
    return Column(name, WHOLE, meaning, "milliseconds", optional=True, excused=DURATION)
