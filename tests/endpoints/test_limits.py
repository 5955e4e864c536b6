"""How many requests at a time, found by trying; and how many a minute: never more in any 60 s, and no fewer."""

import heapq
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefmh_web.endpoints import limits
from prefmh_web.endpoints.client import Call
from prefmh_web.endpoints.errors import RateLimited, ServerError
from prefmh_web.endpoints.limits import COUNTS_FOR_S, Limit, Minute, Rates
from prefmh_web.endpoints.servers import ChatRequest, Dialect

# How many requests at a time: found by trying, against servers of which the best number is known.


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


# Limits a minute, by a simulated clock: never more in any 60 s, and no later than that allows.


# Not at the beginning of a second.
BEGIN = 1_790.37


@dataclass(frozen=True)
class Request:
    """A request that wants to be sent: how long after the one before, its tokens, and how late it goes out then."""

    after: float
    tokens: int
    late: float


REQUESTS = st.lists(
    st.builds(
        Request,
        after=st.one_of(st.just(0.0), st.floats(0, 3), st.floats(0, 80)),
        tokens=st.integers(0, 60),
        late=st.floats(0, 0.99),
    ),
    max_size=120,
)
RATES = st.builds(
    Rates, st.one_of(st.just(math.inf), st.integers(1, 12)), st.one_of(st.just(math.inf), st.integers(1, 150))
)


class Clock:
    """Tells the seconds that a test says have passed."""

    now = BEGIN

    def __call__(self) -> float:
        return self.now


def sent(rates: Rates, requests: Sequence[Request]) -> list[tuple[float, float]]:
    """Send each request as soon as it fits; return when each went out, and its tokens as counted."""
    clock, found = Clock(), []
    minute = Minute(clock)
    for request in requests:
        clock.now += request.after
        counted = min(request.tokens, rates.tokens)
        while wait := minute.wait(rates, 1, counted):
            assert 0 < wait <= COUNTS_FOR_S
            clock.now += wait
        minute.count(1, counted)
        found.append((clock.now + request.late, counted))
    return sorted(found)


def fullest(found: Sequence[tuple[float, float]]) -> tuple[int, float]:
    """Return the most requests and the most tokens of any 60 s, which begin with a request."""
    inside = [[tokens for at, tokens in found if begin <= at < begin + 60] for begin, _ in found]
    return max(map(len, inside), default=0), max(map(sum, inside), default=0)


def keeps(rates: Rates, found: Sequence[tuple[float, float]]) -> bool:
    requests, tokens = fullest(found)
    return requests <= rates.requests and tokens <= rates.tokens


@settings(max_examples=150, deadline=None)
@given(rates=RATES, requests=REQUESTS)
def test_no_60_s_have_more_than_the_limit_however_requests_come(rates, requests):
    assert keeps(rates, sent(rates, requests))


@pytest.mark.parametrize("seconds", [60, 45])
def test_a_window_that_forgets_too_soon_is_found(monkeypatch, seconds):
    monkeypatch.setattr(limits, "COUNTS_FOR_S", seconds)
    rng = random.Random(20261124)
    requests = [Request(rng.choice((0.0, 0.3, 9.0)), 10, rng.random()) for _ in range(200)]
    assert not keeps(Rates(5), sent(Rates(5), requests))


@pytest.mark.parametrize(
    ("rates", "tokens", "each_window"),
    [(Rates(30), 10, 30), (Rates(tokens=1000), 100, 10), (Rates(30, 1000), 100, 10)],
)
def test_where_there_is_always_work_the_limit_is_reached_but_for_two_seconds(rates, tokens, each_window):
    found = sent(rates, [Request(0.0, tokens, 0.0)] * (10 * each_window))
    # The tenth window begins nine times 62 s after the first, less the part of a second in which that began.
    assert found[-1][0] - found[0][0] == pytest.approx(9 * COUNTS_FOR_S, abs=1)


def test_what_the_server_counted_replaces_the_estimate():
    clock, rates = Clock(), Rates(tokens=1000)
    minute = Minute(clock)
    second = minute.count(1, 600)
    assert minute.wait(rates, 1, 600) > 0
    # It took 100.
    minute.count(0, -500, second)
    assert minute.wait(rates, 1, 600) == 0
    # It took far more: the next one waits until both are past.
    minute.count(0, 1400, second)
    assert minute.wait(rates, 1, 1) == pytest.approx(COUNTS_FOR_S - BEGIN % 1)
    # What no longer counts is not put right any more.
    clock.now += COUNTS_FOR_S
    minute.count(0, 900, second)
    assert minute.is_empty


@pytest.mark.parametrize("dialect", [Dialect.VLLM, Dialect.OPENAI_REASONING, Dialect.OLLAMA])
def test_a_request_is_estimated_at_its_prompt_and_the_most_that_it_may_write(dialect):
    text = {"type": "text", "text": "x" * 300}
    question = ChatRequest("m", [{"role": "user", "content": [text]}], 50, thinking=2_000)
    assert 2_150 <= dialect.server.estimate(question) <= 2_155
    # However large its file, a picture is one.
    shown = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 50_000}}
    of_one = replace(question, messages=[{"role": "user", "content": [text, shown]}])
    assert 3_150 <= dialect.server.estimate(of_one) <= 3_155
