"""Limits a minute, by a simulated clock: never more in any 60 s, and no later than that allows."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prefmh_web.endpoints import minutes
from prefmh_web.endpoints.minutes import COUNTS_FOR_S, Rates, Spent, Window
from prefmh_web.endpoints.token_estimates import estimated

# Seconds since 1970, not at the beginning of one.
BEGIN = 1_790_000_000.37


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
RATES = st.builds(Rates, st.one_of(st.none(), st.integers(1, 12)), st.one_of(st.none(), st.integers(1, 150)))


def sent(rates: Rates, requests: Sequence[Request]) -> list[tuple[float, int]]:
    """Send each request as soon as the window allows it; return when each went out, and its tokens as counted.

    Each is counted by a process that reads what the one before has stored.
    """
    now, stored, found = BEGIN, [], []
    for request in requests:
        now += request.after
        while True:
            window = Window(stored, now)
            if window.send(rates, [request.tokens]):
                break
            wait = window.wait(rates, request.tokens)
            assert 0 < wait <= COUNTS_FOR_S
            now += wait
        stored = [list(entry) for entry in window.entries()]
        found.append((now + request.late, rates.counted(request.tokens)))
    return sorted(found)


def fullest(found: Sequence[tuple[float, int]]) -> tuple[int, int]:
    """Return the most requests and the most tokens of any 60 s, which begin with a request."""
    inside = [[tokens for at, tokens in found if begin <= at < begin + 60] for begin, _ in found]
    return max(map(len, inside), default=0), max(map(sum, inside), default=0)


def keeps(rates: Rates, found: Sequence[tuple[float, int]]) -> bool:
    requests, tokens = fullest(found)
    return (rates.requests is None or requests <= rates.requests) and (rates.tokens is None or tokens <= rates.tokens)


@settings(max_examples=150, deadline=None)
@given(rates=RATES, requests=REQUESTS)
def test_no_60_s_have_more_than_the_limit_however_requests_come(rates, requests):
    assert keeps(rates, sent(rates, requests))


@pytest.mark.parametrize("seconds", [60, 45])
def test_a_window_that_forgets_too_soon_is_found(monkeypatch, seconds):
    monkeypatch.setattr(minutes, "COUNTS_FOR_S", seconds)
    rng = random.Random(20261124)
    requests = [Request(rng.choice((0.0, 0.3, 9.0)), 10, rng.random()) for _ in range(200)]
    assert not keeps(Rates(5, None), sent(Rates(5, None), requests))


def test_a_bucket_that_fills_up_again_is_found():
    # Full at first, and refilled at the limit's rate: twice as many in the first minute.
    allowed, at, found = 10.0, 0.0, []
    for now in [step / 10 for step in range(900)]:
        allowed, at = min(10.0, allowed + (now - at) * 10 / 60), now
        if allowed >= 1:
            allowed -= 1
            found.append((now, 1))
    assert not keeps(Rates(10, None), found)


@pytest.mark.parametrize(
    ("rates", "tokens", "each_window"),
    [(Rates(30, None), 10, 30), (Rates(None, 1000), 100, 10), (Rates(30, 1000), 100, 10)],
)
def test_where_there_is_always_work_the_limit_is_reached_but_for_two_seconds(rates, tokens, each_window):
    found = sent(rates, [Request(0.0, tokens, 0.0)] * (10 * each_window))
    # The tenth window begins nine times 62 s after the first, less the part of a second in which that began.
    assert found[-1][0] - found[0][0] == pytest.approx(9 * COUNTS_FOR_S, abs=1)


def test_what_the_server_counted_replaces_the_estimate():
    rates, window = Rates(None, 1000), Window([], BEGIN)
    assert window.send(rates, [600, 600]) == 1
    # It took 100.
    window.add(Spent(int(BEGIN), 0, -500))
    assert window.send(rates, [600]) == 1
    # It took far more: the next one waits until both are past.
    window.add(Spent(int(BEGIN), 0, 900))
    assert window.wait(rates, 1) == pytest.approx(COUNTS_FOR_S - BEGIN % 1)
    # What no longer counts is not put right any more.
    later = Window(window.entries(), BEGIN + COUNTS_FOR_S)
    later.add(Spent(int(BEGIN), 0, 900))
    assert later.entries() == []


def test_the_clock_that_is_ahead_counts_and_one_that_was_far_ahead_is_forgotten():
    rates = Rates(1, None)
    ahead = Window([], BEGIN + 5)
    ahead.send(rates, [1])
    behind = Window(ahead.entries(), BEGIN)
    assert behind.wait(rates, 1) == pytest.approx(COUNTS_FOR_S)
    assert Window([Spent(int(BEGIN) + 3600, 1, 1)], BEGIN).wait(rates, 1) == 0


def test_a_request_is_estimated_at_its_prompt_and_the_most_that_it_may_write():
    messages = [{"role": "user", "content": "x" * 300}]
    assert 100 <= estimated({"messages": messages}) <= 105
    for name in ("max_tokens", "max_completion_tokens", "n_predict"):
        assert estimated({"messages": messages, name: 50}) == estimated({"messages": messages}) + 50
    gemini = {"contents": messages, "generationConfig": {"maxOutputTokens": 50}}
    assert estimated(gemini) == estimated({"contents": messages}) + 50
    # However large its file, a picture is one; tokens that are sent as ids are as many as they are.
    for picture in ("data:image/png;base64," + "A" * 50_000, "A" * 50_000):
        assert 1000 <= estimated({"messages": [{"content": [{"url": picture}]}]}) <= 1010
    assert estimated({"prompt": [1, 2, 3], "max_tokens": 4}) == 7
    assert estimated(None) == 0
