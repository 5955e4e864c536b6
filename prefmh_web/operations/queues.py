"""What waits between the processes: task queues and their workers, the channel layer.

Every question here gives up within seconds: it is asked when something is wrong.
"""

import asyncio

from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.conf import settings
from kombu.exceptions import OperationalError

from prefmh_web.celery import app
from prefmh_web.embedded.tasks import running

QUEUES = ("default", "files", "endpoints", "gpu")
_PATIENCE_S = 3


class Unreachable(Exception):  # noqa: N818 - reads as the sentence it starts
    """A server beside ours does not answer; the message names it."""


def lengths() -> dict[str, int]:
    """Return how many messages wait in each queue. Those a worker has taken are not among them.

    Raises:
        Unreachable: the broker does not answer.
    """
    if settings.EMBEDDED:
        return {"in-process": running()}
    try:
        with app.connection_for_read(connect_timeout=_PATIENCE_S) as connection:
            connection.ensure_connection(max_retries=1, interval_start=0.2, timeout=_PATIENCE_S)
            return {queue: _length(connection, queue) for queue in QUEUES}
    except _broker_errors() as error:
        raise Unreachable(f"The task broker does not answer ({type(error).__name__}).") from error


def _broker_errors() -> tuple[type[Exception], ...]:
    # Each transport has its own, and kombu wraps some of them.
    return (OperationalError, OSError, *app.connection_for_read().connection_errors)


def _length(connection, queue: str) -> int:
    channel = connection.channel()
    try:
        return channel.queue_declare(queue=queue, passive=True).message_count
    except connection.channel_errors:
        # Nothing was ever sent to it.
        return 0
    finally:
        channel.close()


def consumers() -> dict[str, set[str]]:
    """Return the workers that take from each queue.

    Raises:
        Unreachable: the broker does not answer.
    """
    if settings.EMBEDDED:
        return {"in-process": {"this process"}}
    found: dict[str, set[str]] = {}
    try:
        answers = app.control.inspect(timeout=_PATIENCE_S).active_queues() or {}
    except _broker_errors() as error:
        raise Unreachable(f"The task broker does not answer ({type(error).__name__}).") from error
    for worker, queues in answers.items():
        for queue in queues:
            found.setdefault(queue["name"], set()).add(worker)
    return found


def try_channel_layer() -> None:
    """Send a message nobody reads.

    Raises:
        Unreachable: the channel layer does not take it.
    """
    try:
        async_to_sync(_send)()
    except Exception as error:
        raise Unreachable(f"The channel layer does not answer ({type(error).__name__}).") from error


async def _send() -> None:
    async with asyncio.timeout(_PATIENCE_S):
        await get_channel_layer().group_send("operations.probe", {"type": "probe"})
