"""The voter's socket: who may open it, what it does with messages, and what happens when it goes.

Open pages say that they are there; those of one process say it together.

The pages that wait for a pair, and what becomes of the others when one of them dies.
"""

import asyncio
import random
import re
from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from itertools import pairwise

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.sessions.models import Session
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from prefmh_web.campaigns.engine import leases, open_comparisons
from prefmh_web.campaigns.models import Lease, Vote, Voter
from prefmh_web.transport.sockets import NOT_ALLOWED, TRY_AGAIN
from prefmh_web.voting import presence
from prefmh_web.voting.presence import WaitingRoom
from tests.support.campaigns import invitation_path, make_campaign, make_config
from tests.support.installations import closing_code, cookies_after_joining, open_socket, send
from tests.support.people import PageSocket


@pytest.fixture
def lonely(researcher, idle_tasks):
    """A campaign of one chain, where only one person at a time has a pair."""
    judges = [{"question": "Which?", "votes": 1}]
    return make_campaign(researcher, config=make_config(chains=1, judges=judges))


@pytest.fixture
def path(campaign):
    return f"/ws{invitation_path(campaign)}"


@pytest.fixture
def cookies(campaign, live_site):
    return cookies_after_joining(live_site.url + invitation_path(campaign))


def lease_in(screen: str) -> str | None:
    found = re.search(r'name="lease" value="([^"]+)"', screen)
    return found and found.group(1)


def recv_until(socket, is_wanted: Callable[[str], object], seconds: float = 15) -> str:
    """Read screens until one is as wanted: a notification may show the one before once more."""
    while not is_wanted(screen := socket.recv(timeout=seconds)):
        pass
    return screen


def test_without_joining_the_socket_is_closed_for_good(live_site, path):
    with open_socket(live_site.url, path) as socket:
        assert closing_code(socket) == 4401


def test_the_page_of_somebody_who_went_with_their_campaign_is_told_so(campaign, live_site, path, cookies):
    with open_socket(live_site.url, path, cookies) as socket:
        socket.recv(timeout=10)
        Lease.objects.all().delete()
        Voter.objects.all().delete()
        send(socket, choice="continue")
        assert closing_code(socket) == 4401


def test_a_page_that_is_closed_gives_its_pair_back_before_one_that_is_lost(lonely, live_site):
    link, path = live_site.url + invitation_path(lonely), f"/ws{invitation_path(lonely)}"
    with open_socket(live_site.url, path, cookies_after_joining(link)) as leaving:
        assert lease_in(leaving.recv(timeout=10))
        with open_socket(live_site.url, path, cookies_after_joining(link)) as waiting:
            assert lease_in(waiting.recv(timeout=10)) is None
            closed_at = timezone.now()
            leaving.close()
            screen = recv_until(waiting, lease_in, seconds=40)
    before, after = Lease.objects.order_by("issued_at")
    assert str(after.key) == lease_in(screen)
    assert before.ending == Lease.Ending.EXPIRED
    # By the record: a lost page's pair would not have been anybody else's yet.
    assert after.issued_at < closed_at + leases.ORPHAN_GRACE


def test_who_closes_the_page_right_after_a_vote_holds_no_further_pair(researcher, live_site, eventually):
    config = make_config(chains=10, judges=[{"question": "Which?", "votes": 1}])
    link = invitation_path(make_campaign(researcher, config=config))
    for _ in range(5):
        with open_socket(live_site.url, f"/ws{link}", cookies_after_joining(live_site.url + link)) as page:
            send(page, lease=lease_in(page.recv(timeout=10)), choice="first")
    eventually(lambda: Vote.objects.count() == 5 and not Lease.objects.filter(ended_at=None).exists())


def test_closing_one_of_two_pages_leaves_the_other_its_pair(live_site, path, cookies, eventually):
    with open_socket(live_site.url, path, cookies) as staying:
        key = lease_in(staying.recv(timeout=10))
        with open_socket(live_site.url, path, cookies) as leaving:
            assert lease_in(leaving.recv(timeout=10)) == key
        # The page that stays is told that one has gone, and says again that somebody is there.
        eventually(lambda: Voter.objects.get().online_until and not Lease.objects.get().is_orphan)
        send(staying, lease=key, choice="first")
        eventually(lambda: Vote.objects.filter(key=key, number=1).exists())


def test_a_vote_kept_by_the_page_through_a_long_absence_counts(live_site, path, cookies):
    with open_socket(live_site.url, path, cookies) as socket:
        key = lease_in(socket.recv(timeout=10))
    Lease.objects.filter(key=key).update(expires_at=timezone.now(), is_orphan=True)
    leases.expire()
    with open_socket(live_site.url, path, cookies) as socket:
        # The pair is there again under its old key, so the response sent before the page knew finds its place.
        assert lease_in(socket.recv(timeout=10)) == key
        send(socket, lease=key, choice="first")
        socket.recv(timeout=10)
    assert Vote.objects.get().counted


def test_a_lone_skipper_gets_the_question_again(lonely, live_site, monkeypatch):
    monkeypatch.setattr(open_comparisons, "SKIP_COOLDOWN", timedelta(seconds=1))
    monkeypatch.setattr(presence, "_LOOK_AT_LEAST_EVERY_S", 2)
    cookies = cookies_after_joining(live_site.url + invitation_path(lonely))
    path = f"/ws{invitation_path(lonely)}"
    with open_socket(live_site.url, path, cookies) as socket:
        send(socket, lease=lease_in(socket.recv(timeout=10)), choice="skip")
        recv_until(socket, lambda screen: lease_in(screen) is None)
    with open_socket(live_site.url, path, cookies) as socket:
        recv_until(socket, lease_in)


def test_a_person_whose_time_ran_out_goes_on_when_they_say_so(live_site, path, cookies):
    with open_socket(live_site.url, path, cookies) as socket:
        first = lease_in(socket.recv(timeout=10))
        Lease.objects.filter(key=first).update(expires_at=timezone.now() - timedelta(seconds=1))
        recv_until(socket, lambda screen: "Are you still there?" in screen)
        send(socket, choice="continue")
        recv_until(socket, lambda screen: lease_in(screen) == first)
        send(socket, lease=first, choice="first")
        recv_until(socket, lambda screen: lease_in(screen) not in (None, first))
    assert Vote.objects.get().counted


def test_of_those_who_wait_the_first_come_is_served(lonely, live_site):
    link, path = live_site.url + invitation_path(lonely), f"/ws{invitation_path(lonely)}"
    with ExitStack() as pages:
        people = [pages.enter_context(open_socket(live_site.url, path, cookies_after_joining(link))) for _ in range(6)]
        lease = lease_in(people[0].recv(timeout=10))
        assert [lease_in(page.recv(timeout=10)) for page in people[1:]] == [None] * 5
        # Each skips: the pair goes round in the order in which they came. Who hears the notifications for all leaves.
        for page, waits_longest in pairwise(people):
            send(page, lease=lease, choice="skip")
            lease = lease_in(recv_until(waits_longest, lease_in))
    holders = Lease.objects.order_by("issued_at").values_list("voter", flat=True)
    assert list(holders) == list(Voter.objects.order_by("pk").values_list("pk", flat=True))


@pytest.fixture
def pages(campaign) -> list[tuple[Voter, str]]:
    """Five people with a page each, and the keys of their sessions."""
    link, keys = invitation_path(campaign), []
    for _ in range(5):
        person = Client()
        person.post(link)
        keys.append(person.cookies["prefmh_session"].value)
    return list(zip(Voter.objects.order_by("pk"), keys, strict=True))


def renew_all(pages) -> list[int | None]:
    async def renew() -> list[int | None]:
        return await asyncio.gather(*(presence.renewed(voter, key) for voter, key in pages))

    return async_to_sync(renew)()


def test_pages_that_renew_at_one_time_cost_what_one_of_them_does(pages):
    with CaptureQueriesContext(connection) as of_one:
        assert renew_all(pages[:1]) == [None]
    with CaptureQueriesContext(connection) as of_five:
        assert renew_all(pages) == [None] * 5
    assert len(of_five) == len(of_one)
    soon = timezone.now() + timedelta(seconds=60)
    assert Voter.objects.filter(online_until__gt=soon).count() == 5


def test_each_learns_what_became_of_its_person(pages):
    (removed, _), (_, ended), *_ = pages
    Voter.objects.filter(pk=removed.pk).update(removed_at=timezone.now())
    Session.objects.get(session_key=ended).delete()
    Session.objects.filter(session_key=pages[2][1]).update(expire_date=timezone.now())
    found = renew_all([*pages, (pages[3][0], None), (pages[3][0], pages[4][1])])
    assert found == [
        NOT_ALLOWED, TRY_AGAIN, TRY_AGAIN, None, None,
        # No session, and another person's.
        TRY_AGAIN, TRY_AGAIN,
    ]  # fmt: skip
    removed.refresh_from_db()
    assert removed.online_until is None


def test_a_page_that_closes_takes_no_other_along(pages):
    async def renew() -> int | None:
        leaving, staying = (asyncio.ensure_future(presence.renewed(*page)) for page in pages[:2])
        await asyncio.sleep(0.1)
        leaving.cancel()
        return await staying

    assert async_to_sync(renew)() is None


# Sooner than a waiting page looks by itself.
SOON_S = 5


def test_a_page_that_dies_keeps_no_other_from_its_pair(researcher, idle_tasks):
    judges = [{"question": "Which?", "votes": 1}]
    campaign = make_campaign(researcher, config=make_config(chains=1, judges=judges))
    holder = Voter.objects.create(campaign=campaign)
    lease = leases.take(holder)
    people = [Client(), Client()]
    path = invitation_path(campaign)
    for person in people:
        person.post(path)

    async def second_gets_it() -> str | None:
        first, second = pages = [PageSocket(person, path) for person in people]
        assert [lease_in(await page.open()) for page in pages] == [None, None]
        # As a server does with a handler that has raised: nobody says goodbye. What its end sets going comes to rest.
        first.socket.stop(exceptions=False)
        await asyncio.sleep(0.3)
        await sync_to_async(leases.skip)(lease.key, holder)
        shown = None
        while shown is None:
            shown = lease_in(await second.screen(SOON_S))
        await second.close()
        return shown

    assert async_to_sync(second_gets_it)()


class DistantPage:
    """A waiting page whose groups answer late, as Redis does."""

    def __init__(self, voter: Voter, rng: random.Random) -> None:
        self.voter, self.status, self.says_stalled = voter, "running", None
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
def test_however_pages_come_and_go_one_of_those_that_wait_hears_the_notifications(researcher, idle_tasks, staying):
    voter = Voter.objects.create(campaign=make_campaign(researcher))

    async def hearing(rng: random.Random) -> tuple[int, int]:
        room, pages = WaitingRoom("waiting"), [DistantPage(voter, rng) for _ in range(3)]
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
