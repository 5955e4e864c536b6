"""How many requests an endpoint serves best at a time, found by trying: additive increase, multiplicative decrease.

It begins with a few and doubles while all goes well, up to half of what first brought trouble; from there it adds one a
round, as congestion control does (Chiu and Jain, 1989). Trouble is a reply that says "too many requests" or that the
server is overloaded, or that replies of one label take several times as long as the fastest ones have: then requests
only wait at the server. Only what is `alike` is compared: texts take as long as they are. The endpoint's own number
(`concurrency`) is the most it may come to.

Each process finds its own, in memory: processes that share a server share it as connections share a line. It does
not matter for what is sampled: which votes there are never depends on when they are asked for.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from prefmh_web.endpoints.outcomes import Call

FIRST = 16
_OVERLOADED = frozenset({"rate_limited", "server_error", "timed_out", "unreachable"})
_AFTER_TROUBLE = 0.7
# Replies may take so many times as long as the fastest lately before that counts as trouble.
_SLOW = 3.0
# Of short times, noise is a large part.
_SLOW_BY_S = 0.25
# Between a place and its request.
_A_MOMENT_S = 0.5
# How soon the newest time outweighs older ones.
_WEIGHT = 0.1
# What counts as about as fast, and how long the fastest time is believed when none is.
_AS_FAST = 1.1
_FASTEST_FOR_S = 120.0


_alike: ContextVar[Hashable] = ContextVar("alike", default=None)


@contextmanager
def alike(key: Hashable) -> Iterator[None]:
    """Say that what is asked in this block, and in others of the same key, takes about as long: one judge's votes.

    Only such times are compared with each other. A test of the server is shorter, and another judge's prompt longer.
    """
    before = _alike.set(key)
    try:
        yield
    finally:
        _alike.reset(before)


@dataclass
class _Times:
    """How long requests that are alike take: on average lately, and the fastest, which was seen then."""

    mean: float | None = None
    fastest: float = math.inf
    seen_at: float = -math.inf
    learns_from: float = -math.inf


class Limit:
    """The limit of one endpoint in this process.

    Args:
        clock: tells the seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit = float(FIRST)
        # Where trouble began; failures in a row are one trouble.
        self._trouble_at, self._has_answered = math.inf, True
        self._under_way = 0
        self._filled_at = -math.inf
        self._times: defaultdict[Hashable, _Times] = defaultdict(_Times)
        self._calm_since = self._rises_from = -math.inf

    def now(self, most: int) -> int:
        """Return how many requests may be under way, up to `most`."""
        return max(1, min(int(self._limit), most))

    @property
    def under_way(self) -> int:
        """How many requests of this process are under way, or have a place."""
        return self._under_way

    def begin(self, count: int) -> None:
        """So many more have a place."""
        self._under_way += count
        if 2 * self._under_way >= self._limit:
            self._filled_at = self._clock()

    def end(self, count: int) -> None:
        """So many have a place no more."""
        self._under_way -= count

    def note(self, calls: Iterable[Call], most: int) -> None:
        """Take in what some requests came to.

        Args:
            most: the endpoint's own number, beyond which there is nothing to find.
        """
        now, key = self._clock(), _alike.get()
        for call in calls:
            if call.error is None:
                self._has_answered = True
                if call.is_for_label and key is not None:
                    self._note_time(self._times[key], call.seconds, now)
                self._rise(most, now - call.seconds)
            elif call.error in _OVERLOADED:
                self._fall(now, call.seconds)

    def _note_time(self, times: _Times, seconds: float, now: float) -> None:
        if now - seconds < times.learns_from:
            return
        times.mean = seconds if times.mean is None else times.mean + _WEIGHT * (seconds - times.mean)
        if seconds <= _AS_FAST * times.fastest:
            times.fastest, times.seen_at = min(seconds, times.fastest), now
        elif now - times.seen_at > _FASTEST_FOR_S:
            self._learn_anew(times, now)
        elif times.mean > max(_SLOW * times.fastest, times.fastest + _SLOW_BY_S):
            self._fall(now, max(seconds, times.mean))

    def _learn_anew(self, times: _Times, now: float) -> None:
        """Ask for so little that nothing waits at the server, and see how fast it is now."""
        mean = times.mean or 0.0
        self._limit = max(1.0, self._limit * _AS_FAST**-2 * min(times.fastest / mean if mean else 1.0, 1.0))
        times.learns_from = self._calm_since = self._rises_from = now + mean
        times.fastest, times.seen_at, times.mean = math.inf, now, None
        self._trouble_at = math.inf

    def _rise(self, most: int, sent_at: float) -> None:
        # Where the limit was not nearly reached, an answer proves nothing.
        if sent_at >= self._rises_from and self._filled_at >= sent_at - _A_MOMENT_S:
            # One more for each answer doubles it each round.
            self._limit = min(
                self._limit + (1.0 if 2 * self._limit < self._trouble_at else 1.0 / self._limit), float(most)
            )

    def _fall(self, now: float, seconds: float) -> None:
        # Once a round: what is under way was sent before.
        if now >= self._calm_since:
            if self._has_answered:
                self._trouble_at, self._has_answered = self._limit, False
            self._limit = max(1.0, self._limit * _AFTER_TROUBLE)
            self._calm_since = now + seconds
