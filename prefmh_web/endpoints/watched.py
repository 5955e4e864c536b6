"""Watching requests from outside the code that makes them: how many have ended, and a word that keeps the rest back.

A test of an endpoint makes its requests far down, on many threads. Who watches sees them here, and can stop them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from prefmh_web.endpoints.errors import Stopped


class Watch:
    """What the clients that are made while it is watched tell, and ask before each request. For several threads."""

    def __init__(self) -> None:
        self._lock, self._over, self._ended = threading.Lock(), threading.Event(), 0

    @property
    def requests(self) -> int:
        """How many requests have ended, well or not."""
        return self._ended

    def stop(self) -> None:
        """Let no further request begin; those that are under way end by themselves."""
        self._over.set()

    def admit(self) -> None:
        """Let a request begin.

        Raises:
            Stopped: none may.
        """
        if self._over.is_set():
            raise Stopped("it was stopped")

    def note(self) -> None:
        """Count a request that has ended."""
        with self._lock:
            self._ended += 1


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watched() -> Iterator[Watch]:
    """Watch the requests of all clients that this thread makes in the block."""
    watch = Watch()
    before = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(before)


def watching() -> Watch | None:
    """Return who watches what this thread does now."""
    return _watch.get()
