"""Counting what calls came to, one row an hour."""

from collections import Counter
from collections.abc import Sequence

from django.db.models import F
from django.utils import timezone

from prefmh_web.endpoints.client import Call
from prefmh_web.endpoints.models import Endpoint, Usage


def record(endpoint: Endpoint, calls: Sequence[Call], unparsable: int = 0) -> None:
    """Add some calls to the endpoint's usage of this hour."""
    if not calls:
        return
    counts: Counter[str] = Counter(_column(call.error) for call in calls)
    answered = [call for call in calls if call.error is None]
    added = {
        **counts,
        "requests": len(calls),
        "unparsable": unparsable,
        "tokens_in": sum(call.tokens_in for call in answered),
        "tokens_out": sum(call.tokens_out for call in answered),
        "seconds": sum(call.seconds for call in answered),
        "cost": sum(cost(endpoint, call) for call in answered),
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
