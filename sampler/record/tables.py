"""One table of tables: each CSV file of the record and each of its columns, declared once, in `tables.toml`.

A column says what it holds, what that means, whether it may be empty, and why a changed cell of it cannot be found, if
it cannot. From this come the header and the cells, codebook.csv, `python -m sampler tables`, what a reader takes and
refuses, and the API's pages. What of a file can be worked out again is checked by the function that `replay.CHECKS` has
for it.

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
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
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


class Timestamp(Protocol):
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


def moment(value: Timestamp | None) -> str:
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
        excused: why a changed cell of any such column is not found; empty where it may be.
    """

    values: str
    write: Callable[[Any], Cell]
    read: Callable[[str], Any]
    form: re.Pattern[str] | None = None
    excused: str = ""

    def allows(self, cell: str) -> bool:
        """True where a cell that is not empty is of this kind."""
        return self.form is None or self.form.fullmatch(cell) is not None


_FROM_ONE = "[1-9][0-9]{0,17}"
_DIGITS = f"(0|{_FROM_ONE})"
WHOLE = Kind("whole number, from 0", _told, int, re.compile(_DIGITS))
ORDINAL = Kind("whole number, from 1", _told, int, re.compile(_FROM_ONE))
WHOLES = Kind(
    "whole numbers, separated by spaces",
    _joined,
    lambda cell: [*map(int, cell.split())],
    re.compile(f"{_DIGITS}( {_DIGITS})*"),
)
NUMBER = Kind("real number", _written, _number, re.compile(r"-?([0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?|inf)"))
SHARE = Kind("share from 0 to 1", _written, _number, re.compile(r"0(\.[0-9]*)?|1(\.0*)?|[1-9](\.[0-9]*)?e-[0-9]+"))
FLAG = Kind("1 or 0", lambda value: "" if value is None else int(value), lambda cell: cell == "1", re.compile("[01]"))
MOMENT = Kind(
    "ISO 8601, UTC offset included",
    moment,
    str,
    re.compile(
        r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3])(:[0-5]\d){2}(\.\d+)?([+-]\d\d:\d\d|Z)", re.ASCII
    ),
    "a time",
)
WORD = Kind("word", _told, str)
"""One of our own words, which no spreadsheet can mistake."""
KEY = Kind("UUID", _told, str, re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"))
TEXT = Kind("text", escaped, unescaped)
MEASURE = Kind("number or word", measure, _number)
JSON = Kind("JSON object", lambda value: json.dumps(value, ensure_ascii=False), json.loads, re.compile(r"\{.*\}"))
_KINDS = {
    "whole": WHOLE,
    "ordinal": ORDINAL,
    "wholes": WHOLES,
    "real": NUMBER,
    "share": SHARE,
    "flag": FLAG,
    "time": MOMENT,
    "word": WORD,
    "key": KEY,
    "text": TEXT,
    "json": JSON,
}
"""What a column of `tables.toml` may be."""

Row = dict[str, str]
"""The cells of a row that was read, texts without their protecting apostrophe, by the columns' names."""

META = "meta_"
"""In states.csv, what the columns begin with that are an uploaded list's own."""


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
    words: Collection[str] = ()
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
        return f"“{self.name}” cannot hold “{cell[:60]}” (its values: {self.says})"


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

    @cached_property
    def _texts(self) -> set[str]:
        # Asked for each cell of a table that may have millions.
        return {column.name for column in self.columns if column.kind is TEXT}

    def with_columns(self, columns: Iterable[Column]) -> Table:
        """Return the table with further columns."""
        return replace(self, columns=(*self.columns, *columns))

    def excuse(self, column: Column) -> str:
        """Return why a changed cell of a column is not found; empty where it is."""
        return self.excused or column.excused


_DECLARED: dict[str, Any] = tomllib.loads(
    resources.files("sampler.record").joinpath("tables.toml").read_text(encoding="utf-8")
)


def _column(name: str, given: Mapping[str, Any]) -> Column:
    """Return a column as declared; what it does not say is that of the shared column of its name."""
    said = _DECLARED["shared"].get(name, {}) | given
    kind = _KINDS[said.pop("kind")]
    return Column(name, kind, **({"excused": kind.excused} | said))


def _table(name: str) -> Table:
    said = dict(_DECLARED[name])
    columns = tuple(_column(column, given) for column, given in said.pop("columns").items())
    return Table(name, columns=columns, **said)


VOTES, STEPS, EVIDENCE, STATES = _table("votes"), _table("steps"), _table("evidence"), _table("states")
COLUMNS, SAMPLES, RATINGS, SCORES = _table("columns"), _table("samples"), _table("ratings"), _table("scores")
REASONS, CALLS = _table("reasons"), _table("calls")
EVENTS = _table("events")
"""Ended chains, extensions and openings in it are compared with the rest of the record."""
VOTERS, LEASES, CHECKS = _table("voters"), _table("leases"), _table("checks")
PREFERENCES, RESULTS = _table("preferences"), _table("results")
PROPERTIES, CODEBOOK = _table("properties"), _table("codebook")
FIRST = "first"
SIDES = (FIRST, "second")
SAMPLING = "sampling"
"""The phase whose samples are analysed; those of the others are left out."""

TABLES = (VOTES, STEPS, EVIDENCE, STATES, COLUMNS, SAMPLES, RATINGS, SCORES, REASONS, CALLS)
"""Of every record, in the order in which an archive has them."""
OF_PEOPLE = (VOTERS, LEASES, CHECKS)
"""Of a record whose people a platform has sent."""
CHECKED = (*TABLES[:8], EVENTS, CHECKS)
"""What a replay reads."""
CONFIG, JUDGES, TUNING = "campaign.json", "judges.json", "tuning.json"
SCORERS, MANIFEST = "scorers.json", "manifest.json"
_OTHERS: dict[str, tuple[str, str]] = {
    CONFIG: ("JSON", "the whole configuration, a file to import; `hidden` names by path what is left out"),
    JUDGES: ("JSON", "what answered each question, as it was fixed at the start"),
    TUNING: ("JSON", "what the warm-up has found and chosen"),
    SCORERS: ("JSON", "what each scorer said of itself at the start"),
    "pictures/": ("PNG or WebP", "pictures that were shown, by their objects' numbers in states.csv"),
    "recordings/": ("FLAC or MP3", "recordings that were compared, by their objects' numbers in states.csv"),
    MANIFEST: ("JSON", "each file of the archive by its SHA-256"),
}
EVERY = (*TABLES, EVENTS, *OF_PEOPLE, PREFERENCES, RESULTS, PROPERTIES, CODEBOOK)
"""All that an archive can have."""
_ENDINGS = {"csv": "CSV", "jsonl": "JSON lines"}
ABOUT = _OTHERS | {table.file: (_ENDINGS[table.ending], table.meaning) for table in EVERY}
"""Of each file: its form and its meaning."""


def meta_names(names: Iterable[str]) -> list[str]:
    """Return what the further columns of an uploaded list are called in states.csv, in their order.

    Whatever is no letter, digit or underscore becomes an underscore, so that programs can use the names as they are;
    of two that are then the same, in whichever case, the later one gets a number.
    """
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        safe = META + (re.sub(r"\W+", "_", name).strip("_") or "column")
        unique, number = safe, 1
        while unique.casefold() in taken:
            number += 1
            unique = f"{safe}_{number}"
        taken.add(unique.casefold())
        found.append(unique)
    return found


def states_table(names: Iterable[str]) -> Table:
    """Return states.csv of a campaign, whose list has further columns of these names, in the order of the file."""
    given = list(names)
    return STATES.with_columns(
        Column(meta, TEXT, f"column “{name}” of the uploaded list")
        for name, meta in zip(given, meta_names(given), strict=True)
    )


def with_measures(names: Iterable[str]) -> Table:
    """Return properties.csv with a column for each property that was measured."""
    return PROPERTIES.with_columns(Column(name, MEASURE, "as measured", optional=True) for name in names)


def codebook(files: Mapping[str, Table | None], target: str) -> Iterator[list[Cell]]:
    """Yield the rows of codebook.csv, its header first.

    Args:
        files: of the archive, in its order, each with its table if it is one.
        target: the distribution that the chains sample, in words, with what each judge's score stands for.

    Raises:
        KeyError: nothing declares a file.
    """
    yield CODEBOOK.header
    yield CODEBOOK.row(file=CONFIG, column="target", values="the distribution that the chains sample", meaning=target)
    for file, table in files.items():
        values, meaning = ABOUT[file]
        yield CODEBOOK.row(file=file, column="", values=values, meaning=meaning)
        for column in table.columns if table else ():
            yield CODEBOOK.row(file=file, column=column.name, values=column.says, meaning=column.meaning)


def markdown() -> Iterator[str]:
    """Yield all files and columns as lines of Markdown, with what nothing shows to be changed."""
    yield from ("| file | form | meaning |", "|---|---|---|")
    yield from (f"| `{file}` | {form} | {meaning} |" for file, (form, meaning) in ABOUT.items())
    for table in EVERY:
        yield from ("", f"## {table.file}", "", f"{table.meaning[0].upper()}{table.meaning[1:]}.", "")
        yield from ("| column | values | meaning | a changed cell is found |", "|---|---|---|---|")
        for column in table.columns:
            found = f"no: {why}" if (why := table.excuse(column)) else "yes"
            meaning = f"{column.meaning}{'; may be empty' if column.optional else ''}"
            yield f"| `{column.name}` | {column.says} | {meaning} | {found} |"
