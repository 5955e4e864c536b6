"""The circuit breaker: an endpoint that failed lately is left alone for a while. In the database, for all processes.

    closed      `open_until` is null: everybody may ask
    open        `open_until` lies ahead: nobody may
    half open   `open_until` is past: one caller may try; by claiming the trial it moves `open_until` ahead again,
                so that everybody else still finds it open, and a claimant that dies delays the next trial only

A trial that is answered closes the circuit; one that fails opens it for twice as long as before. A server that asks
for a pause (429, or Retry-After) gets it at once. Hundreds of requests may be under way when the circuit opens: they
fail of the same cause, and their failures lengthen no pause. Nor does an answer to one of them close the circuit.
"""

from datetime import timedelta

from django.db.models import F
from django.utils import timezone

from prefmh_web.endpoints.errors import (
    AddressRefused,
    CircuitOpen,
    EndpointError,
    KeyMissing,
    RateLimited,
    Stopped,
    TryLater,
)
from prefmh_web.endpoints.models import Endpoint

# Failures in a row after which the circuit opens.
FAILURES_TO_OPEN = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 300.0
# A server that asks for no wait at all, and refuses all the same, is not asked in a tight loop.
SHORTEST_PAUSE_S = 0.5


def admit(endpoint: Endpoint) -> bool:
    """Return whether requests may go out as usual; False allows a single one, the trial of a half-open circuit.

    Raises:
        CircuitOpen: none may; `retry_after` says for how long.
    """
    # Asked of the database: the caller's endpoint may be old.
    open_until = Endpoint.objects.values_list("open_until", flat=True).get(pk=endpoint.pk)
    now = timezone.now()
    if open_until is None:
        return True
    if open_until <= now:
        claimed_until = now + timedelta(seconds=endpoint.timeout_s + FIRST_PAUSE_S)
        # A guarded update: of all who find the time past, the first gets the trial.
        if Endpoint.objects.filter(pk=endpoint.pk, open_until=open_until).update(open_until=claimed_until):
            return False
        open_until = claimed_until
    wait = max((open_until - now).total_seconds(), 0.1)
    raise CircuitOpen(f"the endpoint {endpoint.name} rests for {wait:.0f} s, because: {_reason(endpoint)}", wait)


def answered(endpoint: Endpoint, *, is_trial: bool = False) -> None:
    """A request was answered: forget the failures before it; a trial closes the circuit.

    Args:
        is_trial: as `failed` takes it. Other answers to what was sent before the circuit opened do not close it.
    """
    # Of failures that came to nothing it is enough to know none; most answers change nothing here.
    rows = Endpoint.objects.filter(pk=endpoint.pk).exclude(failures=0, open_until=None)
    (rows if is_trial else rows.filter(open_until=None)).update(failures=0, open_until=None)


def failed(endpoint: Endpoint, error: EndpointError, *, is_trial: bool = False) -> None:
    """A request failed: keep the reason, and open the circuit if it is one failure too many.

    Args:
        is_trial: whether it was the trial of a half-open circuit: what `admit` said before it was sent.
    """
    now = timezone.now()
    seen = Endpoint.objects.filter(pk=endpoint.pk)
    if not isinstance(error, Stopped):
        seen.update(last_error=error.reason[:300], last_error_at=now)
    if isinstance(error, Stopped | KeyMissing | AddressRefused):
        # We ended it, or sent nothing; that says nothing of the server.
        if is_trial:
            release(endpoint)
        return
    if not isinstance(error, TryLater):
        # The server did answer, and so the trial, if it was one, is over.
        answered(endpoint, is_trial=is_trial)
        return
    # A guarded update: what was sent before the circuit opened is no further failure.
    if not (seen if is_trial else seen.filter(open_until=None)).update(failures=F("failures") + 1):
        _wait_as_asked(endpoint, error)
        return
    failures = seen.values_list("failures", flat=True).get()
    if pause := _pause(error, failures):
        seen.update(open_until=now + timedelta(seconds=pause))


def release(endpoint: Endpoint) -> None:
    """A claimed trial sent nothing after all: let the next caller have it."""
    Endpoint.objects.filter(pk=endpoint.pk, open_until__isnull=False).update(open_until=timezone.now())


def _wait_as_asked(endpoint: Endpoint, error: TryLater) -> None:
    """Give a server that asks for a pause no shorter one, though its circuit is open for another reason."""
    if error.asked_to_wait:
        until = timezone.now() + timedelta(seconds=_pause(error, 0))
        Endpoint.objects.filter(pk=endpoint.pk, open_until__lt=until).update(open_until=until)


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


def _reason(endpoint: Endpoint) -> str:
    return Endpoint.objects.values_list("last_error", flat=True).get(pk=endpoint.pk) or "it is being tried"
