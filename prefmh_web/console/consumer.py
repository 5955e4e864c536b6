"""The socket behind a campaign's page: it sends the board again when something has changed, once a second at most."""

import asyncio
import contextlib

from channels.db import database_sync_to_async

from prefmh_web.campaigns.lifecycle import access
from prefmh_web.console.board import board_for
from prefmh_web.transport import nudges, sessions
from prefmh_web.transport.sockets import NOT_ALLOWED, LiveConsumer

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
        user, session_key = self.scope["user"], self.scope["session"].session_key
        if user is None or not user.is_authenticated or session_key is None:
            await self.close(NOT_ALLOWED)
            return
        self._session_key = session_key
        self._changed = asyncio.Event()
        self._changed.set()
        await self.join(nudges.watchers(self.campaign_id), nudges.session(self._session_key))
        self.in_background(self._send_boards())

    async def disconnect(self, code):
        await self.leave()

    async def look_again(self, event):
        """Answer a nudge; many at once lead to one board."""
        self._changed.set()

    async def _send_boards(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _AT_LEAST_EVERY_S)
            self._changed.clear()
            # Asked every time: they may have signed out, or be a member no more.
            board = await self._board(await sessions.user_now(self._session_key))
            if board is None:
                await self.close(NOT_ALLOWED)
                return
            await self.send(board)
            await asyncio.sleep(_AT_MOST_EVERY_S)

    @database_sync_to_async
    def _board(self, user) -> str | None:
        campaign = access.campaigns_for(user).select_related("catalog").filter(pk=self.campaign_id).first()
        return board_for(campaign).html() if campaign else None
