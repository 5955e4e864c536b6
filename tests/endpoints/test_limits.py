"""How many requests at a time: found by trying, against servers of which the best number is known."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from prefmh_web.endpoints.client import Call
from prefmh_web.endpoints.errors import RateLimited, ServerError
from prefmh_web.endpoints.limits import Limit

MOST, TIMEOUT_S = 1024, 60.0


@dataclass
class Run:
    """What came of some simulated time: answers a second and the requests under way, in its second half."""

    answered_per_s: float
    refused_per_s: float
    under_way: float


def simulated(seconds: float, answer: Callable[[int], Call], most: int = MOST) -> Run:
    """Send as many requests at a time as the limit says, to a server that answers by how many it has."""
    now = 0.0
    limit = Limit(lambda: now)
    ends: list[tuple[float, int, Call]] = []
    answered = refused = number = 0
    area = 0.0
    while now < seconds:
        while len(ends) < limit.now(most):
            limit.begin()
            call = answer(len(ends) + 1)
            number += 1
            heapq.heappush(ends, (now + call.seconds, number, call))
        then, _, call = heapq.heappop(ends)
        if then > seconds / 2:
            area += (len(ends) + 1) * (then - max(now, seconds / 2))
            answered += call.error is None
            refused += call.error is not None
        now = then
        limit.under_way -= 1
        limit.note([call], most, TIMEOUT_S)
    return Run(2 * answered / seconds, 2 * refused / seconds, 2 * area / seconds)


def refusing(room: int) -> Callable[[int], Call]:
    """A server that answers in a second, and says at once what is too much."""
    return lambda under_way: Call(None, 1.0) if under_way <= room else Call(RateLimited, 0.01)


def queueing(room: int) -> Callable[[int], Call]:
    """A server that works on so many at a time; the others wait for them."""
    return lambda under_way: Call(None, max(1.0, under_way / room))


@pytest.mark.parametrize("room", [20, 100, 256])
def test_a_server_that_refuses_what_is_too_much_is_kept_busy(room):
    found = simulated(400, refusing(room))
    # Between .7 of what it takes and all of it: on average .85, and a little less for the way back up.
    assert found.answered_per_s > 0.8 * room
    assert found.refused_per_s < 0.05 * found.answered_per_s


@pytest.mark.parametrize("room", [4, 32, 128])
def test_where_requests_only_wait_at_the_server_none_waits_for_too_long(room):
    found = simulated(3_000, queueing(room))
    assert found.answered_per_s > 0.95 * room
    # Beyond thirty times its number, replies take half a minute.
    assert found.under_way < 30 * room


def test_never_more_than_the_endpoint_may_have_and_never_none():
    limit = Limit()
    assert limit.now(3) == 3
    for _ in range(100):
        limit.note([Call(ServerError, 0.0)], MOST, TIMEOUT_S)
    assert limit.now(MOST) == 1


def test_after_an_outage_it_is_soon_where_it_was():
    now, most = 0.0, 128
    limit = Limit(lambda: now)

    def rounds(count: int, call: Call) -> None:
        nonlocal now
        for _ in range(count):
            under_way = limit.now(most)
            for _ in range(under_way):
                limit.begin()
            now += 1.0
            limit.under_way -= under_way
            limit.note([call] * under_way, most, TIMEOUT_S)

    rounds(10, Call(None, 1.0))
    rounds(60, Call(ServerError, 1.0))
    assert limit.now(most) == 1
    rounds(8, Call(None, 1.0))
    assert limit.now(most) >= most / 2
