"""The pages of one process that wait for a pair: who may take one that becomes free is served in the order of coming.

A nudge reaches one page of each campaign in a process, which asks in one look who of all that wait there has a pair.
So a vote costs the same with ten people waiting and with a thousand. With several processes each wakes as many pages as
there is room for; those who come too late find nothing, and wait on.
"""

import asyncio
from typing import Protocol
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async

from prefmh_web.campaigns.engine import open_comparisons, openings
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.transport import sockets
from prefmh_web.transport.sockets import set_within
from prefmh_web.voting.screens.idle import is_held_up

# Twenty nudges at once are one reason to look, and people do not see a tenth of a second.
_LOOK_AT_MOST_EVERY_S = 0.1
# A skipped pair returns to its person after a while, and no nudge tells when.
_LOOK_AT_LEAST_EVERY_S = 10


class Page(Protocol):
    """What waits here: a consumer."""

    annotator: Annotator
    status: str
    says_held_up: bool | None
    """Whether it says that the next pair could not be made; None where that is not why it waits."""

    async def join(self, *groups: str) -> None: ...
    async def part(self, group: str) -> None: ...
    def in_background(self, work) -> asyncio.Task: ...
    def wake(self) -> None: ...


class WaitingRoom:
    """The waiting pages of one campaign, in the order in which they came. The first one hears the nudges for all."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._pages: dict[Page, None] = {}
        self._nudged = asyncio.Event()
        self._changing = asyncio.Lock()
        self._server: Page | None = None
        self._serving: asyncio.Task | None = None

    async def enter(self, page: Page) -> None:
        """Wait here. What became free between the page's last look and now is found."""
        self._pages[page] = None
        await self._let_the_first_serve()
        self.nudge()

    async def leave(self, page: Page) -> None:
        """Wait no more; another page hears the nudges if this one did."""
        self._pages.pop(page, None)
        await self._let_the_first_serve()

    def nudge(self) -> None:
        """Look who has a pair now."""
        self._nudged.set()

    async def _let_the_first_serve(self) -> None:
        # Groups are far away: others come and go before they answer. One change at a time, or two pages would serve.
        async with self._changing:
            first = next(iter(self._pages), None)
            if first is self._server:
                return
            if self._server is not None:
                await self._end_serving(self._server)
            if first is not None:
                self._server, self._serving = first, first.in_background(self._serve())
                await first.join(self._group)
                # What came while nobody heard.
                self.nudge()

    async def _end_serving(self, server: Page) -> None:
        if self._serving is not None:
            self._serving.cancel()
        self._server = self._serving = None
        await server.part(self._group)

    async def _serve(self) -> None:
        while True:
            await set_within(self._nudged, _LOOK_AT_LEAST_EVERY_S)
            self._nudged.clear()
            pages = list(self._pages)
            takers = await database_sync_to_async(_takers)(pages)
            for page in pages:
                if page.annotator.pk in takers:
                    page.wake()
            await asyncio.sleep(_LOOK_AT_MOST_EVERY_S)


def _takers(pages: list[Page]) -> set[int]:
    """Return who has something else to see now: a pair, a new chain, or another reason why there is none."""
    if not pages:
        return set()
    campaign = pages[0].annotator.campaign
    takers = open_comparisons.takers(campaign, [(page.annotator.pk, page.status) for page in pages])
    waiting = [page.annotator.pk for page in pages if page.status == Campaign.Status.RUNNING]
    takers |= openings.seekers(campaign, waiting)
    held_up = is_held_up(campaign)
    outdated = {page.annotator.pk for page in pages if page.says_held_up not in (None, held_up)}
    return takers | outdated


_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, WaitingRoom]] = WeakKeyDictionary()


def room_of(campaign_id: int) -> WaitingRoom:
    """Return where the pages of a campaign wait that this event loop serves."""
    rooms = _rooms.setdefault(asyncio.get_running_loop(), {})
    if campaign_id not in rooms:
        rooms[campaign_id] = WaitingRoom(sockets.voters(campaign_id))
    return rooms[campaign_id]
