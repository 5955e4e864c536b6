"""The tests' SQLite database put back as it was, by copying pages: a millisecond, where a flush takes thirty."""

import itertools
import sqlite3
from collections.abc import Iterator

from django.db import connection

# Numbers of rows are never given twice in a run: what a process remembers by them is another test's.
_NUMBERS: Iterator[int] = itertools.count(1000, 1000)
_empty = sqlite3.connect(":memory:", check_same_thread=False)


def keep_empty() -> None:
    """Remember the database as it is now, before the first test."""
    connection.ensure_connection()
    connection.connection.backup(_empty)
    connection.close()


def make_empty() -> None:
    """Put the database back as it was before the first test."""
    connection.ensure_connection()
    _empty.backup(connection.connection)
    first = next(_NUMBERS)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM sqlite_sequence")
        cursor.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT name, %s FROM sqlite_schema"
            " WHERE type = 'table' AND sql LIKE '%%AUTOINCREMENT%%'",
            [first],
        )
