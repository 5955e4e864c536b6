"""What waits between the processes (task queues and their workers, the channel layer), asked so that nobody waits long.

Every question here gives up in time: it is asked when something is wrong. Together, the questions of a probe take less
than two seconds. A library's own timeouts seldom cover every wait, so each question is asked on a thread of its own,
which ends when the server answers or the library gives up. A question that still waits is not asked a second time:
whoever asks it again waits for the same answer, no longer than if they had asked first, and a probe every few seconds
piles up no threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from kombu.exceptions import OperationalError

from prefmh_web.celery import app
from prefmh_web.embedded.threads import running
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


def look_ahead(*, workers: bool) -> None:
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
    try:
        return within(settings.BROKER_TIMEOUT_SECONDS, _lengths)
    except _broker_errors() as error:
        raise Unreachable(f"The task broker does not answer ({type(error).__name__}).") from error


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
    try:
        answers = within(max(patience_s + _MORE_S, settings.BROKER_TIMEOUT_SECONDS), _active_queues, patience_s)
    except _broker_errors() as error:
        raise Unreachable(f"The task broker does not answer ({type(error).__name__}).") from error
    for worker, queues in answers.items():
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
        return {queue: _length(connection, queue) for queue in QUEUES}


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


def _broker_errors() -> tuple[type[BaseException], ...]:
    # Each transport has its own, and kombu wraps some of them. A TimeoutError is an OSError.
    return (OperationalError, OSError, *app.connection_for_read().connection_errors)


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
