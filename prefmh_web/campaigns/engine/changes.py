"""Changes that belong together, made as one statement.

PostgreSQL makes several changes in one statement, each a part of a WITH, which costs little more than one of them
alone. All parts see the record as it was before the statement, and none may touch another's row. Their order is not
fixed: a part that needs others names them. On SQLite, which has no such statement and no network in between, they are
made one by one, in the order in which they were added.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import models

from prefmh_web.campaigns.engine.rows import adapted, current, executed, insertion, note_stored
from prefmh_web.campaigns.engine.statements import Condition, Statement


@dataclass(frozen=True)
class _Change:
    """One part: its words and its values.

    Args:
        statement: what it runs, if it changes a row.
        instance: what it stores, if it stores a new one.
        after: the places of the parts without which it is not made, and what the last of them must return.
    """

    words: str
    values: list[Any]
    statement: Statement | None = None
    instance: models.Model | None = None
    after: tuple[tuple[int, ...], str] | None = None


class Changes:
    """Changes of one row each, to be made at once. Each returns one value of its row, or None if it changes none."""

    def __init__(self) -> None:
        self._connection = current()
        self._changes: list[_Change] = []
        self._found: list[Any] = []

    def __contains__(self, statement: Statement) -> bool:
        return any(change.statement is statement for change in self._changes)

    def insert(self, instance: models.Model, only_if: Condition | None = None) -> None:
        """Add the storing of a new instance; see `rows.insert`. Where the condition does not hold, it has no key then.

        What else is added under the same condition must come before.
        """
        words, values = insertion(instance, "" if only_if is None else f" WHERE {only_if.sql}")
        if only_if is not None:
            values = values + only_if.values
        self._changes.append(_Change(words, values, instance=instance))

    def insert_after(self, instance: models.Model, *statements: Statement, found: str) -> None:
        """Add the storing of a new instance if these statements change their rows, and the last returns `found`."""
        places = tuple(self._place(statement) for statement in statements)
        if self._connection.vendor == "postgresql":
            names = ", ".join(f"change_{place}" for place in places)
            words, values = insertion(instance, f" FROM {names} WHERE change_{places[-1]}.found = %s")
            self._changes.append(_Change(words, [*values, found], instance=instance))
        else:
            self._changes.append(_Change(*insertion(instance), instance=instance, after=(places, found)))

    def change(self, statement: Statement, *values: object, only_if: Condition | None = None) -> None:
        """Add a statement that returns one value of the row that it changes."""
        all_values = [adapted(value, self._connection) for value in values]
        if only_if is not None:
            all_values += only_if.values
        self._changes.append(_Change(statement.words(self._connection, only_if), all_values, statement))

    def make(self) -> None:
        """Make them.

        Raises:
            django.db.IntegrityError: a constraint does not hold.
        """
        if not self._changes:
            return
        self._found = self._at_once() if self._connection.vendor == "postgresql" else self._one_by_one()
        for change, found in zip(self._changes, self._found, strict=True):
            if change.instance is not None and found is not None:
                note_stored(change.instance, found)

    def found(self, statement: Statement) -> Any:
        """Return what a statement has returned of its row, None if it has changed none."""
        return self._found[self._place(statement)]

    def _place(self, statement: Statement) -> int:
        return next(place for place, change in enumerate(self._changes) if change.statement is statement)

    def _at_once(self) -> list[Any]:
        words = _as_one(tuple(change.words for change in self._changes))
        [found] = executed(words, [value for change in self._changes for value in change.values]).fetchall()
        return list(found)

    def _one_by_one(self) -> list[Any]:
        found: list[Any] = []
        for change in self._changes:
            rows = executed(change.words, change.values).fetchall() if _is_due(change, found) else []
            found.append(rows[0][0] if rows else None)
        return found


def _is_due(change: _Change, found: list[Any]) -> bool:
    if change.after is None:
        return True
    places, wanted = change.after
    return all(found[place] is not None for place in places) and found[places[-1]] == wanted


@lru_cache(maxsize=64)
def _as_one(statements: tuple[str, ...]) -> str:
    parts = ", ".join(f"change_{place} (found) AS ({words})" for place, words in enumerate(statements))
    found = ", ".join(f"(SELECT found FROM change_{place})" for place in range(len(statements)))  # noqa: S608 - numbers
    return f"WITH {parts} SELECT {found}"
