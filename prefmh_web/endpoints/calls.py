"""Calling an endpoint: jobs side by side, within its limits, with its circuit and its usage kept (`gates.py`).

    call        from a coroutine
    called      from a thread that has the database; what gates have counted is written afterwards

Jobs are coroutines and touch no database, so no transaction is open while a network works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prefmh_web.endpoints import gates, loop
from prefmh_web.endpoints.client import Client, Target
from prefmh_web.endpoints.errors import AddressRefused, Busy, EndpointError, NeedsAttention, TryLater
from prefmh_web.endpoints.gates import Gate
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.outcomes import Call

Result = TypeVar("Result")
Job = Callable[[Client], Awaitable[Result]]

_is_ahead: ContextVar[bool] = ContextVar("is_ahead", default=False)


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


def called(asking: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that calls endpoints, and write what was counted."""
    try:
        return loop.run(asking)
    finally:
        gates.flush()


async def call(endpoint: Endpoint, jobs: Sequence[Job[Result]]) -> Called[Result]:
    """Run jobs against an endpoint, as many at a time as it may have.

    Nothing is raised for what a server does: each job's error stands in its place. After an error that passes, jobs
    that have not begun are not begun, and get the same error.

    Args:
        jobs: each makes requests with the client it is given, and may raise `EndpointError`.
    """
    if not jobs:
        return Called(())
    gate = gates.gate_of(endpoint)
    try:
        as_usual = gate.circuit.admit(f"the endpoint {endpoint.name}")
    except TryLater as error:
        return Called((error,) * len(jobs))
    is_ahead = _is_ahead.get()
    try:
        client = Client(target_of(endpoint), _Permits(gate, is_ahead) if endpoint.is_limited_a_minute else None)
    except AddressRefused as error:
        gate.turned_away(error, was_usual=as_usual)
        return Called((error,) * len(jobs))
    try:
        outcomes = await _side_by_side(client, gate, jobs, is_ahead=is_ahead, one_by_one=not as_usual)
    except BaseException:
        # A fault of ours, or it was cancelled: a trial is for the next caller.
        gate.turned_away(None, was_usual=as_usual)
        raise
    found = Called(outcomes, tuple(client.calls), len(client.unparsable_replies))
    if not found.requests and isinstance(found.failure, Busy):
        gate.turned_away(None, was_usual=as_usual)
    else:
        gate.passed(found.requests, found.unparsable, _what_failed(found), was_usual=as_usual)
    return found


@dataclass(frozen=True)
class _Permits:
    gate: Gate
    is_ahead: bool

    async def permit(self, tokens: int) -> Callable[[int], None]:
        return await self.gate.permit(tokens, is_ahead=self.is_ahead)


async def _side_by_side(
    client: Client, gate: Gate, jobs: Sequence[Job[Result]], *, is_ahead: bool, one_by_one: bool
) -> tuple[Result | EndpointError, ...]:
    stopped: list[TryLater] = []

    async def run(job: Job[Result]) -> Result | EndpointError:
        try:
            async with gate.place(is_ahead=is_ahead):
                return stopped[0] if stopped else await job(client)
        except TryLater as error:
            stopped.append(error)
            return error
        except EndpointError as error:
            return error

    if one_by_one:
        return tuple([await run(job) for job in jobs])
    return tuple(await asyncio.gather(*map(run, jobs)))


def _what_failed(found: Called[Result]) -> EndpointError | None:
    """Return what is held against the server: one failure for all that were asked side by side, of one cause."""
    # That it was asked for no more is not its fault.
    errors = [outcome for outcome in found.errors if not isinstance(outcome, Busy)]
    passing = [error for error in errors if isinstance(error, TryLater)]
    return passing[0] if passing else next(iter(errors), None)
