"""The channel layers: groups of open pages, which any thread may tell something, in one process and in several.

Between several, groups are kept in each process, and Redis only carries messages. Opening a page, joining a group and
leaving it never ask Redis, so a Redis that is frozen or gone keeps nobody from voting. The pages of this process hear a
message at once; those of the others hear it from Redis, if it answers. A message may be lost, as with any layer: pages
look again by themselves.

All of an installation's messages go over one Redis channel, one subscription a process: a notification is short, many
within a moment are sent as one (`transport/sockets.py`), and most processes have a page that it is for.
"""

import asyncio
import contextlib
import json
import logging
import uuid
from collections import defaultdict

from prefmh_web.transport import shared_redis

logger = logging.getLogger(__name__)

_AT_MOST_UNREAD = 100
# After such a silence the subscription is asked for a sign of life, and given up when the next is as long.
_SILENCE_S = 5.0
_SUBSCRIBE_AGAIN_S = 1.0


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


class RedisLayer(ProcessLayer):
    """Groups of pages in several processes; see the module.

    Args:
        prefix: what tells this installation's messages from others' on the same Redis.
    """

    def __init__(self, prefix: str) -> None:
        self._redis_channel = f"{prefix}notifications"
        # Whoever has no consumers need not tell its own messages from others'.
        self._me = ""

    async def group_send(self, group: str, message: dict) -> None:
        """Give a message to the group's channels, here and in the other processes. Never waits for longer than
        `REDIS_TIMEOUT_SECONDS`.
        """
        await super().group_send(group, message)
        if not shared_redis.is_out():
            await asyncio.to_thread(self._publish, json.dumps({"from": self._me, "group": group, "message": message}))

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        super()._move_to(loop)
        self._me = uuid.uuid4().hex
        self._listening = loop.create_task(self._listen())

    def _publish(self, text: str) -> None:
        # Several may have waited for a thread while the first found that Redis is out.
        if shared_redis.is_out():
            return
        try:
            shared_redis.client().publish(self._redis_channel, text)
        except shared_redis.errors() as error:
            shared_redis.note_failure(error)

    async def _listen(self) -> None:
        """Hand out what other processes send; subscribe again whenever the subscription is lost."""
        errors: tuple[type[Exception], ...] = (OSError, *shared_redis.errors())
        while not _was_cancelled():
            try:
                await self._hear()
            except errors as error:
                logger.info("the Redis subscription was lost (%s); subscribing again", type(error).__name__)
            await asyncio.sleep(_SUBSCRIBE_AGAIN_S)

    async def _hear(self) -> None:
        # The library comes with the extra `server` only.
        from redis import asyncio as aioredis

        patience = shared_redis.patience() | {"retry": None}
        async with (
            aioredis.Redis.from_url(shared_redis.address(), **patience) as client,
            client.pubsub() as subscription,
        ):
            await subscription.subscribe(self._redis_channel)
            was_asked = False
            while not _was_cancelled():
                message = await subscription.get_message(timeout=_SILENCE_S)
                if message is None and was_asked:
                    raise TimeoutError("no sign of life")
                was_asked = message is None
                if was_asked:
                    await subscription.ping()
                elif message["type"] == "message":
                    self._take(message["data"])

    def _take(self, data: bytes) -> None:
        sent = json.loads(data)
        if sent["from"] != self._me:
            self._put(sent["group"], sent["message"])


def _was_cancelled() -> bool:
    """True once this task shall end, even where the cancellation was lost on the way.

    redis-py sends with `asyncio.wait_for`, which on Python 3.11 returns instead of raising when what it waited for ends
    in the same moment. A process whose loop waits for this task would then never end.
    """
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
