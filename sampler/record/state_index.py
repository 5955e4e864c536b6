"""How a record names states: by number.

A catalog's state is its item's number already. A state that is generated gets one from the step that proposed it,

    number = step * most + chain        (step 0: where the chain starts; most: the chains that there can be),

so that numbers need no counter, are the same whichever process writes them, and can be worked out again. A proposal
equal to the current state keeps the number the state has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

Row = Mapping[str, str]
_SHOWN = 60


def state_number(chain: int, step: int, most: int) -> int:
    """Return the number of the state that step `step` of a chain proposes, one of `most` chains at most."""
    return step * most + chain


class Reader(Protocol):
    """The part of a `Space` that reads a record."""

    def decode(self, code: str) -> Any:
        """Return the state of a code."""
        ...

    def is_close(self, one: Any, other: Any) -> bool:
        """True when two states are the same but for rounding."""
        ...

    def content(self, state: Any) -> str:
        """Return what a person reads."""
        ...


class StateIndex(Protocol):
    """The states of a record, looked up by a replay that has drawn them again."""

    def number(self, chain: int, step: int, state: Any) -> int:
        """Return the number under which the record should hold the state that this step proposed."""
        ...

    def row(self, number: int) -> Row | None:
        """Return the row of the state of this number; None if there is none."""
        ...

    def compare(self, number: int, state: Any) -> Iterator[tuple[str, str]]:
        """Yield what the record says and what it should say, where the state of this number is another one.

        Raises:
            KeyError: the record lacks a column.
        """
        ...


class CatalogIndex:
    """A catalog's states: their content is the researcher's, and nothing else says what it should be."""

    def number(self, chain: int, step: int, state: int) -> int:
        """Return the item's place in the catalog."""
        return state

    def row(self, number: int) -> None:
        """Return nothing: nothing is said of these rows."""

    def compare(self, number: int, state: int) -> Iterator[tuple[str, str]]:
        """Yield nothing."""
        yield from ()


class GeneratedIndex:
    """States made as the chains went, each with the code that `Space.encode` wrote.

    Args:
        space: what reads the codes: a `Space`, or as much of one as can be had without its model.
        most: how many chains there can be.
        rows: the rows of states.csv.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a number is none, or stands twice.
    """

    def __init__(self, space: Reader, most: int, rows: list[Row]) -> None:
        self._space, self._most = space, most
        self._rows = {int(row["state"]): row for row in rows}
        if len(self._rows) != len(rows):
            raise ValueError("states.csv must list each state once")

    def state(self, number: int) -> Any:
        """Return the state that the record holds under a number.

        Raises:
            KeyError: a row lacks a column.
            ValueError: there is no such state, or it cannot be read.
        """
        if number not in self._rows:
            raise ValueError(f"there is no state {number} in states.csv")
        return self._space.decode(self._rows[number]["code"])

    def number(self, chain: int, step: int, state: Any) -> int:
        """Return the number that the step gives."""
        return state_number(chain, step, self._most)

    def row(self, number: int) -> Row | None:
        """Return the row of the state of this number; None if there is none."""
        return self._rows.get(number)

    def compare(self, number: int, state: Any) -> Iterator[tuple[str, str]]:
        """Yield where code or content differ. What another machine may round otherwise is no difference."""
        row = self._rows.get(number)
        if row is None:
            yield "missing", _short(self._space.content(state))
            return
        try:
            recorded = self._space.decode(row["code"])
        except ValueError as error:
            yield _short(row["code"]), f"a state that can be read: {error}"
            return
        if not self._space.is_close(recorded, state):
            yield _short(row["content"]), _short(self._space.content(state))
        elif row["content"] != (content := self._space.content(recorded)):
            yield _short(row["content"]), _short(content)


def _short(text: str) -> str:
    return f"“{text[:_SHOWN]}”"
