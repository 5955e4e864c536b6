"""Limits a minute of an endpoint: over all calls and processes, and nothing is held while a minute passes."""

import threading

import numpy as np
from django.utils import timezone

from prefmh_web.endpoints import judge_calls, minutes
from prefmh_web.endpoints.calls import unless_full
from prefmh_web.endpoints.minute_rows import KeptMinute, Minute, MinuteFull
from prefmh_web.endpoints.models import Endpoint, MinuteUse, Slot
from tests.endpoints.conftest import PAIR
from tests.security.test_limits import all_at_once
from tests.support.models import Script

# What the scripted server says that each reply took.
TOKENS = 52


def ask(endpoint: Endpoint, votes: int) -> judge_calls.Votes:
    """Ask as a turn does."""
    with unless_full():
        return judge_calls.votes_by_sampling(endpoint, PAIR, [True] * votes, np.random.default_rng(1))


def spent() -> tuple[int, int]:
    """Return the requests and the tokens that count now."""
    entries = MinuteUse.objects.get().spent
    return sum(entry[1] for entry in entries), sum(entry[2] for entry in entries)


def a_minute_passes() -> None:
    row = MinuteUse.objects.get()
    row.spent = [[second - minutes.COUNTS_FOR_S, *rest] for second, *rest in row.spent]
    row.save()


def test_what_would_pass_the_limit_is_not_sent_and_holds_nothing(scripted, script: Script):
    scripted.requests_a_minute = 5
    votes = ask(scripted, 8)
    assert len(votes.cast) == len(script.requests) == 5
    assert isinstance(votes.failure, MinuteFull)
    assert 0 < votes.failure.retry_after <= minutes.COUNTS_FOR_S
    assert "5 requests a minute" in votes.failure.reason
    assert isinstance(ask(scripted, 1).failure, MinuteFull)
    assert len(script.requests) == 5
    assert not Slot.objects.filter(until__gt=timezone.now()).exists()
    # It is no failure of the server's.
    scripted.refresh_from_db()
    assert (scripted.failures, scripted.open_until, scripted.last_error) == (0, None, "")
    scripted.requests_a_minute = 5
    a_minute_passes()
    assert len(ask(scripted, 3).cast) == 3


def test_tokens_are_those_that_the_server_counted(scripted, script: Script):
    scripted.tokens_a_minute = 100_000
    ask(scripted, 4)
    assert spent() == (4, 4 * TOKENS)
    scripted.tokens_a_minute = 4 * TOKENS + 1
    assert isinstance(ask(scripted, 1).failure, MinuteFull)
    assert len(script.requests) == 4


def test_what_is_of_use_only_as_a_whole_waits_for_the_minute_to_pass(scripted, script: Script, monkeypatch):
    monkeypatch.setattr(minutes, "COUNTS_FOR_S", 1)
    scripted.requests_a_minute = 2
    votes = judge_calls.votes_by_sampling(scripted, PAIR, [True] * 5, np.random.default_rng(1))
    assert (len(votes.cast), votes.failure) == (5, None)


def test_many_processes_together_get_what_one_may_have(idle_tasks, scripted):
    scripted.requests_a_minute = 20
    counts, lock = [], threading.Lock()

    def process() -> None:
        for _ in range(5):
            given = Minute(scripted).take([1, 1])
            with lock:
                counts.append(given.count)

    all_at_once([process] * 6)
    assert sum(counts) == spent()[0] == 20


def test_what_is_set_aside_for_a_turn_is_its_own_and_goes_back_unused(scripted, eventually):
    scripted.requests_a_minute = 4
    now = 1_790_000_000.0
    mine, other = KeptMinute(scripted, lambda: now), Minute(scripted, lambda: now)
    assert mine.reserve(3)
    assert other.take([1, 1]).count == 1
    assert not mine.reserve(1)
    assert mine.take([1, 1, 1]).count == 3
    assert spent()[0] == 4
    now += minutes.COUNTS_FOR_S
    eventually(lambda: mine.reserve(3))
    now += 10
    mine.keep()
    assert spent()[0] == 0
