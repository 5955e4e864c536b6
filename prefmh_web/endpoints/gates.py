"""What stands between a call and its server, in the memory of this process: circuit, places, limits a minute, counts.

    gate_of    the gate of an endpoint: of its model on its server as they are named now
    flush      writes what gates have counted, and how their circuits stand, into the database

All of a gate happens on the loop on which servers are asked (`loop.py`); `flush` takes what has gathered from any
thread that has the database.

The circuit leaves an endpoint alone that failed lately.

    closed      everybody may ask
    open        nobody may, until a moment
    half open   that moment is past: one call may try, with one request

A trial that is answered closes the circuit; one that fails opens it for twice as long as before. A server that asks
for a pause (429, or Retry-After) gets it at once. Hundreds of requests may be under way when the circuit opens: they
fail of the same cause, and their failures lengthen no pause. Nor does an answer to one of them close the circuit.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from prefmh_web.endpoints import accounting
from prefmh_web.endpoints.errors import (
    AddressRefused,
    Busy,
    CircuitOpen,
    EndpointError,
    KeyMissing,
    RateLimited,
    Stopped,
    TryLater,
)
from prefmh_web.endpoints.limits import Limit
from prefmh_web.endpoints.minutes import Rates, Spent, Window
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.outcomes import Call

# Failures in a row after which the circuit opens.
FAILURES_TO_OPEN = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
# A server that asks for no wait at all, and refuses all the same, is not asked in a tight loop.
SHORTEST_PAUSE_S = 0.5
# Of so many places, one is left to those who wait; of a minute, so much is for what nobody waits for.
_SPARED_OF = 4
_AHEAD = 0.75
# How long a request waits for a full minute to pass; beside others that may take longer.
_PATIENCE_S = 180.0
# How soon what the newest request was estimated at outweighs those before.
_WEIGHT = 0.1


class MinuteFull(Busy):
    """Not asked: the endpoint has had what it may have in a minute, and `retry_after` is when there is room."""


class Circuit:
    """The circuit of one endpoint.

    Args:
        open_for: the seconds for which it is open already.
        clock: tells the seconds.
    """

    def __init__(self, failures: int, open_for: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self.failures = clock, failures
        self._open_until = None if open_for is None else clock() + open_for
        self._is_tried = False
        self.reason = ""
        self.has_changed = self.has_failed = False

    @property
    def open_for(self) -> float | None:
        """For how many seconds nobody may ask; None where it is closed."""
        return None if self._open_until is None else max(self._open_until - self._clock(), 0.0)

    def admit(self, name: str) -> bool:
        """Return whether requests may go out as usual; False allows a single one, the trial of a half-open circuit.

        Raises:
            CircuitOpen: none may; `retry_after` says for how long.
        """
        left = self.open_for
        if left is None:
            return True
        if not left and not self._is_tried:
            self._is_tried = True
            return False
        wait = max(left, 0.1)
        raise CircuitOpen(f"{name} rests for {wait:.0f} s, because: {self.reason or 'it is being tried'}", wait)

    def answered(self, *, is_trial: bool) -> None:
        """A request was answered: forget the failures before it; a trial closes the circuit."""
        if is_trial or self._open_until is None:
            self.has_changed |= bool(self.failures) or self._open_until is not None
            self.failures, self._open_until, self._is_tried = 0, None, False

    def failed(self, error: EndpointError, *, is_trial: bool) -> None:
        """A request failed: keep the reason, and open the circuit if it is one failure too many."""
        if not isinstance(error, Stopped):
            self.reason, self.has_changed, self.has_failed = error.reason[:300], True, True
        if isinstance(error, Stopped | KeyMissing | AddressRefused):
            # We ended it, or sent nothing; that says nothing of the server.
            if is_trial:
                self.release()
        elif not isinstance(error, TryLater):
            # The server did answer, and so the trial, if it was one, is over.
            self.answered(is_trial=is_trial)
        elif is_trial or self._open_until is None:
            self.failures += 1
            self._is_tried = False
            if pause := _pause(error, self.failures):
                self._open_until = self._clock() + pause
        elif error.asked_to_wait:
            # No shorter a pause than it asks for, though its circuit is open for another reason.
            self._open_until = max(self._open_until, self._clock() + _pause(error, 0))

    def release(self) -> None:
        """Let the next caller try: a trial sent nothing after all, or somebody says that the server is mended."""
        self._is_tried = False
        if self._open_until is not None:
            self._open_until, self.has_changed = self._clock(), True


def _pause(error: TryLater, failures: int) -> float:
    """Return how long to leave the server alone, in seconds; 0 for not at all."""
    if error.asked_to_wait:
        return max(error.retry_after, SHORTEST_PAUSE_S)
    too_many = failures - FAILURES_TO_OPEN
    if isinstance(error, RateLimited):
        too_many = max(too_many, 0)
    if too_many < 0:
        return 0.0
    return min(FIRST_PAUSE_S * 2.0 ** min(too_many, 30), LONGEST_PAUSE_S)


class Gate:
    """All that this process knows of one endpoint.

    Args:
        endpoint: its row, as it was read last.
        clock: tells the seconds since 1970.
    """

    def __init__(self, endpoint: Endpoint, clock: Callable[[], float] = time.time) -> None:
        self.endpoint, self._clock = endpoint, clock
        self.limit = Limit()
        until = endpoint.open_until
        open_for = None if until is None else (until - timezone.now()).total_seconds()
        self.circuit = Circuit(endpoint.failures, open_for)
        self.circuit.reason = endpoint.last_error
        self._line: deque[asyncio.Future[None]] = deque()
        self._spent: list[Spent] = []
        # Of a request, lately.
        self._tokens = 0.0
        self._calls: list[tuple[Sequence[Call], int]] = []

    def room(self, *, is_ahead: bool = False) -> int:
        """Return for how many more requests there is a place."""
        most = self.limit.now(self.endpoint.concurrency)
        return most - self.limit.under_way - (most // _SPARED_OF if is_ahead else 0)

    @asynccontextmanager
    async def place(self, *, is_ahead: bool) -> AsyncIterator[None]:
        """Hold a place for one request at a time, which is waited for in a line.

        Raises:
            Busy: there is none now, and nobody waits for what it is wanted for.
        """
        if is_ahead and self.room(is_ahead=True) <= 0:
            raise Busy(f"{self.endpoint.name} has as many requests under way as it may have", retry_after=1.0)
        if is_ahead or (not self._line and self.room() > 0):
            self.limit.begin(1)
        else:
            await self._in_line()
        try:
            yield
        finally:
            self.limit.end(1)
            self._call_next()

    async def _in_line(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._line:
                self._line.remove(turn)
            else:
                self.limit.end(1)
            raise

    def _call_next(self) -> None:
        while self._line and self.room() > 0:
            turn = self._line.popleft()
            if not turn.cancelled():
                self.limit.begin(1)
                turn.set_result(None)

    @property
    def _rates(self) -> Rates:
        return Rates(self.endpoint.requests_a_minute, self.endpoint.tokens_a_minute)

    def has_minute(self, requests: int, *, unsent: int) -> bool:
        """Return whether so many more requests, as large as those before, may be sent in this minute.

        Args:
            unsent: how many are about to be sent.
        """
        if not self.endpoint.is_limited_a_minute:
            return True
        needs = [math.ceil(self._tokens)] * (max(unsent, 0) + max(requests, 1))
        # What could never be sent at once is sent bit by bit.
        room = Window(self._spent, self._clock()).send(self._rates, needs)
        return room == len(needs) or (not self._spent and unsent <= 0)

    async def permit(self, tokens: int, *, is_ahead: bool) -> Callable[[int], None]:
        """Return once a request of about so many tokens may be sent in this minute.

        Returns:
            What takes in how many tokens the server has counted.

        Raises:
            MinuteFull: it may not be sent soon.
        """
        rates = self._rates.part(_AHEAD) if is_ahead else self._rates
        self._tokens += _WEIGHT * (tokens - self._tokens) if self._tokens else tokens
        deadline = self._clock() + (0.0 if is_ahead else _PATIENCE_S)
        while True:
            window = Window(self._spent, self._clock())
            if window.send(rates, [tokens]):
                break
            wait = window.wait(rates, tokens)
            if self._clock() + wait > deadline:
                raise self._full(wait)
            await asyncio.sleep(wait)
        self._spent = window.entries()
        second, counted = math.floor(window.now), rates.counted(tokens)

        def settle(true: int) -> None:
            self._spent.append(Spent(second, 0, true - counted))

        return settle

    def count_as_spent(self, requests: int) -> None:
        """Count requests as sent now: they may have been, by a process that has ended."""
        self._spent.append(Spent(math.floor(self._clock()), requests, 0))

    def _full(self, wait: float) -> MinuteFull:
        limits = {"requests": self._rates.requests, "tokens": self._rates.tokens}
        named = " and ".join(f"{limit:,} {what}" for what, limit in limits.items() if limit is not None)
        return MinuteFull(f"{self.endpoint.name} may have {named} a minute, and has had them", retry_after=wait)

    def passed(self, calls: Sequence[Call], unparsable: int, error: EndpointError | None, *, was_usual: bool) -> None:
        """Take in what a call came to."""
        accounting.tally(self.endpoint, calls, unparsable)
        self.limit.note(calls, self.endpoint.concurrency)
        self._calls.append((calls, unparsable))
        if error is None:
            self.circuit.answered(is_trial=not was_usual)
        else:
            self.circuit.failed(error, is_trial=not was_usual)
        self._call_next()

    def turned_away(self, error: EndpointError | None, *, was_usual: bool) -> None:
        """Take in that a call sent nothing after it was admitted, and why if that lies at the endpoint."""
        if error is not None:
            self.circuit.failed(error, is_trial=not was_usual)
        elif not was_usual:
            self.circuit.release()

    def flush(self) -> None:
        """Write the counts of the calls, and the circuit if it has changed, from a thread that has the database."""
        circuit = self.circuit
        if not self._calls and not circuit.has_changed:
            return
        calls, self._calls = self._calls, []
        has_changed, has_failed = circuit.has_changed, circuit.has_failed
        circuit.has_changed = circuit.has_failed = False
        try:
            # Both or none: it is tried again.
            with transaction.atomic():
                accounting.write(self.endpoint, [call for some, _ in calls for call in some], sum(n for _, n in calls))
                if has_changed:
                    self._write_circuit(has_failed=has_failed)
        except BaseException:
            self._calls += calls
            circuit.has_changed, circuit.has_failed = True, circuit.has_failed or has_failed
            raise

    def _write_circuit(self, *, has_failed: bool) -> None:
        circuit, now = self.circuit, timezone.now()
        until = None if circuit.open_for is None else now + timedelta(seconds=circuit.open_for)
        seen = {"last_error": circuit.reason, "last_error_at": now} if has_failed else {}
        Endpoint.objects.filter(pk=self.endpoint.pk).update(failures=circuit.failures, open_until=until, **seen)


_gates: dict[tuple[int, str, str], Gate] = {}


def gate_of(endpoint: Endpoint) -> Gate:
    """Return the gate of an endpoint, which knows its row as it is now."""
    which = endpoint.pk, endpoint.base_url, endpoint.model
    if (gate := _gates.get(which)) is None:
        gate = _gates[which] = Gate(endpoint)
    gate.endpoint = endpoint
    return gate


def flush() -> None:
    """Write what all gates have gathered."""
    for gate in list(_gates.values()):
        gate.flush()


def forget() -> None:
    """Forget all that was found."""
    _gates.clear()


os.register_at_fork(after_in_child=forget)
