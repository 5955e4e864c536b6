"""The socket behind a campaign's page: it sends the board again when something has changed, twice a second at most."""

import asyncio
import contextlib

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer

from prefmh_web.campaigns import live
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.board import board_for

NOT_SIGNED_IN = 4401
_AT_MOST_EVERY_S = 0.5
# Rates and presence fade without any event.
_AT_LEAST_EVERY_S = 10


class BoardConsumer(AsyncWebsocketConsumer):
    """One open campaign page."""

    campaign_id: int
    _changed: asyncio.Event
    _sender: asyncio.Task | None = None

    async def connect(self):
        await self.accept()
        self.campaign_id = self.scope["url_route"]["kwargs"]["campaign_id"]
        if not await self._is_owner():
            await self.close(NOT_SIGNED_IN)
            return
        self._changed = asyncio.Event()
        self._changed.set()
        await self.channel_layer.group_add(live.watchers(self.campaign_id), self.channel_name)
        self._sender = asyncio.create_task(self._send_boards())

    async def disconnect(self, code):
        await self.channel_layer.group_discard(live.watchers(self.campaign_id), self.channel_name)
        if self._sender:
            self._sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sender

    async def look_again(self, event):
        """Answer a nudge; many at once lead to one board."""
        self._changed.set()

    async def _send_boards(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _AT_LEAST_EVERY_S)
            self._changed.clear()
            if not await self._is_owner():
                await self.close(NOT_SIGNED_IN)
                return
            await self.send(await self._board())
            await asyncio.sleep(_AT_MOST_EVERY_S)

    @database_sync_to_async
    def _is_owner(self) -> bool:
        user = self.scope["user"]
        return user.is_authenticated and Campaign.objects.filter(pk=self.campaign_id, owner_id=user.pk).exists()

    @database_sync_to_async
    def _board(self) -> str:
        return board_for(Campaign.objects.select_related("catalog").get(pk=self.campaign_id)).html()
