"""What stands between a call and its server: the circuit, the places for requests, limits a minute, and the counts.

    ByTheRow    asks and writes the database for each call: for processes that make some
    Kept        remembers for a moment, and holds places for many calls together: for a process that makes hundreds at a
                time (`manage.py judges`), of which each would cost more than the server's answer takes to read

Both keep the same promises over all processes: no more requests at a time than the endpoint may have, nor in a minute,
a server that asks for a pause gets it, and everything is counted. What `Kept` remembers of a circuit may be half a
second old, and a process that is killed loses the counts of one second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from prefmh_web.endpoints import accounting, breaker, slots
from prefmh_web.endpoints.errors import Busy, EndpointError
from prefmh_web.endpoints.keeping import Keeper
from prefmh_web.endpoints.lending import lent
from prefmh_web.endpoints.limits import limit_of
from prefmh_web.endpoints.minute_rows import KeptMinute, Minute
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.outcomes import Call

# How long what was read of a closed circuit is believed.
_BELIEVED_S = 0.5
# Places that nobody has used for so long are given back, and so many more are taken at once than are wanted.
_IDLE_S = 1.0
_TAKEN_AHEAD = 8


class Places(Protocol):
    """Places for requests that a call holds: as many as it has work for."""

    def __len__(self) -> int:
        """Return how many are held."""
        ...

    def grow(self, wanted: int) -> int:
        """Take up to so many more that are free; return how many."""
        ...

    def shrink(self, count: int) -> None:
        """Free so many."""
        ...

    def renew(self) -> None:
        """Keep them for another while."""
        ...


class Gate(Protocol):
    """What a call passes."""

    def admit(self) -> bool:
        """Return whether requests may go out as usual; False allows one.

        Raises:
            TryLater: none may.
        """
        ...

    @property
    def minute(self) -> Minute | None:
        """The limits a minute; None where there are none."""
        ...

    def places(self, wanted: int, *, is_ahead: bool) -> AbstractContextManager[Places]:
        """Hold between one and `wanted` places.

        Raises:
            Busy: there was none.
        """
        ...

    def passed(self, calls: Sequence[Call], unparsable: int, error: EndpointError | None, *, was_usual: bool) -> None:
        """Take in what a call came to."""
        ...

    def turned_away(self, error: EndpointError | None, *, was_usual: bool) -> None:
        """Take in that a call sent nothing after it was admitted, and why if that lies at the endpoint."""
        ...


class ByTheRow:
    """A gate whose state is in the database alone."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint

    def admit(self) -> bool:
        """Ask the circuit."""
        return breaker.admit(self._endpoint)

    @property
    def minute(self) -> Minute | None:
        """The endpoint's row, if it has limits."""
        return Minute(self._endpoint) if self._endpoint.is_limited_a_minute else None

    def places(self, wanted: int, *, is_ahead: bool) -> AbstractContextManager[Places]:
        """Hold rows of the endpoint."""
        return slots.held(self._endpoint, wanted, is_ahead=is_ahead)

    def passed(self, calls: Sequence[Call], unparsable: int, error: EndpointError | None, *, was_usual: bool) -> None:
        """Count it, and tell the circuit."""
        accounting.record(self._endpoint, calls, unparsable)
        limit_of(self._endpoint).note(calls, self._endpoint.concurrency)
        if error is None:
            breaker.answered(self._endpoint, is_trial=not was_usual)
        else:
            breaker.failed(self._endpoint, error, is_trial=not was_usual)

    def turned_away(self, error: EndpointError | None, *, was_usual: bool) -> None:
        """Let somebody else try, or keep the reason."""
        _turned_away(self._endpoint, error, was_usual=was_usual)


def _turned_away(endpoint: Endpoint, error: EndpointError | None, *, was_usual: bool) -> None:
    if error is not None:
        breaker.failed(endpoint, error, is_trial=not was_usual)
    elif not was_usual:
        breaker.release(endpoint)


class Kept:
    """A gate of one endpoint for all calls of this process."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._limit = limit_of(endpoint)
        self._changed = threading.Condition()
        self._rows: slots.Held | None = None
        self._used_at = self._renewed_at = 0.0
        self._closed_until = 0.0
        self._has_failed = True
        self._counts: list[tuple[Sequence[Call], int]] = []
        self._minute = KeptMinute(endpoint)
        self.endpoint = endpoint

    @property
    def minute(self) -> KeptMinute | None:
        """What this process has of the endpoint's minute, if it has limits."""
        self._minute.endpoint = self.endpoint
        return self._minute if self.endpoint.is_limited_a_minute else None

    def admit(self) -> bool:
        """Ask the circuit, unless it was closed a moment ago."""
        if time.monotonic() < self._closed_until:
            return True
        as_usual = breaker.admit(self.endpoint)
        if as_usual:
            self._closed_until = time.monotonic() + _BELIEVED_S
        return as_usual

    @contextmanager
    def places(self, wanted: int, *, is_ahead: bool) -> Iterator[Places]:
        """Hold places of this process."""
        held = _Share(self, is_ahead=is_ahead)
        deadline = time.monotonic() + slots.PATIENCE_S
        while not held.grow(wanted):
            if (left := deadline - time.monotonic()) <= 0:
                raise Busy(f"{self.endpoint.name} has as many requests under way as it may have", retry_after=1.0)
            with lent(), self._changed:
                self._changed.wait(min(left, 0.1))
        try:
            yield held
        finally:
            held.shrink(len(held))

    def take(self, wanted: int, *, is_ahead: bool) -> int:
        """Take up to so many places; return how many."""
        with self._changed:
            room = self._limit.now(self.endpoint.concurrency) - self._limit.under_way
            free = min(wanted, room - (slots.spared(self.endpoint) if is_ahead else 0))
            if free <= 0:
                return 0
            lacking = self._limit.under_way + free - len(self._own_rows())
            if lacking > 0:
                # The lock is held: others would ask the database for the same.
                self._own_rows().grow(lacking + _TAKEN_AHEAD)
                free = max(0, min(free, len(self._own_rows()) - self._limit.under_way))
            self._limit.begin(free)
            self._used_at = time.monotonic()
            return free

    def give(self, count: int) -> None:
        """Give places back."""
        self._limit.end(count)
        with self._changed:
            self._changed.notify(count)

    def passed(self, calls: Sequence[Call], unparsable: int, error: EndpointError | None, *, was_usual: bool) -> None:
        """Note it; what has changed is told to the circuit."""
        accounting.tally(self.endpoint, calls, unparsable)
        self._limit.note(calls, self.endpoint.concurrency)
        with self._changed:
            self._counts.append((calls, unparsable))
        if error is not None:
            self._has_failed, self._closed_until = True, 0.0
            breaker.failed(self.endpoint, error, is_trial=not was_usual)
        elif self._has_failed or not was_usual:
            self._has_failed = False
            breaker.answered(self.endpoint, is_trial=not was_usual)

    def turned_away(self, error: EndpointError | None, *, was_usual: bool) -> None:
        """Let somebody else try, or keep the reason."""
        _turned_away(self.endpoint, error, was_usual=was_usual)

    def keep(self) -> None:
        """Renew what is held, give back what is idle, and write the counts. Called every now and then."""
        if self.minute is not None:
            self.minute.keep()
        with self._changed:
            counts, self._counts = self._counts, []
        try:
            accounting.write(self.endpoint, [call for calls, _ in counts for call in calls], sum(n for _, n in counts))
        except BaseException:
            with self._changed:
                self._counts += counts
            raise
        with self._changed:
            rows, now = self._own_rows(), time.monotonic()
            idle = len(rows) - self._limit.under_way
            if idle > 0 and (now - self._used_at > _IDLE_S or idle > 2 * _TAKEN_AHEAD):
                rows.shrink(idle)
            if len(rows) and now - self._renewed_at >= slots.RENEW_EVERY_S:
                rows.renew()
                self._renewed_at = now

    def _own_rows(self) -> slots.Held:
        if self._rows is None or not len(self._rows):
            self._rows, self._renewed_at = slots.Held(self.endpoint), time.monotonic()
        return self._rows


class _Share:
    """What one call holds of the places of its process."""

    def __init__(self, gate: Kept, *, is_ahead: bool) -> None:
        self._gate, self._count = gate, 0
        self._is_ahead = is_ahead

    def __len__(self) -> int:
        return self._count

    def grow(self, wanted: int) -> int:
        taken = self._gate.take(wanted, is_ahead=self._is_ahead) if wanted > 0 else 0
        self._count += taken
        return taken

    def shrink(self, count: int) -> None:
        if count:
            self._count -= count
            self._gate.give(count)

    def renew(self) -> None:
        """Do nothing: the process renews all of them."""


class Gates:
    """The gates of a process that makes many calls; one thread keeps them."""

    def __init__(self) -> None:
        self._gates: dict[tuple[int, str, str], Kept] = {}
        self._lock = threading.Lock()
        self._keeper = Keeper(self._keep)

    def of(self, endpoint: Endpoint) -> Kept:
        """Return the gate of an endpoint, which knows its row as it is now."""
        with self._lock:
            gate = self._gates.setdefault(_which(endpoint), Kept(endpoint))
        gate.endpoint = endpoint
        self._keeper.begin()
        return gate

    def limit(self, endpoint: Endpoint) -> int:
        """Return how many requests may be under way at an endpoint, by what is known of it."""
        with self._lock:
            gate = self._gates.get(_which(endpoint))
        known = endpoint if gate is None else gate.endpoint
        return limit_of(known).now(known.concurrency)

    def has_minute(self, endpoint: Endpoint, requests: float) -> bool:
        """Set permits aside for a turn of so many requests that is about to begin; False while there are not enough."""
        with self._lock:
            gate = self._gates.get(_which(endpoint))
        minute = (self.of(endpoint) if gate is None else gate).minute
        return minute is None or minute.reserve(requests)

    def turn_over(self, endpoint: Endpoint, requests: float, asked: int) -> None:
        """Take in that a turn for which so much was set aside has asked so often."""
        with self._lock:
            gate = self._gates.get(_which(endpoint))
        if gate is not None and gate.minute is not None:
            gate.minute.spare(requests, asked)

    def end(self) -> None:
        """Write what is not written yet, and give all places back."""
        self._keeper.end()
        for gate in list(self._gates.values()):
            if gate.minute is not None:
                gate.minute.give_back()
        self._keep()

    def _keep(self) -> None:
        for gate in list(self._gates.values()):
            gate.keep()


def _which(endpoint: Endpoint) -> tuple[int, str, str]:
    return endpoint.pk, endpoint.base_url, endpoint.model
