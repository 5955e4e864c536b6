"""Keeping a claim in the database while one works: it ends by itself soon after its holder's process does.

As with `endpoints.slots`, clocks must agree to within `CLAIM_S`, and no holder may be stopped for longer than it.
"""

import logging
import os
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.db import Error, connection
from django.db.models import Model, QuerySet
from django.utils import timezone

logger = logging.getLogger(__name__)

CLAIM_S = 60.0
RENEW_EVERY_S = CLAIM_S / 3


class Renewable(Protocol):
    """What somebody holds while they work, and has to be renewed."""

    def renew(self) -> None:
        """Hold it for another while."""
        ...


def claim_end() -> datetime:
    """Return until when a claim holds that is taken or renewed now."""
    return timezone.now() + timedelta(seconds=CLAIM_S)


@contextmanager
def renewed(claim: Renewable) -> Iterator[None]:
    """Renew a claim from another thread, since work here holds its own."""
    held = _Held(claim)
    _renewer.add(held)
    try:
        yield
    finally:
        _renewer.remove(held)


class Claim:
    """Rows that somebody holds while they work, each until the moment in a column of its.

    Args:
        keys: of the rows.
        until: the moment with which they were taken.
    """

    def __init__(self, model: type[Model], keys: Collection[int], column: str, until: datetime) -> None:
        self._rows, self._column, self._until = model._default_manager.filter(pk__in=keys), column, until

    def __str__(self) -> str:
        return f"{self._column} of rows of {self._rows.model.__name__}"

    def renew(self) -> None:
        """Hold them for another while."""
        until = claim_end()
        self._mine().update(**{self._column: until})
        self._until = until

    def free(self) -> None:
        """Give them back."""
        self._mine().update(**{self._column: None})

    def _mine(self) -> QuerySet[Any]:
        # Only as they were taken: one that was given up, or that ran out, may be somebody else's by now.
        return self._rows.filter(**{self._column: self._until})


@contextmanager
def held(model: type[Model], keys: Collection[int], column: str, until: datetime) -> Iterator[None]:
    """Keep rows claimed that were taken until a moment, as `Claim` says, and free them at the end."""
    if not keys:
        yield
        return
    claim = Claim(model, keys, column, until)
    try:
        with renewed(claim):
            yield
    finally:
        claim.free()


class _Held:
    """A claim that is being worked on. The lock is held while it is renewed, so that none is renewed after its end."""

    def __init__(self, claim: Renewable) -> None:
        self.claim, self.lock, self.is_over = claim, threading.Lock(), False
        self.due = time.monotonic() + RENEW_EVERY_S

    def renew(self) -> None:
        with self.lock:
            if self.is_over:
                return
            try:
                self.claim.renew()
            except Error:
                logger.warning("could not renew the claim on %s; trying again", self.claim, exc_info=True)
            self.due = time.monotonic() + RENEW_EVERY_S


class _Renewer:
    """Renews all claims of this process, on one thread that ends when there has been none for a while."""

    def __init__(self) -> None:
        self._held: set[_Held] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0

    def add(self, held: _Held) -> None:
        with self._changed:
            self._held.add(held)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="claims", daemon=True)
                self._thread.start()
            elif held.due < self._wakes_at:
                self._changed.notify()

    def remove(self, held: _Held) -> None:
        with self._changed:
            self._held.discard(held)
        with held.lock:
            held.is_over = True

    def _run(self) -> None:
        while (held := self._next()) is not None:
            held.renew()
            # Of this thread's own; it is seldom needed.
            connection.close()

    def _next(self) -> _Held | None:
        """Wait until a claim is due, and return it; None if there has been none for a while, and this thread ends."""
        with self._changed:
            while True:
                was_idle = not self._held
                held = min(self._held, key=lambda held: held.due, default=None)
                now = time.monotonic()
                if held is not None and held.due <= now:
                    return held
                self._wakes_at = now + RENEW_EVERY_S if held is None else held.due
                self._changed.wait(self._wakes_at - now)
                if was_idle and not self._held and time.monotonic() >= self._wakes_at:
                    self._thread = None
                    return None


def _begin() -> None:
    global _renewer
    _renewer = _Renewer()


_renewer = _Renewer()
# A child has none of its parent's threads.
os.register_at_fork(after_in_child=_begin)
