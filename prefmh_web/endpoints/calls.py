"""Calling an endpoint: jobs side by side, within its limit, with its circuit and its usage kept.

Jobs run on threads and touch no database; all rows are read and written here, before and after, by the caller's
thread. So no transaction is open while a network works, and threads leave no connections behind.
"""

import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Generic, TypeVar

from prefmh_web.endpoints import slots
from prefmh_web.endpoints.client import Client, Target
from prefmh_web.endpoints.errors import AddressRefused, Busy, EndpointError, NeedsAttention, TryLater
from prefmh_web.endpoints.gates import ByTheRow, Gate, Gates, Places
from prefmh_web.endpoints.lending import lent
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.outcomes import Call
from prefmh_web.endpoints.permits import Permits

Result = TypeVar("Result")

# How soon a call that has fewer slots than jobs looks for more.
_LOOK_EVERY_S = 0.25
# The most that an endpoint may have at a time. Who holds a place waits for a thread beyond that.
_MOST_THREADS = 1024
_is_ahead: ContextVar[bool] = ContextVar("is_ahead", default=False)
_waits: ContextVar[bool] = ContextVar("waits", default=True)
_gates: Gates | None = None


@dataclass(frozen=True)
class Called(Generic[Result]):
    """What some jobs came to: for each, in order, its result or the error that it ended with; all requests;
    and how many replies were neither label nor rating."""

    outcomes: tuple[Result | EndpointError, ...]
    requests: tuple[Call, ...] = ()
    unparsable: int = 0

    @property
    def results(self) -> tuple[Result, ...]:
        """What the jobs that went well came to, in order."""
        return tuple(outcome for outcome in self.outcomes if not isinstance(outcome, EndpointError))

    @property
    def failure(self) -> EndpointError | None:
        """The error that matters most: one that needs attention before one that passes; None if all went well."""
        return self.errors[0] if self.errors else None

    @property
    def errors(self) -> tuple[EndpointError, ...]:
        """All errors that jobs ended with, those that need attention first."""
        errors = [outcome for outcome in self.outcomes if isinstance(outcome, EndpointError)]
        return tuple(sorted(errors, key=lambda error: not isinstance(error, NeedsAttention)))

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens read and written."""
        return sum(call.tokens_in for call in self.requests), sum(call.tokens_out for call in self.requests)


@contextmanager
def ahead_of_time() -> Iterator[None]:
    """Say that nobody waits for what is called in this block: it leaves room at endpoints for what somebody waits for.

    The calls are made by kernels and models, which cannot know that.
    """
    before = _is_ahead.set(True)
    try:
        yield
    finally:
        _is_ahead.reset(before)


@contextmanager
def unless_full() -> Iterator[None]:
    """Say that what is called in this block is asked again another time, if the endpoint's minute has no room for it.

    Otherwise a call waits for the minute to pass: what is of use only as a whole might never come to its end.
    """
    before = _waits.set(False)
    try:
        yield
    finally:
        _waits.reset(before)


def target_of(endpoint: Endpoint) -> Target:
    """Return where an endpoint's requests go."""
    return Target(
        endpoint.base_url,
        endpoint.model,
        endpoint.dialect,
        endpoint.api_key_variable,
        float(endpoint.timeout_s),
        endpoint.thinking_tokens,
    )


def call(endpoint: Endpoint, jobs: Sequence[Callable[[Client], Result]]) -> Called[Result]:
    """Run jobs against an endpoint, as many at a time as it may have.

    Nothing is raised for what a server does: each job's error stands in its place. After an error that passes, jobs
    that have not begun are not begun, and get the same error.

    Args:
        jobs: each makes requests with the client it is given, and may raise `EndpointError`.
    """
    if not jobs:
        return Called(())
    gate = _gate_of(endpoint)
    try:
        as_usual = gate.admit()
    except TryLater as error:
        return Called((error,) * len(jobs))
    wanted = min(len(jobs), endpoint.concurrency) if as_usual else 1
    is_ahead = _is_ahead.get()
    try:
        # Before a place is held: who waits for a minute to pass keeps none from others.
        permits = _permits(gate, is_ahead=is_ahead)
        with Client(target_of(endpoint), permits) as client, gate.places(wanted, is_ahead=is_ahead) as places:
            outcomes = _side_by_side(client, jobs, places, wanted, permits)
    except Busy as error:
        gate.turned_away(None, was_usual=as_usual)
        return Called((error,) * len(jobs))
    except AddressRefused as error:
        gate.turned_away(error, was_usual=as_usual)
        return Called((error,) * len(jobs))
    called = Called(outcomes, tuple(client.calls), len(client.unparsable_replies))
    if permits is not None:
        permits.settle()
    if not called.requests and isinstance(called.failure, Busy):
        gate.turned_away(None, was_usual=as_usual)
        return called
    gate.passed(called.requests, called.unparsable, _what_failed(called), was_usual=as_usual)
    return called


def many_at_once() -> Gates:
    """Say that this process makes hundreds of calls at a time; return the gates that it keeps for them."""
    global _gates
    _gates = Gates()
    return _gates


def _permits(gate: Gate, *, is_ahead: bool) -> Permits | None:
    """Return what gives a call its permits; None where an endpoint has no limits a minute.

    Raises:
        MinuteFull: there is none now.
    """
    minute = gate.minute
    if minute is None:
        return None
    waits = _waits.get() and not is_ahead
    if not waits:
        minute.check(is_ahead=is_ahead)
    return Permits(minute, is_ahead=is_ahead, waits=waits)


def _gate_of(endpoint: Endpoint) -> Gate:
    return ByTheRow(endpoint) if _gates is None else _gates.of(endpoint)


@cache
def _threads() -> ThreadPoolExecutor:
    # Made as they are needed, and used again.
    return ThreadPoolExecutor(_MOST_THREADS, thread_name_prefix="endpoint")


# A child has none of its parent's threads.
os.register_at_fork(after_in_child=_threads.cache_clear)


def _side_by_side(
    client: Client, jobs: Sequence[Callable[[Client], Result]], held: Places, most: int, permits: Permits | None
) -> tuple[Result | EndpointError, ...]:
    """Run jobs on a thread for each slot, on more of them as slots of others come free, up to `most`."""
    stopped: list[TryLater] = []
    outcomes: dict[int, Result | EndpointError] = {}
    waiting = deque(enumerate(jobs))

    def run(job: Callable[[Client], Result]) -> Result | EndpointError:
        if stopped:
            return stopped[0]
        try:
            return job(client)
        except TryLater as error:
            stopped.append(error)
            return error
        except EndpointError as error:
            return error

    def work() -> None:
        while waiting:
            try:
                place, job = waiting.popleft()
            except IndexError:
                # Another thread was faster.
                return
            outcomes[place] = run(job)

    pool = _threads()
    working = {pool.submit(work) for _ in range(len(held))}
    renewed_at = time.monotonic()
    try:
        while working:
            bell = set() if permits is None else {permits.bell}
            soon = math.inf if permits is None else permits.due_in()
            look_in = min(_LOOK_EVERY_S if waiting else slots.RENEW_EVERY_S, soon)
            with lent():
                done, _ = wait(working | bell, look_in, "FIRST_COMPLETED")
            if permits is not None:
                permits.answer()
            done -= bell
            working -= done
            for each in done:
                each.result()
            held.shrink(len(done))
            if time.monotonic() - renewed_at >= slots.RENEW_EVERY_S:
                held.renew()
                renewed_at = time.monotonic()
            working |= {pool.submit(work) for _ in range(held.grow(min(len(waiting), most - len(held))))}
    finally:
        # None is begun after a failure of ours, and none goes on.
        waiting.clear()
        if permits is not None:
            permits.close()
        wait(working)
    return tuple(outcomes[place] for place in range(len(jobs)))


def _what_failed(called: Called[Result]) -> EndpointError | None:
    """Return what is held against the server: one failure for all that were asked side by side, of one cause."""
    # That it was asked for no more is not its fault.
    errors = [outcome for outcome in called.errors if not isinstance(outcome, Busy)]
    passing = [error for error in errors if isinstance(error, TryLater)]
    return passing[0] if passing else next(iter(errors), None)
