"""This process: its worker and tasks, its database put back as it was, and the server on a thread of it."""

from __future__ import annotations

import contextlib
import itertools
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from celery.signals import before_task_publish, task_postrun
from django.conf import settings
from django.core.cache import caches
from django.db import connection, connections

from prefmh_web import celery as tasks_here
from prefmh_web import embedded
from prefmh_web.campaigns.models import Campaign
from prefmh_web.celery import THREADS
from prefmh_web.celery import app as celery_app
from prefmh_web.embedded import Clock, server
from prefmh_web.tasks import settle_parts, sweep, sweep_leases
from prefmh_web.transport import publishing
from tests.support.models import port_from

# Celery workers of the server stack's tests, and when they have nothing left to do.


class _Undone:
    """The tasks that threads of this process have given hints of and its worker has not done."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._changed = threading.Condition()

    def add(self, headers: dict, **_) -> None:
        with self._changed:
            self._ids.add(headers["id"])

    def discard(self, task_id: str, **_) -> None:
        with self._changed:
            self._ids.discard(task_id)
            self._changed.notify_all()

    def wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            # A hint is either on its way to the broker or among these; a task that is done may have given another.
            is_sent = publishing.wait_until_sent(max(0.0, deadline - time.monotonic()))
            with self._changed:
                is_done = self._changed.wait_for(lambda: not self._ids, max(0.0, deadline - time.monotonic()))
                if not (is_sent and is_done):
                    raise TimeoutError(f"{len(self._ids)} tasks are still queued or running")
            if publishing.wait_until_sent(0) and not self._ids:
                return


_here: _Undone | None = None


@contextlib.contextmanager
def worker_in_this_process() -> Iterator[None]:
    """Let a worker do this process's tasks on threads of it, where a test's settings and stand-ins hold."""
    global _here
    # On import it makes a task of its own.
    from celery.contrib.testing.worker import start_worker

    _here = _Undone()
    before_task_publish.connect(_here.add, weak=False)
    task_postrun.connect(_here.discard, weak=False)
    with start_worker(celery_app, pool="threads", concurrency=3, perform_ping_check=False, queues=list(THREADS)):
        yield


def wait_for_worker(timeout: float) -> None:
    """Return once no task of a worker in this process is queued or running, those that tasks queue included; where the
    workers are other processes, once they have read the files of all campaigns.

    Raises:
        TimeoutError: there was still something to do after `timeout` seconds.
    """
    if _here is not None:
        _here.wait(timeout)
        return
    publishing.wait_until_sent(timeout)
    # What a worker of another process has taken, no broker tells. What makers of campaigns wait for is this.
    deadline = time.monotonic() + timeout
    while files := _files_to_read():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{files} files are still being read")
        time.sleep(0.01)


def _files_to_read() -> int:
    from prefmh_web.campaigns.models import Catalog

    return Catalog.objects.filter(status=Catalog.Status.READING).count()


# The tests' SQLite database put back as it was, by copying pages: a millisecond, where a flush takes thirty.


# Numbers of rows are never given twice in a run: what a process remembers by them is another test's.
_NUMBERS: Iterator[int] = itertools.count(1000, 1000)
_REMEMBERING = tuple(
    f"prefmh_web.{name}." for name in ("voting", "campaigns", "console", "objects", "participants", "setup")
)
_empty = sqlite3.connect(":memory:", check_same_thread=False)
_numbered_from = 0


def keep_empty() -> None:
    """Remember the database as it is now, before the first test."""
    connection.ensure_connection()
    connection.connection.backup(_empty)
    _number_on()
    connection.close()


def make_empty() -> None:
    """Put the database back as it was before the first test."""
    connection.ensure_connection()
    _empty.backup(connection.connection)
    _number_on()


def _number_on() -> None:
    """Let every table give its next row a number beyond all that were given in this run."""
    global _numbered_from
    _numbered_from = next(_NUMBERS)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM sqlite_sequence")
        cursor.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT name, %s FROM sqlite_schema"
            " WHERE type = 'table' AND sql LIKE '%%AUTOINCREMENT%%'",
            [_numbered_from],
        )


@dataclass(frozen=True)
class _Copy:
    """The database and the media after a campaign was made, the numbers of its row and of its owner's, and beyond which
    number all its rows are.
    """

    database: sqlite3.Connection
    media: Path
    campaign: int
    owner: int
    numbered_from: int


_copies: dict[str, _Copy] = {}
_folder = tempfile.TemporaryDirectory(prefix="prefmh-copies-")


def copied(owner, made_of: object, make: Callable[[], Campaign]) -> Campaign:
    """Return the campaign that `make` makes: of the same parts made once in a run, and copied from then on.

    It is made anew where the database has more in it than the owner, and on other databases than SQLite.

    Args:
        made_of: all that `make` depends on; its `repr` tells two apart.
    """
    if not settings.EMBEDDED or not _holds_only_an_owner():
        return make()
    key = repr((owner.username, made_of, settings.SCORERS, settings.LOCAL_MODELS, settings.LOCAL_IMAGE_MODELS))
    if found := _copies.get(key):
        return _restored(found, owner)
    campaign = make()
    database, media = sqlite3.connect(":memory:", check_same_thread=False), Path(_folder.name) / str(len(_copies))
    connection.connection.backup(database)
    if settings.MEDIA_ROOT.exists():
        shutil.copytree(settings.MEDIA_ROOT, media)
    _copies[key] = _Copy(database, media, campaign.pk, owner.pk, _numbered_from)
    return campaign


def _holds_only_an_owner() -> bool:
    """True where nothing but the owner and their group was stored since the database was empty."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_sequence WHERE seq > %s", [_numbered_from])
        filled = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT (SELECT count(*) FROM django_session), (SELECT count(*) FROM auth_user)")
        return filled <= {"auth_user", "auth_user_groups"} and cursor.fetchone() == (0, 1)


def _restored(found: _Copy, owner) -> Campaign:
    global _numbered_from
    _numbered_from = found.numbered_from
    found.database.backup(connection.connection)
    if found.media.exists():
        shutil.copytree(found.media, settings.MEDIA_ROOT, dirs_exist_ok=True)
    # Of another test whose campaign had the same number.
    _forget()
    owner.pk = found.owner
    owner.refresh_from_db()
    return Campaign.objects.get(pk=found.campaign)


def _forget() -> None:
    """Empty what this process remembers of campaigns. Connections to servers, which others keep, stay open."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_REMEMBERING):
            for each in vars(module).values():
                if hasattr(each, "cache_clear") and each.__module__ == name:
                    each.cache_clear()
    caches["default"].clear()


def wait_until_idle(timeout: float = 120) -> None:
    """Return once no task is queued or running, those that tasks queue included.

    Raises:
        TimeoutError: there was still one after `timeout` seconds.
    """
    if not settings.EMBEDDED:
        wait_for_worker(timeout)
        return
    while pending := set(tasks_here._running):
        if not wait(pending, timeout, return_when="FIRST_COMPLETED").done:
            raise TimeoutError(f"{len(pending)} tasks are still running")


def _sweep() -> None:
    """Sweep once, as the embedded clock does or as beat does."""
    if settings.EMBEDDED:
        embedded.sweep_everything()
    else:
        sweep.delay()
        sweep_leases.delay()
        settle_parts.delay()


def on_own_connection(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return work for a thread, which closes the database connection of its own at the end."""

    def worked(*given: Any) -> Any:
        try:
            return work(*given)
        finally:
            connection.close()

    return worked


def sweep_everything() -> None:
    """Sweep once, and wait until all that follows from it is done."""
    _sweep()
    wait_until_idle()


class LiveServer:
    """The server of `manage.py serve` on a thread of this process: database, layer and tasks are shared."""

    def __init__(self) -> None:
        self.port = port_from(18_000)
        self.url = f"http://127.0.0.1:{self.port}"
        self._server = server("127.0.0.1", self.port)
        self._thread = threading.Thread(target=self._server.run, name="server")
        self._clock = Clock(_sweep, every_s=1)

    def start(self) -> None:
        self._thread.start()
        self._clock.start()
        while not self._server.started:
            assert self._thread.is_alive(), f"the server on port {self.port} could not start"
            time.sleep(0.01)

    def drop_connections(self) -> None:
        """Cut every open connection, sockets included, as a bad network does."""
        for each in list(self._server.server_state.connections):
            each.loop.call_soon_threadsafe(each.transport.abort)

    def unsent(self) -> list[int]:
        """Return how many bytes wait in this process for each open connection to take them in."""
        connections = list(self._server.server_state.connections)
        return [connection.transport.get_write_buffer_size() for connection in connections]

    def stop(self) -> None:
        self._clock.stop()
        self._server.should_exit = True
        self._thread.join()
        wait_until_idle()


# Tasks of this process one after another, on one thread: the same campaign then runs the same way every time.


@contextmanager
def tasks_in_turn() -> Iterator[None]:
    """Run every queue's tasks in the order in which they are given; at the end, wait for the last.

    Embedded, each queue has threads of its own, and which of two tasks comes first is chance. The thread keeps no
    connection to the database when it goes.
    """
    usual = dict(tasks_here._pools)
    with ThreadPoolExecutor(1, thread_name_prefix="task-in-turn") as one:
        tasks_here._pools.update(dict.fromkeys(usual, one))
        try:
            yield
            wait_until_idle()
        finally:
            one.submit(connections.close_all).result()
            tasks_here._pools.update(usual)
