"""The channel layer of several processes, on a Redis of the test's own that may stand still."""

import asyncio
import threading

import pytest

from prefmh_web.transport import shared_redis
from prefmh_web.transport.layers import RedisLayer
from tests.support import servers
from tests.support.installations import wait_for
from tests.support.servers import Redis

MESSAGE = {"type": "refresh", "group": "voters.1"}


@pytest.fixture
def redis(settings):
    servers.require_engines()
    server = Redis()
    server.start()
    settings.REDIS_URL = server.url
    shared_redis.client.cache_clear()
    yield server
    server.thaw()
    wait_for(lambda: not shared_redis.is_out(), "nobody asks this Redis any more")
    shared_redis.client.cache_clear()
    server.remove()


class Somebody:
    """A process, as far as a layer can tell: a loop of its own with one consumer in the group."""

    def __init__(self, prefix: str) -> None:
        self.heard: list[dict] = []
        self._layer = RedisLayer(prefix)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def join(self, group: str) -> None:
        self._in_loop(self._join(group))

    def leave(self, group: str) -> None:
        self._in_loop(self._layer.group_discard(group, self._channel))

    def send(self, group: str, message: dict = MESSAGE) -> None:
        self._in_loop(self._layer.group_send(group, message))

    def end(self) -> None:
        self._in_loop(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _in_loop(self, work) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _join(self, group: str) -> None:
        self._channel = await self._layer.new_channel()
        await self._layer.group_add(group, self._channel)
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        while True:
            self.heard.append(await self._layer.receive(self._channel))

    async def _end(self) -> None:
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)


@pytest.fixture
def somebody(redis):
    """Return a call that starts somebody, with a prefix."""
    all_of_them = []

    def start(prefix: str = "site.") -> Somebody:
        all_of_them.append(Somebody(prefix))
        return all_of_them[-1]

    yield start
    for each in all_of_them:
        each.end()


@pytest.fixture
def two(somebody) -> tuple[Somebody, Somebody]:
    """Two processes of the site in one group, of whom the second hears the first."""
    here, there = somebody(), somebody()
    for each in (here, there):
        each.join("voters.1")
    sent_until_heard(here, there)
    return here, there


def sent_until_heard(sender: Somebody, hearer: Somebody) -> None:
    """Send again and again: a subscription takes a moment to be there."""
    before = len(hearer.heard)

    def is_heard() -> bool:
        sender.send("voters.1")
        return len(hearer.heard) > before

    wait_for(is_heard, "the message in the other process")


def test_a_message_reaches_the_group_in_every_process_of_the_site(two, somebody):
    (here, there), outside, elsewhere = two, somebody(), somebody("other.")
    elsewhere.join("voters.1")
    outside.join("voters.2")
    sent_until_heard(here, there)
    before = len(here.heard)
    sent_until_heard(there, here)
    assert here.heard[-1] == MESSAGE
    assert len(here.heard) > before
    assert outside.heard == elsewhere.heard == []


def test_a_sender_hears_its_own_message_once(two):
    here, there = two
    own = {"type": "refresh", "group": "my own"}
    for _ in range(5):
        here.send("voters.1", own)
    # Redis keeps the order of one sender, and the other has heard the last one: no echo is on its way any more.
    wait_for(lambda: there.heard.count(own) == 5, "the messages in the other process")
    sent_until_heard(there, here)
    assert here.heard.count(own) == 5


def test_who_has_left_a_group_hears_it_no_more(two):
    here, there = two
    here.leave("voters.1")
    heard, heard_there = len(here.heard), len(there.heard)
    here.send("voters.1")
    wait_for(lambda: len(there.heard) > heard_there, "the message in the other process")
    assert len(here.heard) == heard


def test_while_redis_stands_still_pages_open_and_hear_their_own_process(two, somebody, redis):
    here, there = two
    redis.freeze()
    late = somebody()
    late.join("voters.1")
    heard = len(here.heard)
    for _ in range(20):
        here.send("voters.1")
        late.send("voters.1")
    wait_for(lambda: len(here.heard) == heard + 20 and len(late.heard) == 20, "the messages of their own process")
    assert shared_redis.is_out()
    redis.thaw()
    wait_for(lambda: not shared_redis.is_out(), "Redis found to answer again")
    sent_until_heard(here, there)
    sent_until_heard(there, late)


def test_a_subscription_that_is_cut_is_made_again(two, redis):
    here, there = two
    redis.client.client_kill_filter(_type="pubsub", skipme=True)
    sent_until_heard(here, there)
    redis.kill()
    redis.start()
    sent_until_heard(here, there)


@pytest.mark.parametrize("steps", range(0, 30, 3))
def test_a_process_ends_at_whatever_moment_it_is_told_to(redis, steps):
    async def end_after_some_steps() -> None:
        await RedisLayer("site.").new_channel()
        for _ in range(steps):
            await asyncio.sleep(0)

    # `asyncio.run` cancels the subscription and waits until it has ended.
    process = threading.Thread(target=asyncio.run, args=(end_after_some_steps(),), daemon=True)
    process.start()
    process.join(30)
    assert not process.is_alive()
