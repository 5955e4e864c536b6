"""The limits a minute of an endpoint, held over all processes by a row of the database.

    Minute       asks the row for each call
    KeptMinute   sets permits aside as well, for turns that are about to begin: for a process of many calls

Who takes permits locks the row for as long as it takes to count them. The time is each machine's own; where their
clocks differ, the one that is ahead counts.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import transaction

from prefmh_web.endpoints.errors import Busy
from prefmh_web.endpoints.minutes import Rates, Spent, Window
from prefmh_web.endpoints.models import Endpoint, MinuteUse

# What is asked for ahead of time leaves the rest to those who wait, as with places (`slots.py`).
_AHEAD = 0.75
# Permits that were set aside for a turn that has not used them.
_SET_ASIDE_S = 5.0
# How soon a full minute is looked at again: others may have given something back.
_LOOK_EVERY_S = 0.25
# How soon what the newest request was estimated at outweighs those before.
_WEIGHT = 0.1


class MinuteFull(Busy):
    """Not asked: the endpoint has had what it may have in a minute, and `retry_after` is when there is room."""


@dataclass(frozen=True)
class Given:
    """So many of the requests that were asked for may be sent, from the front: they count in this second.

    Args:
        wait: seconds until the next one may.
    """

    count: int
    second: int
    wait: float


class Minute:
    """The limits of one endpoint, by the row.

    Args:
        clock: tells the seconds since 1970.
    """

    def __init__(self, endpoint: Endpoint, clock: Callable[[], float] = time.time) -> None:
        self.endpoint, self._clock = endpoint, clock

    @property
    def rates(self) -> Rates:
        """What the endpoint's owner has entered."""
        return Rates(self.endpoint.requests_a_minute, self.endpoint.tokens_a_minute)

    def check(self, *, is_ahead: bool) -> None:
        """Take nothing.

        Raises:
            MinuteFull: not one request may be sent now.
        """
        row = MinuteUse.objects.filter(endpoint=self.endpoint).first()
        if row is not None and (wait := Window(row.spent, self._clock()).wait(self._rates(is_ahead), 1)):
            raise self.full(wait)

    def take(self, needs: Sequence[int], changes: Sequence[Spent] = (), *, is_ahead: bool = False) -> Given:
        """Count requests that are sent now, as many as may be.

        Args:
            needs: the tokens of each, estimated.
            changes: what is put right before.
        """
        rates = self._rates(is_ahead)
        with transaction.atomic():
            row, _ = MinuteUse.objects.select_for_update().get_or_create(endpoint_id=self.endpoint.pk)
            window = Window(row.spent, self._clock())
            window.add(*changes)
            count = window.send(rates, needs)
            wait = window.wait(rates, needs[count]) if count < len(needs) else 0.0
            row.spent = window.entries()
            row.save(update_fields=["spent"])
        return Given(count, math.floor(window.now), wait)

    def settle(self, changes: Sequence[Spent]) -> None:
        """Put right what was counted."""
        if changes:
            self.take((), changes)

    def full(self, wait: float) -> MinuteFull:
        """Return why a request is not sent."""
        limits = {"requests": self.rates.requests, "tokens": self.rates.tokens}
        named = " and ".join(f"{limit:,} {what}" for what, limit in limits.items() if limit is not None)
        return MinuteFull(f"{self.endpoint.name} may have {named} a minute, and has had them", retry_after=wait)

    def _rates(self, is_ahead: bool) -> Rates:
        return self.rates.part(_AHEAD) if is_ahead else self.rates


class KeptMinute(Minute):
    """The limits of one endpoint for all calls of this process; used by several threads."""

    def __init__(self, endpoint: Endpoint, clock: Callable[[], float] = time.time) -> None:
        super().__init__(endpoint, clock)
        self._lock = threading.Lock()
        self._next: list[Spent] = []
        self._begun: deque[Spent] = deque()
        self._look_at = -math.inf
        self._tokens = 0.0
        self._changes: list[Spent] = []

    def reserve(self, requests: float) -> bool:
        """Set permits aside for a turn of so many requests that is the next one; False while there are not enough.

        What there is stays with it, so that none waits for ever behind smaller ones.
        """
        with self._lock:
            tokens = math.ceil(self._tokens)
            lacking = self.rates.alike(max(1, math.ceil(requests)), tokens) - len(self._next)
            if lacking > 0:
                if time.monotonic() < self._look_at:
                    return False
                given = super().take([tokens] * lacking)
                self._next += [Spent(given.second, 1, self.rates.counted(tokens))] * given.count
                if given.count < lacking:
                    self._look_at = time.monotonic() + min(given.wait, _LOOK_EVERY_S)
                    return False
            self._begun.extend(self._next)
            self._next.clear()
        return True

    def spare(self, requests: float, asked: int) -> None:
        """Leave to the next turn what one that has ended did not use.

        Args:
            requests: for which permits were set aside.
            asked: how many it made.
        """
        with self._lock:
            unused = self.rates.alike(max(1, math.ceil(requests)), math.ceil(self._tokens)) - asked
            self._next += [self._begun.popleft() for _ in range(min(unused, len(self._begun)))]

    def check(self, *, is_ahead: bool) -> None:
        """Take nothing; what was set aside for a turn may be sent.

        Raises:
            MinuteFull: not one request may be sent now.
        """
        if is_ahead or not self._begun:
            super().check(is_ahead=is_ahead)

    def take(self, needs: Sequence[int], changes: Sequence[Spent] = (), *, is_ahead: bool = False) -> Given:
        """Do as `Minute.take` does, in the place of what was set aside."""
        with self._lock:
            count = 0 if is_ahead else min(len(needs), len(self._begun))
            aside = [self._begun.popleft() for _ in range(count)]
            for tokens in needs:
                self._tokens = self._tokens + _WEIGHT * (tokens - self._tokens) if self._tokens else float(tokens)
        return super().take(needs, [*changes, *map(_back, aside)], is_ahead=is_ahead)

    def settle(self, changes: Sequence[Spent]) -> None:
        """Remember what is put right; `keep` writes it."""
        with self._lock:
            self._changes += changes

    def keep(self) -> None:
        """Write what is put right, and give back what was set aside and not used."""
        with self._lock:
            changes, self._changes = self._changes, []
            before = math.floor(self._clock() - _SET_ASIDE_S)
            idle = [spent for spent in (*self._next, *self._begun) if spent.second <= before]
            self._next = [spent for spent in self._next if spent.second > before]
            self._begun = deque(spent for spent in self._begun if spent.second > before)
            changes += map(_back, idle)
        try:
            super().settle(changes)
        except BaseException:
            with self._lock:
                self._changes += changes
            raise

    def give_back(self) -> None:
        """Give back all that is set aside."""
        with self._lock:
            self._changes += map(_back, (*self._next, *self._begun))
            self._next.clear()
            self._begun.clear()
        self.keep()


def _back(spent: Spent) -> Spent:
    return Spent(spent.second, -spent.requests, -spent.tokens)
