"""Counting what calls came to: one row an hour for each endpoint, and whatever somebody counts beside that.

record      called for every call: both of what follows
tally       adds to what is being tallied
write       adds to the hour
tallied     the calls of a block of code together: what a campaign's turn or its proposals took
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from django.db.models import F
from django.utils import timezone

from prefmh_web.endpoints.models import Endpoint, Usage
from prefmh_web.endpoints.outcomes import Call

_tally: ContextVar["Tally | None"] = ContextVar("tally", default=None)


@dataclass
class Tally:
    """What some requests came to.

    `seconds` are those of the answered requests; `tokens_in`, `tokens_out` and `cost` are those of all replies, also of
    such that could not be read. `unpriced` is how many had tokens and no known price, `unreadable` how many were no
    label and no rating. `most_tokens_in` and `most_tokens_out` are the largest numbers of one request.
    """

    requests: int = 0
    failed: int = 0
    unreadable: int = 0
    unpriced: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    cost: float = 0.0
    most_tokens_in: int = 0
    most_tokens_out: int = 0

    def merge(self, other: "Tally") -> None:
        """Count what another tally has counted."""
        for name, count in vars(other).items():
            kept = getattr(self, name)
            setattr(self, name, max(kept, count) if name.startswith("most_") else kept + count)

    def add(self, endpoint: Endpoint, calls: Sequence[Call], unreadable: int) -> None:
        """Count some calls at the endpoint's prices."""
        answered = [call for call in calls if call.error is None]
        self.requests += len(calls)
        self.failed += len(calls) - len(answered)
        self.unreadable += unreadable
        self.seconds += sum(call.seconds for call in answered)
        for call in calls:
            self.tokens_in += call.tokens_in
            self.tokens_out += call.tokens_out
            self.cost += cost(endpoint, call)
            self.unpriced += not endpoint.is_priced and call.tokens_in + call.tokens_out > 0
            self.most_tokens_in = max(self.most_tokens_in, call.tokens_in)
            self.most_tokens_out = max(self.most_tokens_out, call.tokens_out)


@contextmanager
def tallied() -> Iterator[Tally]:
    """Yield a tally of all calls that are made in this block, whoever makes them: kernels call models, too."""
    kept = Tally()
    before = _tally.set(kept)
    try:
        yield kept
    finally:
        _tally.reset(before)


def record(endpoint: Endpoint, calls: Sequence[Call], unparsable: int = 0) -> None:
    """Add some calls to the endpoint's usage of this hour, and to the tally that is being kept."""
    tally(endpoint, calls, unparsable)
    write(endpoint, calls, unparsable)


def tally(endpoint: Endpoint, calls: Sequence[Call], unparsable: int = 0) -> None:
    """Add some calls to the tally that is being kept, if one is."""
    if calls and (kept := _tally.get()) is not None:
        kept.add(endpoint, calls, unparsable)


def write(endpoint: Endpoint, calls: Sequence[Call], unparsable: int = 0) -> None:
    """Add some calls to the endpoint's usage of this hour."""
    if not calls:
        return
    counts: Counter[str] = Counter(_column(call.error) for call in calls)
    answered = [call for call in calls if call.error is None]
    added = {
        **counts,
        "requests": len(calls),
        "unparsable": unparsable,
        "tokens_in": sum(call.tokens_in for call in calls),
        "tokens_out": sum(call.tokens_out for call in calls),
        "seconds": sum(call.seconds for call in answered),
        "cost": sum(cost(endpoint, call) for call in calls),
    }
    hour = timezone.now().replace(minute=0, second=0, microsecond=0)
    Usage.objects.get_or_create(endpoint=endpoint, hour=hour)
    Usage.objects.filter(endpoint=endpoint, hour=hour).update(**{name: F(name) + n for name, n in added.items()})


def cost(endpoint: Endpoint, call: Call) -> float:
    """Return what a call cost at the endpoint's prices."""
    return (call.tokens_in * (endpoint.input_price or 0.0) + call.tokens_out * (endpoint.output_price or 0.0)) / 1e6


def _column(error: str | None) -> str:
    if error is None:
        return "answered"
    # What was refused before or after it was sent is one count: somebody has to look at it.
    return error if error in Usage.COUNTS else "refused"
