"""The limit on requests at a time, held over all processes by rows of the database.

A slot is a lease that its holder renews while it works, so a process that dies blocks its slots for `LEASE_S` and no
longer. The limit is kept as long as clocks agree to within that time, and no holder is stopped for longer than it.
"""

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.utils import timezone

from prefmh_web.endpoints.errors import Busy
from prefmh_web.endpoints.limits import limit_of
from prefmh_web.endpoints.models import Endpoint, Slot

LEASE_S = 30.0
RENEW_EVERY_S = LEASE_S / 3
# How long a caller waits for a slot before it gives its worker to somebody else.
PATIENCE_S = 2.0
_POLL_S = 0.05
# Of so many slots, one is spared for those who wait.
_SPARED_OF = 4
# Further ones that are looked at, since others may take the first.
_SEEN_BY_OTHERS = 4


class Held:
    """Slots that are held: as many as there is work for, so that nobody waits for one that is idle.

    Args:
        is_ahead: whether nobody waits for what they are wanted for. Then one slot in four is left to others.
    """

    def __init__(self, endpoint: Endpoint, *, is_ahead: bool = False) -> None:
        self._endpoint, self._is_ahead = endpoint, is_ahead
        self._slots: list[int] = []
        self._until = _lease_end()

    def __len__(self) -> int:
        return len(self._slots)

    def grow(self, wanted: int) -> int:
        """Take up to so many more that are free; return how many."""
        if wanted <= 0:
            return 0
        if not self._slots:
            self._until = _lease_end()
        taken = _take(self._endpoint, wanted, self._until, spared(self._endpoint) if self._is_ahead else 0)
        self._slots += taken
        return len(taken)

    def shrink(self, count: int) -> None:
        """Free so many."""
        if not count:
            return
        kept = len(self._slots) - count
        self._move(self._slots[kept:], timezone.now())
        del self._slots[kept:]

    def renew(self) -> None:
        """Keep them for another while."""
        until = _lease_end()
        self._move(self._slots, until)
        self._until = until

    def _move(self, slots: list[int], until: datetime) -> None:
        # Only as they were taken: a slot that ran out may be somebody else's by now.
        Slot.objects.filter(pk__in=slots, until=self._until).update(until=until)


def spared(endpoint: Endpoint) -> int:
    """Return how many requests are left to those who wait."""
    return limit_of(endpoint).now(endpoint.concurrency) // _SPARED_OF


class _Counted(Held):
    """Slots of one call, each of them a request that is under way."""

    def __init__(self, endpoint: Endpoint, *, is_ahead: bool) -> None:
        super().__init__(endpoint, is_ahead=is_ahead)
        self._limit = limit_of(endpoint)

    def grow(self, wanted: int) -> int:
        """Take up to so many more that are free, within what serves the server best; return how many."""
        room = self._limit.now(self._endpoint.concurrency) - self._limit.under_way
        taken = super().grow(min(wanted, room - (spared(self._endpoint) if self._is_ahead else 0)))
        self._limit.begin(taken)
        return taken

    def shrink(self, count: int) -> None:
        """Free so many."""
        super().shrink(count)
        self._limit.end(count)


@contextmanager
def held(endpoint: Endpoint, wanted: int, patience_s: float = PATIENCE_S, is_ahead: bool = False) -> Iterator[Held]:
    """Hold between one and `wanted` slots of an endpoint; the holder renews them every `RENEW_EVERY_S`.

    Args:
        patience_s: how long to wait while there is none.
        is_ahead: whether nobody waits for what they are wanted for. Then one slot in four is left to others.

    Raises:
        Busy: there was none.
    """
    deadline = time.monotonic() + patience_s
    slots = _Counted(endpoint, is_ahead=is_ahead)
    while not slots.grow(wanted):
        if time.monotonic() >= deadline:
            raise Busy(f"{endpoint.name} has its {endpoint.concurrency} requests under way", retry_after=1.0)
        # Uneven waits, or those who wait would all look at the same moments.
        time.sleep(_POLL_S * (0.5 + random.random()))  # noqa: S311 - nothing depends on it
    try:
        yield slots
    finally:
        slots.shrink(len(slots))


def _take(endpoint: Endpoint, wanted: int, until: datetime, spared: int) -> list[int]:
    taken: list[int] = []
    free = _free(endpoint, wanted + spared + _SEEN_BY_OTHERS)
    for pk, until_then in free[: max(len(free) - spared, 0)]:
        if len(taken) == wanted:
            break
        # A guarded update: of two who saw the slot free, one gets it.
        if Slot.objects.filter(pk=pk, until=until_then).update(until=until):
            taken.append(pk)
    return taken


def _free(endpoint: Endpoint, most: int) -> list[tuple[int, datetime]]:
    """Return keys and ends of up to so many free slots; slots are made on first use and when the limit was raised."""
    now = timezone.now()
    rows = Slot.objects.filter(endpoint=endpoint, number__lt=endpoint.concurrency)
    free = rows.filter(until__lte=now).order_by("number").values_list("pk", "until")
    found = list(free[:most])
    if len(found) == most:
        return found
    there = set(rows.values_list("number", flat=True))
    if len(there) == endpoint.concurrency:
        return found
    missing = [number for number in range(endpoint.concurrency) if number not in there]
    Slot.objects.bulk_create(
        [Slot(endpoint=endpoint, number=number, until=now) for number in missing], ignore_conflicts=True
    )
    return list(free.all()[:most])


def _lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=LEASE_S)
