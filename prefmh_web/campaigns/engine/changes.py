"""Changes that belong together, made as one statement.

PostgreSQL makes several changes in one statement, each a part of a WITH, which costs little more than one of them
alone. All parts see the record as it was before the statement, and their order is not fixed: none may need what another
does, nor touch its row. On SQLite, which has no such statement and no network in between, they are made one by one, in
the order in which they were added.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.db import connection, models

from prefmh_web.campaigns.engine.rows import adapted, insertion, note_stored
from prefmh_web.campaigns.engine.statements import Statement


class Changes:
    """Changes of one row each, to be made at once."""

    def __init__(self) -> None:
        self._words: list[str] = []
        self._values: list[list[Any]] = []
        self._inserted: dict[int, models.Model] = {}

    def insert(self, instance: models.Model) -> None:
        """Add the storing of a new instance; see `rows.insert`."""
        words, values = insertion(instance)
        self._inserted[len(self._words)] = instance
        self._words.append(words)
        self._values.append(values)

    def change(self, statement: Statement, *values: object) -> None:
        """Add a statement that returns one value of the row that it changes."""
        self._words.append(statement.sql)
        self._values.append([adapted(value) for value in values])

    def __contains__(self, statement: Statement) -> bool:
        return statement.sql in self._words

    def make(self) -> list[Any]:
        """Make them; return what each returns of its row, None where it has changed none.

        Raises:
            django.db.IntegrityError: a constraint does not hold.
        """
        if not self._words:
            return []
        found = self._at_once() if connection.vendor == "postgresql" else self._one_by_one()
        for place, instance in self._inserted.items():
            note_stored(instance, found[place])
        return found

    def _at_once(self) -> list[Any]:
        with connection.cursor() as cursor:
            cursor.execute(_as_one(tuple(self._words)), [value for values in self._values for value in values])
            return list(cursor.fetchone())

    def _one_by_one(self) -> list[Any]:
        found = []
        with connection.cursor() as cursor:
            for words, values in zip(self._words, self._values, strict=True):
                cursor.execute(words, values)
                row = cursor.fetchone()
                found.append(None if row is None else row[0])
        return found


@lru_cache(maxsize=64)
def _as_one(statements: tuple[str, ...]) -> str:
    parts = ", ".join(f"change_{place} (found) AS ({words})" for place, words in enumerate(statements))
    found = ", ".join(f"(SELECT found FROM change_{place})" for place in range(len(statements)))  # noqa: S608 - numbers
    return f"WITH {parts} SELECT {found}"
