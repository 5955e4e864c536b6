"""The Redis that all processes share, as this process sees it: for notifications and counts, never for the record.

A Redis that is frozen refuses nothing and answers nothing. Nobody who votes waits for that: a call gives up within
`REDIS_TIMEOUT_SECONDS`, and from then on `is_out()` is true and nobody calls, until a thread has found that it answers
again.
"""

import logging
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

if TYPE_CHECKING:
    import redis

logger = logging.getLogger(__name__)

_ASK_AGAIN_S = 1.0

_lock = threading.Lock()
# Set while Redis does not answer. The thread that asks whether it is back ends with the outage.
_out: threading.Thread | None = None


def patience() -> dict[str, Any]:
    """Return what redis-py needs to know so that a call gives up in time."""
    # The library comes with the extra `server` only. By itself it would try a call eleven times.
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    return {
        "socket_timeout": settings.REDIS_TIMEOUT_SECONDS,
        "socket_connect_timeout": settings.REDIS_TIMEOUT_SECONDS,
        "retry": Retry(NoBackoff(), 0),
    }


def address() -> str:
    """Return where Redis is.

    Raises:
        ImproperlyConfigured: an embedded process, which has none, asks.
    """
    if settings.REDIS_URL is None:
        raise ImproperlyConfigured("REDIS_URL is not set, and one process alone needs no Redis.")
    return settings.REDIS_URL


@cache
def client() -> "redis.Redis":
    """Return a client for calls that give up in time; any thread may use it."""
    import redis

    return redis.Redis.from_url(address(), **patience())


def errors() -> tuple[type[Exception], ...]:
    """Return what is raised when Redis does not answer, or not in the time that somebody waits."""
    import redis

    return (TimeoutError, redis.RedisError)


def is_out() -> bool:
    """True while Redis is known not to answer."""
    # A process that was forked during an outage has no such thread, and finds out for itself.
    return _out is not None and _out.is_alive()


def note_failure(error: Exception) -> None:
    """Note that a call has failed; from now on Redis is out, until it answers."""
    global _out
    with _lock:
        if is_out() or settings.REDIS_URL is None:
            return
        logger.warning(
            "Redis does not answer (%s): rate limits are per process, and pages of other processes do not update",
            type(error).__name__,
        )
        _out = threading.Thread(target=_ask_until_it_answers, name="redis-is-out", daemon=True)
        _out.start()


def ask() -> None:
    """Ask Redis for an answer.

    Raises:
        redis.RedisError: it gives none in time.
    """
    client().ping()


def _ask_until_it_answers() -> None:
    pause = threading.Event()
    while not pause.wait(_ASK_AGAIN_S):
        try:
            ask()
        except errors():
            continue
        logger.warning("Redis answers again")
        return
