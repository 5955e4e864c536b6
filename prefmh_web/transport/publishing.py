"""Task messages on their way to the broker: sent by a thread of its own, so that nobody who votes waits for a broker.

A broker that is frozen refuses nothing and answers nothing. What waits for it here is bounded: the same hint twice is
one, and beyond `AT_MOST_WAITING` new ones are dropped, since the sweep finds the work. A hint that could not be sent
is tried again, with all behind it, until the broker answers.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from django.conf import settings

if TYPE_CHECKING:
    from celery import Celery
    from kombu import Connection

logger = logging.getLogger(__name__)

AT_MOST_WAITING = 1000
# How long one attempt may take, and the pause before the next.
PATIENCE_S = 2.0
_AGAIN_AFTER_S = 1.0
# A process that ends gives its last hints this long to leave.
_LAST_WAIT_S = 3.0


@dataclass(frozen=True)
class TaskMessage:
    """One call of a task, for a queue of its own where it has one."""

    task: str
    arguments: tuple[int, ...]
    queue: str | None = None

    def send(self, connection: Connection | None = None) -> None:
        """Call the task, by one of Celery's own connections if none is given."""
        options: dict[str, Any] = {"connection": connection}
        if self.queue:
            options["queue"] = self.queue
        _celery().tasks[self.task].apply_async(self.arguments, **options)


@cache
def _celery() -> Celery:
    """Return our Celery application with its tasks loaded. Celery loads them by itself in workers only.

    Not when Django starts: commands that give no hint do without Celery, which takes a third of a second to load. By
    name: Celery's “current” application is whichever this thread has made last.
    """
    from prefmh_web.celery import app

    app.loader.import_default_modules()
    return app


class Publisher:
    """Sends hints in the order in which they came, on a thread that lives as long as the process.

    Args:
        connect: makes a connection to the broker, whose attempts give up in time.
        send: sends one hint by it.
    """

    def __init__(self, connect: Callable[[], Connection], send: Callable[[TaskMessage, Connection], None]) -> None:
        self._connect, self._send = connect, send
        # A dictionary for its order; no hint waits twice.
        self._waiting: dict[TaskMessage, None] = {}
        self._sending: TaskMessage | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_failing = False

    def put(self, hint: TaskMessage) -> bool:
        """Take a hint to be sent; return at once, with False when too many wait and it is dropped."""
        with self._changed:
            if len(self._waiting) >= AT_MOST_WAITING and hint not in self._waiting:
                return False
            self._waiting[hint] = None
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="hints", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return True

    def wait_until_sent(self, timeout: float) -> bool:
        """Return once nothing waits any more; False if something still does after `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and self._sending is None, timeout)

    def _run(self) -> None:
        while True:
            try:
                with self._connect() as connection:
                    while True:
                        self._send_next(connection)
                        if self._is_failing:
                            logger.warning("the task broker answers again")
                        self._is_failing = False
            except self._errors() as error:
                if not self._is_failing:
                    logger.warning(
                        "the task broker does not answer (%s): tasks and new proposals are delayed",
                        type(error).__name__,
                    )
                self._is_failing = True
                time.sleep(_AGAIN_AFTER_S)

    def _send_next(self, connection: Connection) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting)
            hint = self._sending = next(iter(self._waiting))
            # Given again from here on, it is a new hint: what it is about may have been read already.
            del self._waiting[hint]
        unsent: dict[TaskMessage, None] = {hint: None}
        try:
            self._send(hint, connection)
            unsent.clear()
        finally:
            with self._changed:
                self._waiting = unsent | self._waiting
                self._sending = None
                self._changed.notify_all()

    def _errors(self) -> tuple[type[BaseException], ...]:
        from kombu.exceptions import OperationalError

        # Each transport has its own, and kombu wraps some of them.
        connection = self._connect()
        return (OperationalError, OSError, *connection.connection_errors, *connection.channel_errors)


_taken_here: dict[str, Callable[..., bool]] = {}


def take_here(task: str, taker: Callable[..., bool]) -> None:
    """Give this process's own hints of one kind to a taker in it, and to the broker only what that does not take.

    Args:
        taker: is called with the task's arguments; returns at once whether it has taken the hint.
    """
    _taken_here[task] = taker


def publish(hint: TaskMessage) -> None:
    """See that a task is called soon, without waiting for it or for the broker."""
    if (taker := _taken_here.get(hint.task)) and taker(*hint.arguments):
        return
    if settings.EMBEDDED:
        hint.send()
    elif not _publisher.put(hint):
        logger.debug("a task message was dropped; the sweep will find the work")


def wait_until_sent(timeout: float) -> bool:
    """Return once no hint of this process waits to be sent; False if some still do after `timeout` seconds."""
    return _publisher.wait_until_sent(timeout)


def bounded(app: Celery, patience_s: float) -> dict[str, Any]:
    """Return the options of a connection to the broker whose attempts give up in time, as far as libraries can."""
    bounds = {
        # Redis
        "socket_timeout": patience_s,
        "socket_connect_timeout": patience_s,
        # RabbitMQ
        "read_timeout": patience_s,
        "write_timeout": patience_s,
        # Celery would try again by itself for as long as it takes.
        "max_retries": 0,
    }
    return {"connect_timeout": patience_s, "transport_options": {**app.conf.broker_transport_options, **bounds}}


def _connection() -> Connection:
    app = _celery()
    return app.connection_for_write(**bounded(app, PATIENCE_S))


def _new_publisher() -> Publisher:
    return Publisher(_connection, lambda hint, connection: hint.send(connection))


def _begin() -> None:
    global _publisher
    _publisher = _new_publisher()


_publisher = _new_publisher()
# A worker's children have neither the thread nor, perhaps, a lock that is free.
os.register_at_fork(after_in_child=_begin)
# A command that starts a campaign ends in the next moment.
atexit.register(lambda: _publisher.wait_until_sent(_LAST_WAIT_S))
