"""SQLite's write-ahead log, which keeps pages as they were before: it is emptied where something must be gone."""

import logging

from django.db import OperationalError, connection

logger = logging.getLogger(__name__)

_PATIENCE_MS = 1000


def empty() -> None:
    """Write what the log holds into the database, where deleted rows are overwritten, and cut the log to nothing.

    Somebody who still reads an older state holds a part of it; the next call takes that, at the latest the server's
    stop. Databases other than SQLite have no such file.
    """
    if connection.vendor != "sqlite":
        return
    with connection.cursor() as cursor:
        patience_ms = cursor.execute("PRAGMA busy_timeout").fetchone()[0]
        # Nobody who asks to be forgotten waits for the end of an export.
        cursor.execute(f"PRAGMA busy_timeout = {_PATIENCE_MS}")
        try:
            is_busy, *_ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        except OperationalError:
            is_busy = True
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {patience_ms}")
    if is_busy:
        logger.warning("SQLite's log is not empty yet: somebody reads. It is emptied at the next call or the stop.")
