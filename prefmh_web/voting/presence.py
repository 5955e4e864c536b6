"""Who has a page open, and whose page waits for a pair.

    set_present    notes for one person that a page opens or closes
    renewed        notes that a page is still open, together with all others of this process that do so at the same time
    room_of        where the pages of a campaign wait: who may take a pair that becomes free is served in the order of
                   coming

A page that shows a pair for an hour costs one small part of a statement every half minute. What is renewed runs out by
itself, so a process that dies leaves nobody present for long.

A notification reaches one page of each campaign in a process, which asks in one look who of all that wait there has a
pair. So a vote costs the same with ten people waiting and with a thousand. With several processes each wakes as many
pages as there is room for; those who come too late find nothing, and wait on.
"""

import asyncio
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Protocol
from weakref import WeakKeyDictionary

from channels.db import database_sync_to_async
from django.db import transaction
from django.utils import timezone

from prefmh_web.campaigns.engine import on_demand, open_comparisons
from prefmh_web.campaigns.models import Campaign, Voter
from prefmh_web.transport import sockets
from prefmh_web.transport.sockets import NOT_ALLOWED, TRY_AGAIN, among, set_within
from prefmh_web.voting import admission
from prefmh_web.voting.screens import is_stalled

# A page renews its presence a little more than twice in this time.
PRESENCE = timedelta(seconds=75)
# Of pages that came one by one, some thirty renew together; see `consumer.HEARTBEAT_S`.
_TOGETHER_S = 0.5
# Twenty notifications at once are one reason to look, and people do not see a tenth of a second.
_LOOK_AT_MOST_EVERY_S = 0.1
# A skipped pair returns to its person after a while, and no notification tells when.
_LOOK_AT_LEAST_EVERY_S = 10


def set_present(voter: Voter, is_present: bool) -> bool:
    """Note that a page of this person is open, for a while; or that it has closed.

    Returns:
        False when their access has been withdrawn; nothing is noted then.
    """
    is_admitted = _note(voter.pk, timezone.now() + PRESENCE if is_present else None)
    sockets.notify(sockets.watchers(voter.campaign_id))
    return is_admitted


def _note(voter_id: int, until: datetime | None) -> bool:
    return bool(Voter.objects.filter(pk=voter_id, removed_at__isnull=True).update(online_until=until))


async def renewed(voter: Voter, session_key: str | None) -> int | None:
    """Note that a page is still open.

    Args:
        session_key: of the session under which it was opened.

    Returns:
        The code with which it has to close: access has been withdrawn; or the session has ended, or is somebody else by
        now, and on connecting again the page's own cookie decides. None while it may stay.
    """
    loop = asyncio.get_running_loop()
    together = _together.get(loop)
    if together is None:
        together = _together[loop] = _Together(loop)
    return await together.code_for(voter, session_key)


class _Together:
    """Pages that renew at the same time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._pages: dict[tuple[int, str | None], Voter] = {}
        self._found = loop.create_task(self._renew())

    async def code_for(self, voter: Voter, session_key: str | None) -> int | None:
        self._pages[voter.pk, session_key] = voter
        # A page that closes meanwhile takes no other one along.
        found = await asyncio.shield(self._found)
        return found[voter.pk, session_key]

    async def _renew(self) -> dict[tuple[int, str | None], int | None]:
        await asyncio.sleep(_TOGETHER_S)
        # Who comes from now on comes to the next ones.
        del _together[self._loop]
        return await database_sync_to_async(_codes)(self._pages)


_together: WeakKeyDictionary[asyncio.AbstractEventLoop, _Together] = WeakKeyDictionary()


def _codes(pages: dict[tuple[int, str | None], Voter]) -> dict[tuple[int, str | None], int | None]:
    people = {voter.pk: voter for voter in pages.values()}
    here = _renew(people)
    # Somebody who votes at this moment holds their row; nobody waits for a row while holding others.
    for pk in people.keys() - here:
        if _note(pk, timezone.now() + PRESENCE):
            here.add(pk)
    sockets.notify(*{sockets.watchers(voter.campaign_id) for voter in people.values()})
    stored = sockets.contents({key for _, key in pages})
    return {(pk, key): _code(voter, pk in here, stored.get(key, {})) for (pk, key), voter in pages.items()}


def _renew(voter_ids: Collection[int]) -> set[int]:
    """Renew the presence of those who may be here and whose rows are free; return them."""
    admitted = Voter.objects.filter(among("pk", voter_ids), removed_at__isnull=True)
    with transaction.atomic():
        free = set(admitted.select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True))
        Voter.objects.filter(among("pk", free)).update(online_until=timezone.now() + PRESENCE)
    return free


def _code(voter: Voter, is_here: bool, session: dict) -> int | None:
    if not is_here:
        return NOT_ALLOWED
    return None if admission.is_voter(session, voter) else TRY_AGAIN


class Page(Protocol):
    """What waits here: a consumer."""

    voter: Voter
    status: str
    says_stalled: bool | None
    """Whether it says that the next pair could not be made; None where that is not why it waits."""

    async def join(self, *groups: str) -> None: ...
    async def part(self, group: str) -> None: ...
    def in_background(self, work) -> asyncio.Task: ...
    def wake(self) -> None: ...


class WaitingRoom:
    """The waiting pages of one campaign, in the order in which they came. The first hears the notifications for all."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._pages: dict[Page, None] = {}
        self._notified = asyncio.Event()
        self._changing = asyncio.Lock()
        self._server: Page | None = None
        self._serving: asyncio.Task | None = None

    async def enter(self, page: Page) -> None:
        """Wait here. What became free between the page's last look and now is found."""
        self._pages[page] = None
        await self._let_the_first_serve()
        self.notify()

    async def leave(self, page: Page) -> None:
        """Wait no more; another page hears the notifications if this one did."""
        self._pages.pop(page, None)
        await self._let_the_first_serve()

    def notify(self) -> None:
        """Look who has a pair now."""
        self._notified.set()

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
                self.notify()

    async def _end_serving(self, server: Page) -> None:
        if self._serving is not None:
            self._serving.cancel()
        self._server = self._serving = None
        await server.part(self._group)

    async def _serve(self) -> None:
        while True:
            await set_within(self._notified, _LOOK_AT_LEAST_EVERY_S)
            self._notified.clear()
            pages = list(self._pages)
            takers = await database_sync_to_async(_takers)(pages)
            for page in pages:
                if page.voter.pk in takers:
                    page.wake()
            await asyncio.sleep(_LOOK_AT_MOST_EVERY_S)


def _takers(pages: list[Page]) -> set[int]:
    """Return who has something else to see now: a pair, a new chain, or another reason why there is none."""
    if not pages:
        return set()
    campaign = pages[0].voter.campaign
    takers = open_comparisons.takers(campaign, [(page.voter.pk, page.status) for page in pages])
    waiting = [page.voter.pk for page in pages if page.status == Campaign.Status.RUNNING]
    takers |= on_demand.seekers(campaign, waiting)
    stalled = is_stalled(campaign)
    outdated = {page.voter.pk for page in pages if page.says_stalled not in (None, stalled)}
    return takers | outdated


_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[int, WaitingRoom]] = WeakKeyDictionary()


def room_of(campaign_id: int) -> WaitingRoom:
    """Return where the pages of a campaign wait that this event loop serves."""
    rooms = _rooms.setdefault(asyncio.get_running_loop(), {})
    if campaign_id not in rooms:
        rooms[campaign_id] = WaitingRoom(sockets.voters(campaign_id))
    return rooms[campaign_id]
