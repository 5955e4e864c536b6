"""The socket behind a campaign's page: it sends the board again when something has changed, once a second at most."""

import asyncio
import contextlib

from channels.db import database_sync_to_async

from prefmh_web.campaigns import live
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.sockets import NOT_ALLOWED, LiveConsumer
from prefmh_web.console.board import board_for

_AT_MOST_EVERY_S = 1
# Rates and presence fade without any event.
_AT_LEAST_EVERY_S = 10


class BoardConsumer(LiveConsumer):
    """One open campaign page."""

    campaign_id: int
    _changed: asyncio.Event

    async def connect(self):
        await self.accept()
        self.campaign_id = self.scope["url_route"]["kwargs"]["campaign_id"]
        if not await self._is_owner():
            await self.close(NOT_ALLOWED)
            return
        self._changed = asyncio.Event()
        self._changed.set()
        self._signed_in_as = live.session(self.scope["session"].session_key)
        await self.join(live.watchers(self.campaign_id), self._signed_in_as)
        self.in_background(self._send_boards())

    async def disconnect(self, code):
        await self.leave()

    async def look_again(self, event):
        """Answer a nudge; many at once lead to one board. The session's own nudge means that it has signed out."""
        if event["group"] == self._signed_in_as:
            await self.close(NOT_ALLOWED)
        else:
            self._changed.set()

    async def _send_boards(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _AT_LEAST_EVERY_S)
            self._changed.clear()
            await self.send(await self._board())
            await asyncio.sleep(_AT_MOST_EVERY_S)

    @database_sync_to_async
    def _is_owner(self) -> bool:
        user = self.scope["user"]
        return user.is_authenticated and Campaign.objects.filter(pk=self.campaign_id, owner_id=user.pk).exists()

    @database_sync_to_async
    def _board(self) -> str:
        return board_for(Campaign.objects.select_related("catalog").get(pk=self.campaign_id)).html()
