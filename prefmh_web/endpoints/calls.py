"""Calling an endpoint: jobs side by side, within its limit, with its circuit and its usage kept.

Jobs run on threads and touch no database; all rows are read and written here, before and after, by the caller's
thread. So no transaction is open while a network works, and threads leave no connections behind.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Generic, TypeVar

from prefmh_web.endpoints import accounting, breaker, slots
from prefmh_web.endpoints.client import Call, Client, Target
from prefmh_web.endpoints.errors import AddressRefused, Busy, EndpointError, NeedsAttention, TryLater
from prefmh_web.endpoints.models import Endpoint

Result = TypeVar("Result")


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


def target_of(endpoint: Endpoint) -> Target:
    """Return where an endpoint's requests go."""
    return Target(
        endpoint.base_url, endpoint.model, endpoint.dialect, endpoint.api_key_variable, float(endpoint.timeout_s)
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
    try:
        as_usual = breaker.admit(endpoint)
    except TryLater as error:
        return Called((error,) * len(jobs))
    wanted = min(len(jobs), endpoint.concurrency) if as_usual else 1
    try:
        with Client(target_of(endpoint)) as client, slots.held(endpoint, wanted) as held:
            outcomes = _side_by_side(client, jobs, held)
    except Busy as error:
        if not as_usual:
            breaker.release(endpoint)
        return Called((error,) * len(jobs))
    except AddressRefused as error:
        breaker.failed(endpoint, error)
        return Called((error,) * len(jobs))
    called = Called(outcomes, tuple(client.calls), len(client.unparsable_replies))
    accounting.record(endpoint, called.requests, called.unparsable)
    _tell_breaker(endpoint, called)
    return called


def _side_by_side(
    client: Client, jobs: Sequence[Callable[[Client], Result]], held: slots.Held
) -> tuple[Result | EndpointError, ...]:
    stopped: list[TryLater] = []

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

    with ThreadPoolExecutor(len(held), thread_name_prefix="endpoint") as pool:
        running = [pool.submit(run, job) for job in jobs]
        while wait(running, timeout=slots.RENEW_EVERY_S).not_done:
            held.renew()
        return tuple(future.result() for future in running)


def _tell_breaker(endpoint: Endpoint, called: Called[Result]) -> None:
    passing = [outcome for outcome in called.outcomes if isinstance(outcome, TryLater)]
    # One failure for all that were asked side by side: they failed of one cause.
    if error := passing[0] if passing else called.failure:
        breaker.failed(endpoint, error)
    else:
        breaker.answered(endpoint)
