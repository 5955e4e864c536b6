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

import math
import string
import unicodedata
from collections.abc import Callable, Iterable
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


# What a column holds, and the cell that it writes for a value; None is an empty cell.


def whole(value: int | None) -> Cell:
    """Write a whole number."""
    return "" if value is None else value


def wholes(values: Iterable[int]) -> str:
    """Return whole numbers, one a judge or neighbour, as the record writes them."""
    return " ".join(map(str, values))


def number(value: float | None) -> Cell:
    """Write every digit, so that reading gives the same number."""
    return "" if value is None else repr(value)


def numbers(values: Iterable[float]) -> str:
    """Return numbers, one a judge, as the record writes them."""
    return " ".join(map(repr, values))


def yes_or_no(value: bool) -> Cell:
    """Write 1 or 0."""
    return int(value)


def if_known(value: bool | None) -> Cell:
    """Write 1 or 0, and nothing where it is not known."""
    return "" if value is None else int(value)


def moment(value: Moment | None) -> str:
    """Return a moment as the record writes it; empty if there is none."""
    return "" if value is None else value.isoformat(timespec="milliseconds")


def word(value: str) -> Cell:
    """Write one of our own words, which no spreadsheet can mistake."""
    return value


def measure(value: float | str | None) -> Cell:
    """Write a measured property, which may be a word."""
    return escaped(value) if isinstance(value, str) else number(value)


def value_of(write: Callable[..., Cell], cell: Cell | None) -> Any:
    """Return what a cell says, as JSON can say it: numbers as numbers, several as a list, none as null.

    Args:
        write: what writes the column's cells: one of the functions above.
        cell: as it was written, or as it was read.
    """
    if write is escaped:
        return unescaped(str(cell or ""))
    if write in (wholes, numbers):
        return [_number(each) for each in str(cell or "").split()]
    if cell is None or cell == "":
        return None
    if write in (yes_or_no, if_known):
        return str(cell) == "1"
    return str(cell) if write in (moment, word) else _number(cell)


def whole_numbers(cell: str) -> tuple[int, ...]:
    """Return what `wholes` has written.

    Raises:
        ValueError: the cell holds something else.
    """
    if not all(number.isdecimal() for number in cell.split()):
        raise ValueError(f"“{cell}” must be whole numbers separated by spaces")
    return tuple(int(number) for number in cell.split())


def _number(cell: str | float) -> float | int | str:
    """Return a number; as its word where it is none that JSON has."""
    if isinstance(cell, str):
        try:
            return int(cell)
        except ValueError:
            cell = float(cell)
    return cell if math.isfinite(cell) else repr(cell)
