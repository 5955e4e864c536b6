"""One reading of a file at a time, whoever was told to read it.

On PostgreSQL an advisory lock, which a process that dies lets go of; on SQLite, with its one process, a set in memory.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

# The first half of the advisory lock's key; `engine/caps.py` has another.
_LOCK_CLASS = 0x70_6D_68
_here: set[int] = set()
_here_lock = threading.Lock()


@contextmanager
def reading_alone(catalog_id: int) -> Iterator[bool]:
    """Yield True if nobody else is reading this catalog, and keep others from it meanwhile; else yield False."""
    if connection.vendor == "postgresql":
        yield from _in_postgres(catalog_id)
    else:
        yield from _in_memory(catalog_id)


def being_read() -> set[int]:
    """Return the catalogs that somebody is reading now."""
    if connection.vendor != "postgresql":
        return set(_here)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT objid::int FROM pg_locks WHERE locktype = 'advisory' AND granted AND classid = %s"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())",
            [_LOCK_CLASS],
        )
        return {catalog_id for (catalog_id,) in cursor.fetchall()}


def _in_postgres(catalog_id: int) -> Iterator[bool]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [_LOCK_CLASS, catalog_id])
        (alone,) = cursor.fetchone()
    try:
        yield alone
    finally:
        if alone:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [_LOCK_CLASS, catalog_id])


def _in_memory(catalog_id: int) -> Iterator[bool]:
    with _here_lock:
        alone = catalog_id not in _here
        _here.add(catalog_id)
    try:
        yield alone
    finally:
        if alone:
            _here.discard(catalog_id)
