"""An in-memory channel layer that other threads may send to."""

import asyncio
import contextlib

from channels.layers import InMemoryChannelLayer


class InProcessChannelLayer(InMemoryChannelLayer):
    """Runs every group operation on the loop where the consumers live.

    The stock layer keeps asyncio queues, which are not safe across threads and fail quietly: a message put
    there by a task's thread may never wake its reader. The first consumer's loop becomes the layer's home;
    messages sent before there is one have no reader and are dropped.
    """

    _home: asyncio.AbstractEventLoop | None = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # The loop itself keeps no hold of what it runs.
        self._sending: set[asyncio.Future] = set()

    async def new_channel(self, prefix="specific."):
        self._home = asyncio.get_running_loop()
        return await super().new_channel(prefix)

    async def group_send(self, group, message):
        home = self._home
        if home is None or home.is_closed():
            return
        if home is asyncio.get_running_loop():
            await super().group_send(group, message)
        else:
            # Not awaited: a sender that holds the home loop's attention would otherwise wait for itself. And no
            # coroutine yet: should the loop end first, one would be left that nobody ever runs.
            with contextlib.suppress(RuntimeError):
                home.call_soon_threadsafe(self._send_at_home, group, message)

    def _send_at_home(self, group, message):
        sending = asyncio.ensure_future(super().group_send(group, message))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)
