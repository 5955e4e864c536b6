"""Rates in the memory of one process: what a window lets through, and what is forgotten."""

import random
from types import SimpleNamespace

import pytest
from limits import parse

from prefmh_web.transport import rate_limits
from prefmh_web.transport.rate_limits import OwnWindows


@pytest.fixture
def clock(monkeypatch):
    """The seconds that the windows see."""
    now = SimpleNamespace(seconds=1000.0)
    monkeypatch.setattr(
        rate_limits, "time", SimpleNamespace(monotonic=lambda: now.seconds, time=lambda: 5000 + now.seconds)
    )
    return now


def test_no_window_of_its_length_has_more_uses_than_the_rate(clock):
    rate, windows, rng, let_through, refused = parse("5/10 second"), OwnWindows(), random.Random(1), [], 0
    for _ in range(500):
        clock.seconds += rng.expovariate(1)
        if windows.hit(rate, "ada"):
            let_through.append(clock.seconds)
        else:
            refused += 1
            last_five = let_through[-5:]
            assert last_five[0] > clock.seconds - 10, "five uses of the last ten seconds must be the reason"
    assert refused > 100
    assert all(later - earlier >= 10 for earlier, later in zip(let_through, let_through[5:], strict=False))


def test_looking_counts_nothing_and_tells_how_long_to_wait(clock):
    rate, windows = parse("2/minute"), OwnWindows()
    assert windows.get_window_stats(rate, "ada") == (5000 + clock.seconds, 2)
    for _ in range(5):
        assert windows.test(rate, "ada")
    assert windows.hit(rate, "ada")
    clock.seconds += 20
    assert windows.hit(rate, "ada")
    assert not windows.test(rate, "ada")
    assert not windows.hit(rate, "ada")
    assert windows.get_window_stats(rate, "ada") == (5000 + clock.seconds + 40, 0)
    assert windows.test(rate, "eve")
    clock.seconds += 40
    assert windows.hit(rate, "ada")


def test_keys_that_nobody_uses_any_more_are_forgotten_and_the_others_are_not(clock):
    rate, windows = parse("1/minute"), OwnWindows()
    for number in range(3000):
        assert windows.hit(rate, str(number))
    clock.seconds += 61
    assert windows.hit(rate, "0")
    for number in range(3000, 8000):
        assert windows.hit(rate, str(number))
    # Twice those that still count, and no more.
    assert len(windows._windows) < 2 * 5001
    assert not windows.hit(rate, "0")
    windows.reset()
    assert windows.hit(rate, "0")
