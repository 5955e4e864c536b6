"""The sockets behind a campaign's pages: they send a part of the page again when something has changed.

A page that is left open all day must not fill somebody's line, however many chains there are and however fast people
vote. Each group of parts has a bucket of bytes that fills up evenly. A part is sent while there is something in the
bucket, which it may overdraw; so in any minute a group takes at most its capacity, a minute's filling and one part.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from channels.db import database_sync_to_async
from django.http import QueryDict
from django.template.loader import render_to_string

from prefmh_web.campaigns.lifecycle import access
from prefmh_web.console.board import Board
from prefmh_web.console.results import convergence_for
from prefmh_web.transport import sockets
from prefmh_web.transport.sockets import NOT_ALLOWED, LiveConsumer, set_within

_AT_MOST_EVERY_S = 1
# Rates and presence fade without any event.
_AT_LEAST_EVERY_S = 10
# Plots are drawn no more often than this, and less often the larger they are: a page with many chains that is left
# open all day must not fill somebody's line. On average; the first message comes on top.
_PLOTS_AT_MOST_EVERY_S = 5
_BYTES_A_MINUTE = 45_000


class _Watching(LiveConsumer):
    """One open page of a campaign, for those who may see the campaign."""

    campaign_id: int
    _changed: asyncio.Event
    _at_least_every_s: float | None = None

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
        await self.join(sockets.watchers(self.campaign_id), sockets.session(self._session_key))
        self.in_background(self._follow())

    async def look_again(self, event):
        """Answer a nudge; many at once lead to one answer."""
        self._changed.set()

    async def _follow(self) -> None:
        sent = ""
        while True:
            await set_within(self._changed, self._at_least_every_s)
            self._changed.clear()
            # Asked every time: they may have signed out, or be a member no more.
            part = await self._part(await sockets.user_now(self._session_key))
            if part is None:
                await self.close(NOT_ALLOWED)
                return
            if part and part != sent:
                await self.send(part)
                sent = part
            await asyncio.sleep(self._pause_after(part))

    @database_sync_to_async
    def _part(self, user) -> str | None:
        campaign = access.campaigns_for(user).select_related("catalog").filter(pk=self.campaign_id).first()
        return self.part_of(campaign) if campaign else None

    def part_of(self, campaign) -> str | None:
        """Return the part of the page that is sent; None where there is no such page."""
        raise NotImplementedError

    def _pause_after(self, part: str) -> float:
        """Return how many seconds pass at least before the next one."""
        return _AT_MOST_EVERY_S


class BoardConsumer(_Watching):
    """The first page of a campaign. Of one that has started, only the parts that have changed are sent."""

    _at_least_every_s = _AT_LEAST_EVERY_S

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # What is read first has a bucket of its own, so that plots and pictures never hold it up.
        self._groups = [
            Group(12_000, 24_000, ("now",)),
            Group(10_000, 20_000, ("heads", "trace", "details")),
        ]

    def part_of(self, campaign) -> str:
        """Return a draft's board, or what has changed; nothing where nothing has, or it has to wait."""
        board, now = Board(campaign), time.monotonic()
        if campaign.is_draft:
            return board.html()
        return "\n".join(part for group in self._groups for part in group.due(board.part, now))


class ConvergenceConsumer(_Watching):
    """The tab Convergence; what is chosen there stands in the address of the socket, as in that of the page."""

    def part_of(self, campaign) -> str | None:
        """Return the plots and tables; None of a draft, which has none."""
        if campaign.is_draft:
            return None
        return render_to_string(
            "console/_convergence.html",
            {"convergence": convergence_for(campaign, QueryDict(self.scope["query_string"]))},
        )

    def _pause_after(self, part: str) -> float:
        return max(_PLOTS_AT_MOST_EVERY_S, len(part.encode()) * 60 / _BYTES_A_MINUTE)


class DownloadConsumer(LiveConsumer):
    """Tells the page of a download how much of it is written, by the token that the page has drawn for it."""

    async def connect(self):
        await self.accept()
        if (user := self.scope["user"]) is None or not user.is_authenticated:
            await self.close(NOT_ALLOWED)
            return
        await self.join(sockets.download(self.scope["url_route"]["kwargs"]["token"]))

    async def download_share(self, event):
        """Pass on the share, from 0 to 1."""
        await self.send(str(event["share"]))


@dataclass
class Group:
    """Parts of a page that share a bucket of bytes, by their names. Whichever was not sent for longest comes first.

    Args:
        capacity: of the bucket, which is full at first, in bytes.
        a_minute: bytes that it fills up by.
    """

    capacity: float
    a_minute: float
    names: Sequence[str]
    _left: float = math.inf
    _at: float = 0.0
    _sent: dict[str, str] = field(default_factory=dict)
    _turns: dict[str, float] = field(default_factory=dict)

    def due(self, part: Callable[[str], str], now: float) -> list[str]:
        """Return what is to be sent now, in order.

        Args:
            part: renders one of them, and is asked for no other.
            now: in seconds of a clock that never goes back.
        """
        self._left = min(self.capacity, self._left + (now - self._at) * self.a_minute / 60)
        self._at = now
        found = []
        for name in sorted(self.names, key=lambda name: self._turns.get(name, float("-inf"))):
            if self._left <= 0:
                break
            html = part(name)
            if html == self._sent.get(name):
                continue
            self._left -= len(html.encode())
            self._sent[name], self._turns[name] = html, now
            found.append(html)
        return found
