"""Can this process do its work, and what waits between the processes: task queues and their workers, the channel layer.

Whoever restarts processes or sends people to them asks every few seconds, by two pages that need no session, no cookie
and no TLS.

Every question to another server gives up in time: it is asked when something is wrong. Together, the questions of a
probe take less than two seconds. A library's own timeouts seldom cover every wait, so each question is asked on a
thread of its own, which ends when the server answers or the library gives up. A question that still waits is not asked
a second time: whoever asks it again waits for the same answer, no longer than if they had asked first, and a probe
every few seconds piles up no threads.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu import Connection, Producer
from kombu.exceptions import OperationalError

from prefmh_web.celery import app, running
from prefmh_web.transport import publishing, shared_redis

QUEUES = ("default", "files", "endpoints", "gpu", "scores")
# Those without whose worker nothing goes on.
NEEDED = ("default", "files")
# Nobody knows how many workers there are, so all of this passes; the second only where one is missed.
_WORKERS_ANSWER_S, _SLOW_WORKERS_ANSWER_S = 0.4, 3.0
# What asking them takes beside.
_MORE_S = 0.4


class Unreachable(Exception):  # noqa: N818 - reads as the sentence it starts
    """A server beside ours does not answer; the message names it."""


def start_probes(*, workers: bool) -> None:
    """Start all checks below at once; those of the workers too if asked."""
    if settings.EMBEDDED:
        return
    if not shared_redis.is_out():
        begin(shared_redis.ask)
    begin(_lengths)
    if workers:
        begin(_active_queues, _WORKERS_ANSWER_S)


def lengths() -> dict[str, int]:
    """Return how many messages wait in each queue. Those a worker has taken are not among them.

    Raises:
        Unreachable: the broker does not answer.
    """
    if settings.EMBEDDED:
        return {"in-process": running()}
    return _of_the_broker(settings.BROKER_TIMEOUT_SECONDS, _lengths)


def consumers(is_urgent: bool = False) -> dict[str, set[str]]:
    """Return the workers that take from each queue.

    Args:
        is_urgent: do not wait for workers that are slow to answer.

    Raises:
        Unreachable: the broker does not answer.
    """
    if settings.EMBEDDED:
        return {"in-process": {"this process"}}
    found = _consumers(_WORKERS_ANSWER_S)
    return found if is_urgent or set(NEEDED) <= found.keys() else _consumers(_SLOW_WORKERS_ANSWER_S)


def _consumers(patience_s: float) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    seconds = max(patience_s + _MORE_S, settings.BROKER_TIMEOUT_SECONDS)
    for worker, queues in _of_the_broker(seconds, _active_queues, patience_s).items():
        for queue in queues:
            found.setdefault(queue["name"], set()).add(worker)
    return found


def try_channel_layer() -> None:
    """Ask the server that carries messages between the processes.

    Raises:
        Unreachable: it does not answer.
    """
    if settings.EMBEDDED:
        return
    # Known without asking: whoever probes again and again does not wait each time.
    if shared_redis.is_out():
        raise Unreachable("The channel layer does not answer (Redis is not available).")
    try:
        within(settings.REDIS_TIMEOUT_SECONDS, shared_redis.ask)
    except shared_redis.errors() as error:
        shared_redis.note_failure(error)
        raise Unreachable(f"The channel layer does not answer ({type(error).__name__}).") from error


def _lengths() -> dict[str, int]:
    # kombu takes parts of a second; its types say otherwise.
    timeout: Any = settings.BROKER_TIMEOUT_SECONDS
    with app.connection_for_read(**publishing.bounded(app, timeout)) as connection:
        patience: dict[str, Any] = {"max_retries": 1, "interval_start": 0.2, "timeout": timeout}
        connection.ensure_connection(**patience)
        _send_to_nobody(connection)
        return {queue: _length(connection, queue) for queue in QUEUES}


def _send_to_nobody(connection: Connection) -> None:
    """Send what reaches no queue. RabbitMQ without disk or memory answers those who only ask, and nobody who sends."""
    if connection.transport.driver_type == "amqp":
        Producer(connection).publish("", routing_key="prefmh.nobody")


def _length(connection, queue: str) -> int:
    channel = connection.channel()
    try:
        return channel.queue_declare(queue=queue, passive=True).message_count
    except connection.channel_errors:
        # Nothing was ever sent to it.
        return 0
    finally:
        channel.close()


def _active_queues(patience_s: float) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    return app.control.inspect(timeout=patience_s).active_queues() or {}


def _of_the_broker(seconds: float, question: Callable, *arguments) -> Any:
    """Return what `within` does.

    Raises:
        Unreachable: the broker does not answer.
    """
    # Each transport has errors of its own, and kombu wraps some of them. A TimeoutError is an OSError.
    own = app.connection_for_read().connection_errors
    errors: tuple[type[BaseException], ...] = (OperationalError, OSError, *own)
    try:
        return within(seconds, question, *arguments)
    except errors as error:
        raise Unreachable(f"The task broker does not answer ({type(error).__name__}).") from error


# An answer that nobody has wanted so far is of no use after this.
_FRESH_S = 2.0


@dataclass(eq=False)
class _Asked:
    answer: Future[Any]
    at: float
    # Some caller has had the answer, or has waited for it in vain.
    is_told: bool = False

    def is_over(self) -> bool:
        return self.answer.done() and (self.is_told or time.monotonic() > self.at + _FRESH_S)


_lock = threading.Lock()
_asked: dict[Callable[..., Any], _Asked] = {}


def begin(question: Callable, *arguments) -> None:
    """Ask `question(*arguments)` now, unless it is being asked; the next `within` returns the answer."""
    with _lock:
        if question not in _asked or _asked[question].answer.done():
            _ask(question, arguments)


def within(seconds: float, question: Callable, *arguments) -> Any:
    """Return what `question(*arguments)` returns.

    Raises:
        TimeoutError: it has been asked for `seconds`, without an answer.
        Exception: whatever the question raises.
    """
    with _lock:
        if question not in _asked or _asked[question].is_over():
            _ask(question, arguments)
        asked = _asked[question]
    try:
        return asked.answer.result(max(0.0, asked.at + seconds - time.monotonic()))
    finally:
        with _lock:
            asked.is_told = True
            if asked.answer.done() and _asked.get(question) is asked:
                del _asked[question]


def _ask(question: Callable, arguments: tuple) -> None:
    answer: Future[Any] = Future()
    _asked[question] = _Asked(answer, time.monotonic())
    threading.Thread(target=_answer, args=(answer, question, arguments), name="asking", daemon=True).start()


def _answer(answer: Future[Any], question: Callable, arguments: tuple) -> None:
    try:
        found = question(*arguments)
    except Exception as error:  # noqa: BLE001 - handed on to whoever asked
        answer.set_exception(error)
    else:
        answer.set_result(found)


# Below this, the next upload or the embedded database's next page may find no room.
_MIN_FREE_BYTES = 16 * 2**20


class NotReady(Exception):  # noqa: N818 - reads as the sentence it starts
    """The message says why, without anything a stranger should not read."""


def missing_migrations() -> list[str]:
    """Return the migrations that the database lacks.

    Raises:
        NotReady: the database does not answer.
    """
    with _database():
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def reasons() -> dict[str, str]:
    """Return, for each thing this process needs, "ok" or why it is not."""
    start_probes(workers=False)
    return {name: _outcome(check) for name, check in _CHECKS.items()}


def _database_answers() -> None:
    with _database(), connection.cursor() as cursor:
        cursor.execute("SELECT 1")


# What is complete stays complete while this process lives: migrations are only ever added by a newer version.
_is_migrated = False


def _is_up_to_date() -> None:
    global _is_migrated
    if _is_migrated:
        return
    if missing := missing_migrations():
        raise NotReady(f"{len(missing)} migrations are missing; run: manage.py migrate")
    _is_migrated = True


def _disk_has_room() -> None:
    """Write a little where uploads, pictures and the embedded database lie: quotas and faults show in no number."""
    try:
        free = shutil.disk_usage(settings.DATA_DIR).free
        with tempfile.TemporaryFile(dir=settings.DATA_DIR) as file:
            file.write(bytes(2**12))
    except OSError as error:
        raise NotReady(f"The disk cannot be written ({error.strerror or type(error).__name__}).") from error
    if free < _MIN_FREE_BYTES:
        raise NotReady(f"The disk is full: {free // 2**20} MiB are free.")


def _outcome(check: Callable[[], object]) -> str:
    try:
        check()
    except (NotReady, Unreachable) as reason:
        return str(reason)
    return "ok"


@contextmanager
def _database() -> Iterator[None]:
    try:
        yield
    except ImproperlyConfigured:
        raise
    except (DatabaseError, InterfaceError) as error:
        raise NotReady(f"The database does not answer ({type(error).__name__}).") from error


_CHECKS: dict[str, Callable[[], object]] = {
    "database": _database_answers,
    "migrations": _is_up_to_date,
    "channel layer": try_channel_layer,
    "broker": lengths,
    "disk": _disk_has_room,
}


@require_safe
@never_cache
def healthz(request: HttpRequest) -> HttpResponse:
    """This process is alive. Whoever restarts processes asks here: a restart fixes no database."""
    return HttpResponse("alive\n", content_type="text/plain")


@require_safe
@never_cache
def readyz(request: HttpRequest) -> HttpResponse:
    """This process can serve people: 200, or 503 with the reasons. Whoever sends people asks here."""
    found = reasons()
    return JsonResponse(found, status=200 if set(found.values()) == {"ok"} else 503)
