"""What the application's sockets share: work in the background that never dies unseen."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress

from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer

logger = logging.getLogger(__name__)

NOT_ALLOWED = 4401
BAD_MESSAGE = 4400
TRY_AGAIN = 1011


async def set_within(event: asyncio.Event, seconds: float | None) -> None:
    """Wait until an event is set, at most so long; without a number, as long as it takes."""
    # Not `wait_for`: in Python 3.11 a task that is cancelled in the moment of the event goes on.
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


class LiveConsumer(AsyncWebsocketConsumer):
    """A socket with groups and background tasks, all of which end with it.

    When a background task fails, the failure is logged and the socket closed with a code on which pages reconnect:
    a page that has silently stopped following is worse than one that starts again.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._joined: set[str] = set()
        self._background: set[asyncio.Task] = set()

    async def join(self, *groups: str) -> None:
        """Receive the nudges of these groups."""
        for group in groups:
            await self.channel_layer.group_add(group, self.channel_name)
            self._joined.add(group)

    async def part(self, group: str) -> None:
        """Receive the nudges of a group no more."""
        self._joined.discard(group)
        await self.channel_layer.group_discard(group, self.channel_name)

    async def __call__(self, scope, receive, send):
        try:
            return await super().__call__(scope, receive, send)
        finally:
            # Channels says goodbye to a page that goes, and not to one whose message could not be handled.
            await self.leave()

    async def dispatch(self, message):
        # Channels' own visits the database thread for every message, nudges included, to close old connections;
        # `database_sync_to_async` does that wherever the database is asked.
        await getattr(self, get_handler_name(message))(message)

    def in_background(self, work: Coroutine) -> asyncio.Task:
        """Run `work` until it ends, is cancelled, or the socket ends."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._on_end)
        self._background.add(task)
        return task

    async def leave(self) -> None:
        """Leave all groups and stop all background work."""
        background = list(self._background)
        for task in background:
            task.cancel()
        await asyncio.gather(*background, return_exceptions=True)
        for group in set(self._joined):
            await self.part(group)

    def _on_end(self, task: asyncio.Task) -> None:
        # A page may wait, and be served, a thousand times.
        self._background.discard(task)
        error = None if task.cancelled() else task.exception()
        # An OSError is what ASGI servers raise on sending to a page that has gone, and no failure.
        if error and not isinstance(error, OSError):
            logger.error("background work of an open page failed; the page will reconnect", exc_info=error)
            self._closing = asyncio.ensure_future(self.close(TRY_AGAIN))
