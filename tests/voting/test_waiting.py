"""The pages that wait for a pair, and what becomes of the others when one of them dies."""

import asyncio
import random

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from asgiref.testing import ApplicationCommunicator
from django.test import Client

from prefmh_web.asgi import application
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.voting.presence import WaitingRoom
from tests.support.campaigns import invitation_path, make_campaign, make_config
from tests.voting.test_socket import lease_in

# Sooner than a waiting page looks by itself.
SOON_S = 5


async def opened(campaign: Campaign, client: Client) -> ApplicationCommunicator:
    """Open a page's socket; return it when its first screen, without a pair, has come."""
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    headers = [(b"host", b"localhost"), (b"origin", b"http://localhost"), (b"cookie", cookies.encode())]
    path = f"/ws{await sync_to_async(invitation_path)(campaign)}"
    scope = {"type": "websocket", "path": path, "headers": headers, "query_string": b"", "subprotocols": []}
    page = ApplicationCommunicator(application, scope)
    await page.send_input({"type": "websocket.connect"})
    assert (await page.receive_output(10))["type"] == "websocket.accept"
    assert lease_in((await page.receive_output(10))["text"]) is None
    return page


def test_a_page_that_dies_keeps_no_other_from_its_pair(researcher, idle_tasks):
    judges = [{"question": "Which?", "votes": 1}]
    campaign = make_campaign(researcher, config=make_config(chains=1, judges=judges))
    holder = Annotator.objects.create(campaign=campaign)
    lease = leases.take(holder)
    people = [Client(), Client()]
    for person in people:
        person.post(invitation_path(campaign))

    async def second_gets_it() -> str | None:
        first, second = [await opened(campaign, person) for person in people]
        # As a server does with a handler that has raised: nobody says goodbye. What its end sets going comes to rest.
        first.stop(exceptions=False)
        await asyncio.sleep(0.3)
        await sync_to_async(leases.skip)(lease.key, holder)
        shown = None
        while shown is None:
            shown = lease_in((await second.receive_output(SOON_S))["text"])
        await second.send_input({"type": "websocket.disconnect", "code": 1000})
        await second.wait(10)
        return shown

    assert async_to_sync(second_gets_it)()


class DistantPage:
    """A waiting page whose groups answer late, as Redis does."""

    def __init__(self, annotator: Annotator, rng: random.Random) -> None:
        self.annotator, self.status, self.says_held_up = annotator, "running", None
        self.groups: set[str] = set()
        self.tasks: list[asyncio.Task] = []
        self._rng = rng

    async def join(self, *groups: str) -> None:
        await self.while_others_act()
        self.groups.update(groups)

    async def part(self, group: str) -> None:
        self.groups.discard(group)
        await self.while_others_act()

    def in_background(self, work) -> asyncio.Task:
        self.tasks.append(asyncio.create_task(work))
        return self.tasks[-1]

    def wake(self) -> None:
        """It has nothing to show."""

    async def while_others_act(self) -> None:
        for _ in range(self._rng.randrange(1, 5)):
            await asyncio.sleep(0)

    async def come_and_go(self, room: WaitingRoom, *, stays: bool) -> None:
        for _ in range(4):
            await room.enter(self)
            await self.while_others_act()
            await room.leave(self)
            await self.while_others_act()
        if stays:
            await room.enter(self)


@pytest.mark.parametrize("staying", [0, 1, 2])
def test_however_pages_come_and_go_one_of_those_that_wait_hears_the_nudges(researcher, idle_tasks, staying):
    annotator = Annotator.objects.create(campaign=make_campaign(researcher))

    async def hearing(rng: random.Random) -> tuple[int, int]:
        room, pages = WaitingRoom("waiting"), [DistantPage(annotator, rng) for _ in range(3)]
        await asyncio.gather(*(page.come_and_go(room, stays=at < staying) for at, page in enumerate(pages)))
        tasks = [task for page in pages for task in page.tasks]
        # Those that are told to end may be in the database yet.
        async with asyncio.timeout(SOON_S):
            while sum(not task.done() for task in tasks) > min(staying, 1):
                await asyncio.sleep(0.01)
        tasks = [task for task in tasks if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return len(tasks), sum(bool(page.groups) for page in pages)

    async def many_times() -> list[tuple[int, int]]:
        return await asyncio.gather(*(hearing(random.Random(seed)) for seed in range(40)))

    assert set(async_to_sync(many_times)()) == {(min(staying, 1), min(staying, 1))}
