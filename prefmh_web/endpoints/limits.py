"""What stands between a call and its server, in the memory of this process: circuit, places, limits a minute, counts.

    request_limits_of    the limits of an endpoint: of its model on its server as they are named now
    flush                writes what limits have counted, and how their circuits stand, into the database
    tallied              the calls of a block of code together: what a campaign's turn or its proposals took

All of this happens on the loop on which servers are asked (`loop.py`); `flush` takes what has gathered from any
thread that has the database. Processes that share a server share it as connections share a line. It does not matter for
what is sampled: which votes there are never depends on when they are asked for.
"""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone

from prefmh_web.endpoints.client import Call
from prefmh_web.endpoints.errors import (
    AddressRefused,
    CircuitOpen,
    EndpointError,
    KeyMissing,
    MinuteFull,
    RateLimited,
    ServerError,
    Stopped,
    TimedOut,
    TryLater,
    Unreachable,
)
from prefmh_web.endpoints.loop import held
from prefmh_web.endpoints.models import Endpoint, Usage

# Failures in a row after which the circuit opens.
FAILURES_TO_OPEN = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
# A server that asks for no wait at all, and refuses all the same, is not asked in a tight loop.
SHORTEST_PAUSE_S = 0.5
# How long a request waits for a full minute to pass; beside others that may take longer.
_PATIENCE_S = 180.0
# How soon the newest size of a request outweighs those before.
_WEIGHT = 0.1
# A second counts until so long after it began: 60 s, one for what was sent at its end, and one for what goes out up to
# a second after it was counted. So no 60 s have more than the limit, and 60 of 62 parts of it are reached.
COUNTS_FOR_S = 62
FIRST = 16
_OVERLOADED = (RateLimited, ServerError, TimedOut, Unreachable)
_AFTER_TROUBLE = 0.7
# A reply that takes so much of the time it may take has mostly waited at the server.
_SLOW = 0.5
# Between a place and its request.
_A_MOMENT_S = 0.5
# What a tally does not add up.
LARGEST = ("max_tokens_in", "max_tokens_out")
_tally: ContextVar[Tally | None] = ContextVar("tally", default=None)


@dataclass
class Tally:
    """What some requests came to.

    `seconds` are those of the answered requests; `tokens_in`, `tokens_out` and `cost` are those of all replies, also of
    such that could not be read. `unpriced` is how many had tokens and no known price, `unreadable` how many were no
    label and no rating. `max_tokens_in` and `max_tokens_out` are the largest numbers of one request.
    """

    requests: int = 0
    failed: int = 0
    unreadable: int = 0
    unpriced: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    max_tokens_in: int = 0
    max_tokens_out: int = 0

    def merge(self, other: Tally) -> None:
        """Count what another tally has counted."""
        for name, count in vars(other).items():
            kept = getattr(self, name)
            setattr(self, name, max(kept, count) if name in LARGEST else kept + count)


def tallied() -> AbstractContextManager[Tally]:
    """Yield a tally of all calls that are made in this block, whoever makes them: kernels call models, too."""
    return held(_tally, Tally())


def _counted(endpoint: Endpoint, calls: Sequence[Call], unreadable: int) -> Tally:
    """Return the tally of some calls, and add it to the one that is being kept, if one is."""
    answered = [call for call in calls if call.error is None]
    read, wrote = [call.tokens_in for call in calls], [call.tokens_out for call in calls]
    found = Tally(
        requests=len(calls),
        failed=len(calls) - len(answered),
        unreadable=unreadable,
        unpriced=0 if endpoint.is_priced else sum(call.tokens_in + call.tokens_out > 0 for call in calls),
        tokens_in=sum(read),
        tokens_out=sum(wrote),
        seconds=sum(call.seconds for call in answered),
        cost=(sum(read) * (endpoint.input_price or 0.0) + sum(wrote) * (endpoint.output_price or 0.0)) / 1e6,
        max_tokens_in=max(read, default=0),
        max_tokens_out=max(wrote, default=0),
    )
    if (kept := _tally.get()) is not None:
        kept.merge(found)
    return found


class Limit:
    """How many requests an endpoint serves best at a time, found by trying: additive increase, multiplicative decrease.

    It begins with a few and doubles while all goes well, up to half of what first brought trouble; from there it adds
    one a round, as congestion control does (Chiu and Jain, 1989). Trouble is a reply that says "too many requests" or
    that the server is overloaded, or one that comes after half of the time it may take: then requests only wait at the
    server.

    Args:
        clock: tells the seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._limit = float(FIRST)
        # Where trouble began; failures in a row are one trouble.
        self._trouble_at, self._has_answered = math.inf, True
        # Requests of this process that have a place.
        self.under_way = 0
        self._filled_at = self._calm_since = -math.inf

    def now(self, most: int) -> int:
        """Return how many requests may be under way, up to `most`."""
        return max(1, min(int(self._limit), most))

    def begin(self) -> None:
        """One more has a place."""
        self.under_way += 1
        if 2 * self.under_way >= self._limit:
            self._filled_at = self._clock()

    def note(self, calls: Iterable[Call], most: int, timeout_s: float) -> None:
        """Take in what some requests came to.

        Args:
            most: the endpoint's own number, beyond which there is nothing to find.
            timeout_s: how long a request may take.
        """
        now = self._clock()
        for call in calls:
            is_answered = call.error is None
            self._has_answered |= is_answered
            is_slow = is_answered and call.seconds > _SLOW * timeout_s
            if is_slow or (call.error is not None and issubclass(call.error, _OVERLOADED)):
                self._fall(now, call.seconds)
            elif is_answered:
                self._rise(most, now - call.seconds)

    def _rise(self, most: int, sent_at: float) -> None:
        # Where the limit was not nearly reached, an answer proves nothing.
        if self._filled_at >= sent_at - _A_MOMENT_S:
            # One more for each answer doubles it each round.
            more = 1.0 if 2 * self._limit < self._trouble_at else 1.0 / self._limit
            self._limit = min(self._limit + more, float(most))

    def _fall(self, now: float, seconds: float) -> None:
        # Once a round: what is under way was sent before.
        if now >= self._calm_since:
            if self._has_answered:
                self._trouble_at, self._has_answered = self._limit, False
            self._limit = max(1.0, self._limit * _AFTER_TROUBLE)
            self._calm_since = now + seconds


class Rates(NamedTuple):
    """The most requests and tokens a minute; infinite where there is no such limit."""

    requests: float = math.inf
    tokens: float = math.inf


class Minute:
    """How much was sent in the last minute, by the second, and when more may be: a sliding window.

    A bucket that fills up again would let through up to twice as much.

    Args:
        clock: tells the seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seconds: defaultdict[int, tuple[int, float]] = defaultdict(lambda: (0, 0.0))

    def count(self, requests: int, tokens: float, second: int | None = None) -> int:
        """Count something as sent now, or in a second; negative numbers take back. Return that second."""
        second = math.floor(self._clock()) if second is None else second
        sent, used = self._seconds[second]
        self._seconds[second] = sent + requests, used + tokens
        return second

    def wait(self, rates: Rates, requests: int, tokens: float) -> float:
        """Return in how many seconds so many more requests fit that have so many tokens in all; 0 for now."""
        now = self._clock()
        for second in [second for second in self._seconds if second + COUNTS_FOR_S <= now]:
            del self._seconds[second]
        wait = 0.0
        requests += sum(sent for sent, _ in self._seconds.values())
        tokens += sum(used for _, used in self._seconds.values())
        for second, (sent, used) in sorted(self._seconds.items()):
            if requests <= rates.requests and tokens <= rates.tokens:
                break
            wait = second + COUNTS_FOR_S - now
            requests, tokens = requests - sent, tokens - used
        return wait

    @property
    def is_empty(self) -> bool:
        """Whether nothing was sent lately."""
        return self.wait(Rates(0, 0), 0, 0) == 0


class Circuit:
    """Leaves an endpoint alone that failed lately.

        closed      everybody may ask
        open        nobody may, until a moment
        half open   that moment is past: one call may try, with one request

    A trial that is answered closes the circuit; one that fails opens it for twice as long as before. A server that asks
    for a pause (429, or Retry-After) gets it at once. Hundreds of requests may be under way when the circuit opens:
    they fail of the same cause, and their failures lengthen no pause. Nor does an answer to one of them close it.

    Args:
        open_for: the seconds for which it is open already.
        clock: tells the seconds.
    """

    def __init__(self, failures: int, open_for: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self.failures = clock, failures
        self._open_until = None if open_for is None else clock() + open_for
        self._is_tried = False
        self.reason = ""
        self.has_changed = False
        # When it last failed, as this process saw it.
        self.failed_at: datetime | None = None

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
        if not isinstance(error, Stopped | MinuteFull):
            self.reason, self.has_changed, self.failed_at = error.reason[:300], True, timezone.now()
        if isinstance(error, Stopped | MinuteFull | KeyMissing | AddressRefused):
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
        """Let the next caller try: a trial sent nothing after all, or somebody says that the server is fixed."""
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


class RequestLimits:
    """All that this process knows of one endpoint.

    Args:
        endpoint: its row, as it was read last.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.limit, self._minute = endpoint, Limit(), Minute()
        self._line: deque[asyncio.Future[None]] = deque()
        until = endpoint.open_until
        open_for = None if until is None else (until - timezone.now()).total_seconds()
        self.circuit = Circuit(endpoint.failures, open_for)
        self.circuit.reason = endpoint.last_error
        # Of a request, lately.
        self._tokens = 0.0
        self._unwritten = Tally()

    def room(self) -> int:
        """Return for how many more requests there is a place."""
        return self.limit.now(self.endpoint.concurrency) - self.limit.under_way

    @asynccontextmanager
    async def semaphore(self) -> AsyncIterator[None]:
        """Hold a place for one request at a time, which is waited for in a line."""
        if not self._line and self.room() > 0:
            self.limit.begin()
        else:
            await self._in_line()
        try:
            yield
        finally:
            self.limit.under_way -= 1
            self._call_next()

    async def _in_line(self) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._line.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                # It was called in this very moment.
                self.limit.under_way -= 1
            raise

    def _call_next(self) -> None:
        while self._line and self.room() > 0:
            turn = self._line.popleft()
            if not turn.done():
                self.limit.begin()
                turn.set_result(None)

    def _rates(self) -> Rates:
        limits = self.endpoint.requests_per_minute, self.endpoint.tokens_per_minute
        return Rates(*(math.inf if limit is None else limit for limit in limits))

    def has_minute(self, requests: int, *, unsent: int) -> bool:
        """Return whether so many more requests, as large as those before, may be sent in this minute.

        Args:
            unsent: how many are about to be sent.
        """
        rates, count = self._rates(), max(unsent, 0) + max(requests, 1)
        # What could never be sent at once is sent bit by bit.
        if unsent <= 0 and self._minute.is_empty:
            return True
        needed = count * min(math.ceil(self._tokens), rates.tokens)
        return count <= rates.requests and needed <= rates.tokens and not self._minute.wait(rates, count, needed)

    async def within_minute(self, tokens: int) -> Callable[[int], None]:
        """Return once a request of about so many tokens may be sent in this minute.

        Returns:
            What takes in how many tokens the server has counted.

        Raises:
            MinuteFull: it may not be sent soon.
        """
        rates = self._rates()
        # One that could never be sent is sent into an empty minute.
        counted = min(tokens, rates.tokens)
        self._tokens += _WEIGHT * (tokens - self._tokens) if self._tokens else tokens
        deadline = time.monotonic() + _PATIENCE_S
        while wait := self._minute.wait(rates, 1, counted):
            if time.monotonic() + wait > deadline:
                raise self._full(wait)
            await asyncio.sleep(wait)
        second = self._minute.count(1, counted)

        def settle(true: int) -> None:
            self._minute.count(0, true - counted, second)

        return settle

    def count_as_spent(self, requests: int) -> None:
        """Count requests as sent now: they may have been, by a process that has ended."""
        self._minute.count(requests, 0)

    def _full(self, wait: float) -> MinuteFull:
        limits = {"requests": self.endpoint.requests_per_minute, "tokens": self.endpoint.tokens_per_minute}
        named = " and ".join(f"{limit:,} {what}" for what, limit in limits.items() if limit is not None)
        return MinuteFull(f"{self.endpoint.name} may have {named} a minute, and has had them", retry_after=wait)

    def passed(self, calls: Sequence[Call], unparsable: int, error: EndpointError | None, *, was_usual: bool) -> None:
        """Take in what a call came to."""
        self._unwritten.merge(_counted(self.endpoint, calls, unparsable))
        self.limit.note(calls, self.endpoint.concurrency, self.endpoint.timeout_s)
        if error is None:
            self.circuit.answered(is_trial=not was_usual)
        else:
            self.circuit.failed(error, is_trial=not was_usual)
        self._call_next()

    def flush(self) -> None:
        """Write the counts of the calls, and the circuit if it has changed, from a thread that has the database."""
        circuit = self.circuit
        if not self._unwritten.requests and not circuit.has_changed:
            return
        counted, self._unwritten = self._unwritten, Tally()
        has_changed, circuit.has_changed = circuit.has_changed, False
        try:
            # Both or none: it is tried again.
            with transaction.atomic():
                self._write_usage(counted)
                if has_changed:
                    self._write_circuit()
        except BaseException:
            self._unwritten.merge(counted)
            circuit.has_changed |= has_changed
            raise

    def _write_usage(self, counted: Tally) -> None:
        if counted.requests:
            Usage.objects.get_or_create(endpoint=self.endpoint)
            Usage.objects.filter(endpoint=self.endpoint).update(**Usage.with_more(counted))

    def _write_circuit(self) -> None:
        circuit, failed_at = self.circuit, self.circuit.failed_at
        until = None if circuit.open_for is None else timezone.now() + timedelta(seconds=circuit.open_for)
        seen = {"last_error": circuit.reason, "last_error_at": failed_at} if failed_at else {}
        Endpoint.objects.filter(pk=self.endpoint.pk).update(failures=circuit.failures, open_until=until, **seen)


_request_limits: dict[tuple[int, str, str], RequestLimits] = {}


def request_limits_of(endpoint: Endpoint) -> RequestLimits:
    """Return the limits of an endpoint, which knows its row as it is now."""
    which = endpoint.pk, endpoint.base_url, endpoint.model
    if (request_limits := _request_limits.get(which)) is None:
        request_limits = _request_limits[which] = RequestLimits(endpoint)
    request_limits.endpoint = endpoint
    return request_limits


def flush() -> None:
    """Write what all limits have gathered."""
    for request_limits in list(_request_limits.values()):
        request_limits.flush()


def forget() -> None:
    """Forget all that was found."""
    _request_limits.clear()


os.register_at_fork(after_in_child=forget)
