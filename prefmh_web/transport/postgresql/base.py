"""The database's backend, by the name under which Django looks for one.

A vote takes a connection from the pool, and Django asks the server each time whether that still lives: one more way to
the server and back for every vote. A server that has ended, or has ended the session, has closed the connection, and
that shows here without asking. Only what shows nothing, such as a server whose machine has vanished, needs the
question; so it is asked once in a while.

What a connection has prepared stays in the memory of the server's process, statement by statement and once more for
each combination of the sizes of its numbers. psycopg keeps a hundred, which rare ones would fill over some minutes of
voting; the vote's own are fewer than half of what is kept here.

A new cursor finds out anew how each column of what it has selected is read. Statements whose rows are read at once
share one, which knows that already.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import psycopg
from django.db.backends.postgresql import base
from django.db.backends.utils import CursorWrapper
from django.utils.asyncio import async_unsafe
from psycopg_pool import ConnectionPool

_ASK_EVERY_S = 10.0
_MAX_PREPARED = 40
_KEPT_CURSOR = "prefmh_kept_cursor"
_asked_at: WeakKeyDictionary[psycopg.Connection[Any], float] = WeakKeyDictionary()


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's own, but for how pooled connections are checked, and for what a connection keeps: a cursor, and fewer
    prepared statements.
    """

    # Django's, of which django-stubs do not know.
    _prepare_cursor: Callable[[Any], CursorWrapper]

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection that lives as far as can be seen; those that do not are given up for new ones.

        Raises:
            psycopg.OperationalError: the pool has none, and cannot make one in time.
        """
        connection = super().get_new_connection(conn_params)
        if self.pool:
            # All that lay there may have ended together.
            for _ in range(self.pool.max_size):
                if _lives(connection):
                    break
                connection.close()
                # The pool drops what is closed, and makes another one.
                self.pool.putconn(connection)
                connection = super().get_new_connection(conn_params)
        connection.prepared_max = _MAX_PREPARED
        return connection

    @async_unsafe
    def kept_cursor(self) -> CursorWrapper:
        """Return the one cursor that a connection keeps: what it has found is gone as soon as this is asked for again.
        It is not to be closed.
        """
        self.close_if_health_check_failed()
        self.ensure_connection()
        with self.wrap_database_errors:
            cursor = getattr(self.connection, _KEPT_CURSOR, None)
            if cursor is None:
                cursor = self.create_cursor()
                setattr(self.connection, _KEPT_CURSOR, cursor)
            # What `cursor` returns comes from it, too: tests and logs see these statements like all others.
            return self._prepare_cursor(cursor)


def _lives(connection: psycopg.Connection[Any]) -> bool:
    now = time.monotonic()
    if connection.closed:
        return False
    if not _has_something_to_say(connection) and now - _asked_at.get(connection, 0.0) < _ASK_EVERY_S:
        return True
    try:
        ConnectionPool.check_connection(connection)
    except psycopg.Error:
        return False
    _asked_at[connection] = now
    return True


def _has_something_to_say(connection: psycopg.Connection[Any]) -> bool:
    """True if bytes have come that nobody asked for: mostly the end."""
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))
