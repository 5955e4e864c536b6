"""What a thread needs for its own work, and lends to others while a server is at work for it.

    share      let so many threads of this process work at a time
    working    hold a place among these
    lent       give the place, and the database connection if it comes from a pool, to others for a while

So a process may have many more calls under way than connections. SQLite has one lock for all who write: hundreds of
threads that want it at once would keep each other, and people's votes, waiting far longer than their work takes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

_places: threading.Semaphore | None = None
_mine = threading.local()


def share(places: int | None) -> None:
    """Let so many of the threads that say when they are `working` do so at a time; None: as many as come."""
    global _places
    _places = None if places is None else threading.Semaphore(places)


@contextmanager
def working() -> Iterator[None]:
    """Hold a place, which is waited for."""
    places = _places
    if places is None:
        yield
        return
    places.acquire()
    _mine.place = places
    try:
        yield
    finally:
        _mine.place = None
        places.release()


@contextmanager
def lent() -> Iterator[None]:
    """Let others work while this thread waits: for a server, or for a place there."""
    # Asked in this order: whether it commits by itself, a connection that is closed would be opened to tell.
    if _is_pooled() and connection.connection is not None and connection.get_autocommit():
        connection.close()
    place: threading.Semaphore | None = getattr(_mine, "place", None)
    if place is None:
        yield
        return
    place.release()
    try:
        yield
    finally:
        place.acquire()


def _is_pooled() -> bool:
    return connection.vendor == "postgresql" and bool(connection.settings_dict["OPTIONS"].get("pool"))
