"""The channel layer of one process: groups of open pages, which any thread may tell something."""

import asyncio
import contextlib
import uuid
from collections import defaultdict

_AT_MOST_UNREAD = 100


class ProcessLayer:
    """Channels' layer of groups, for the pages of this process.

    The stock one keeps asyncio queues that every thread touches, and fails quietly: a message put there by a task's
    thread may never wake its reader. Here they are touched on the consumers' loop alone. A message may be lost, as with
    any layer: pages look again by themselves. One that is sent before there is a consumer has no reader.
    """

    extensions = ("groups",)
    _home: asyncio.AbstractEventLoop | None = None

    async def new_channel(self, prefix: str = "specific.") -> str:
        """Make a channel for one consumer; the loop it runs on becomes the layer's home."""
        loop = asyncio.get_running_loop()
        # The consumers of a process share one loop; tests serve from one after another.
        if self._home is not loop:
            self._move_to(loop)
        channel = prefix + uuid.uuid4().hex
        self._unread[channel] = asyncio.Queue(_AT_MOST_UNREAD)
        return channel

    async def receive(self, channel: str) -> dict:
        """Return the next message; cancelled, as it is when the consumer ends, the channel ends too."""
        try:
            return await self._unread[channel].get()
        except asyncio.CancelledError:
            self._unread.pop(channel, None)
            for group in list(self._members):
                await self.group_discard(group, channel)
            raise

    async def group_add(self, group: str, channel: str) -> None:
        self._members[group].add(channel)

    async def group_discard(self, group: str, channel: str) -> None:
        if group in self._members:
            self._members[group].discard(channel)
            if not self._members[group]:
                del self._members[group]

    async def group_send(self, group: str, message: dict) -> None:
        """Give a message to the group's channels, from whatever thread."""
        if self._home is not None:
            # The loop may have ended.
            with contextlib.suppress(RuntimeError):
                self._home.call_soon_threadsafe(self._put, group, message)

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        self._unread: dict[str, asyncio.Queue] = {}
        self._members: defaultdict[str, set[str]] = defaultdict(set)
        self._home = loop

    def _put(self, group: str, message: dict) -> None:
        for channel in self._members.get(group, ()):
            if queue := self._unread.get(channel):
                # A page with so much unread looks again anyway.
                with contextlib.suppress(asyncio.QueueFull):
                    queue.put_nowait(message)
