"""Counting what calls came to: for each endpoint, and whatever somebody counts beside that.

tally       of some calls, added to what is being tallied
write       adds to what an endpoint has taken
tallied     the calls of a block of code together: what a campaign's turn or its proposals took
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass

from django.db.models import F

from prefmh_web.endpoints.client import Call
from prefmh_web.endpoints.loop import held
from prefmh_web.endpoints.models import Endpoint, Usage

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


def tallied() -> AbstractContextManager[Tally]:
    """Yield a tally of all calls that are made in this block, whoever makes them: kernels call models, too."""
    return held(_tally, Tally())


def tally(endpoint: Endpoint, calls: Sequence[Call], unreadable: int) -> Tally:
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
        most_tokens_in=max(read, default=0),
        most_tokens_out=max(wrote, default=0),
    )
    if (kept := _tally.get()) is not None:
        kept.merge(found)
    return found


def write(endpoint: Endpoint, counted: Tally) -> None:
    """Add a tally to what the endpoint has taken."""
    if counted.requests:
        Usage.objects.get_or_create(endpoint=endpoint)
        added = {name: F(name) + getattr(counted, name) for name in Usage.COUNTS}
        Usage.objects.filter(endpoint=endpoint).update(**added)
