"""Calling an endpoint: jobs side by side, within its limits, with its circuit and its usage kept (`limits.py`).

    call        from a coroutine
    asked       questions, from a thread that has the database
    called      from a thread that has the database; what was counted is written afterwards

Jobs are coroutines and touch no database, so no transaction is open while a network works.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from prefmh_web.endpoints import limits, loop
from prefmh_web.endpoints.client import Client, Reply
from prefmh_web.endpoints.errors import AddressRefused, EndpointError, MinuteFull, NeedsAttention, TryLater
from prefmh_web.endpoints.limits import RequestLimits
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.replies import Admitted
from prefmh_web.endpoints.servers import ChatRequest

Result = TypeVar("Result")
Job = Callable[[Client], Awaitable[Result]]


@dataclass(frozen=True)
class CallResults(Generic[Result]):
    """What some jobs came to: for each, in order, its result or the error that it ended with."""

    outcomes: tuple[Result | EndpointError, ...]

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


def called(asking: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine that calls endpoints, and write what was counted."""
    try:
        return loop.run(asking)
    finally:
        limits.flush()


def asked(endpoint: Endpoint, questions: Sequence[ChatRequest]) -> CallResults[Reply]:
    """Ask an endpoint some questions, from a thread that has the database."""

    def job(question: ChatRequest) -> Job[Reply]:
        return lambda client: client.ask(question)

    return called(call(endpoint, [job(question) for question in questions]))


async def call(
    endpoint: Endpoint, jobs: Sequence[Job[Result]], admitted: Admitted | None = None
) -> CallResults[Result]:
    """Run jobs against an endpoint, as many at a time as it may have.

    Nothing is raised for what a server does: each job's error stands in its place. After an error that passes, jobs
    that have not begun are not begun, and get the same error.

    Args:
        jobs: each makes requests with the client it is given, and may raise `EndpointError`.
        admitted: whose replies count; anybody's if None.
    """
    if not jobs:
        return CallResults(())
    request_limits = limits.request_limits_of(endpoint)
    try:
        as_usual = request_limits.circuit.admit(f"the endpoint {endpoint.name}")
    except TryLater as error:
        return CallResults((error,) * len(jobs))
    minute_limit = request_limits.within_minute if endpoint.is_limited_per_minute else None
    try:
        client = Client(endpoint, minute_limit, admitted)
        outcomes = await _side_by_side(client, request_limits, jobs, one_by_one=not as_usual)
    except AddressRefused as error:
        request_limits.passed((), 0, error, was_usual=as_usual)
        return CallResults((error,) * len(jobs))
    except BaseException:
        # A fault of ours, or it was cancelled: a trial is for the next caller.
        if not as_usual:
            request_limits.circuit.release()
        raise
    found = CallResults(outcomes)
    failure = _what_failed(found.errors, has_asked=bool(client.calls))
    request_limits.passed(client.calls, client.unparsable, failure, was_usual=as_usual)
    return found


async def _side_by_side(
    client: Client, request_limits: RequestLimits, jobs: Sequence[Job[Result]], *, one_by_one: bool
) -> tuple[Result | EndpointError, ...]:
    stopped: list[TryLater] = []

    async def run(job: Job[Result]) -> Result | EndpointError:
        try:
            async with request_limits.semaphore():
                return stopped[0] if stopped else await job(client)
        except TryLater as error:
            stopped.append(error)
            return error
        except EndpointError as error:
            return error

    if one_by_one:
        return tuple([await run(job) for job in jobs])
    return tuple(await asyncio.gather(*map(run, jobs)))


def _what_failed(errors: Sequence[EndpointError], *, has_asked: bool) -> EndpointError | None:
    """Return what is held against the server: one failure for all that were asked side by side, of one cause."""
    # That it was asked for no more is not its fault.
    held = [error for error in errors if not (has_asked and isinstance(error, MinuteFull))]
    passing = [error for error in held if isinstance(error, TryLater)]
    return next(iter(passing or held), None)
