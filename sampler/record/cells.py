"""The cells of an export: how each kind of value is written, and how texts of unknown origin are kept harmless.

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
from dataclasses import dataclass
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
    form: str | None = None

    def allows(self, cell: str) -> bool:
        """True where a cell that is not empty is of this kind."""
        return self.form is None or re.fullmatch(self.form, cell) is not None


_DIGITS = r"-?\d{1,18}"
WHOLE = Kind("whole number", _told, int, _DIGITS)
WHOLES = Kind(
    "whole numbers, separated by spaces", _joined, lambda cell: [*map(int, cell.split())], f"{_DIGITS}( {_DIGITS})*"
)
NUMBER = Kind("real number", _written, _number, r"-?(\d+(\.\d*)?(e[+-]?\d+)?|inf)")
FLAG = Kind("1 or 0", lambda value: "" if value is None else int(value), lambda cell: cell == "1", "[01]")
MOMENT = Kind(
    "ISO 8601, UTC offset included",
    moment,
    str,
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?([+-]\d\d:\d\d|Z)",
)
WORD = Kind("word", _told, str)
"""One of our own words, which no spreadsheet can mistake."""
TEXT = Kind("text", escaped, unescaped)
MEASURE = Kind("number or word", measure, _number)
JSON = Kind("JSON object", lambda value: json.dumps(value, ensure_ascii=False), json.loads, r"\{.*\}")
