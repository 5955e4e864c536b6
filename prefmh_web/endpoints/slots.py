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
from prefmh_web.endpoints.models import Endpoint, Slot

LEASE_S = 30.0
RENEW_EVERY_S = LEASE_S / 3
# How long a caller waits for a slot before it gives its worker to somebody else.
PATIENCE_S = 2.0
_POLL_S = 0.05


class Held:
    """Slots that are held."""

    def __init__(self, slots: list[int], until: datetime) -> None:
        self._slots, self._until = slots, until

    def __len__(self) -> int:
        return len(self._slots)

    def renew(self) -> None:
        """Keep them for another while."""
        self._move(_lease_end())

    def give_back(self) -> None:
        """Free them."""
        self._move(timezone.now())

    def _move(self, until: datetime) -> None:
        # Only as they were taken: a slot that ran out may be somebody else's by now.
        Slot.objects.filter(pk__in=self._slots, until=self._until).update(until=until)
        self._until = until


@contextmanager
def held(endpoint: Endpoint, wanted: int, patience_s: float = PATIENCE_S) -> Iterator[Held]:
    """Hold between one and `wanted` slots of an endpoint; the holder renews them every `RENEW_EVERY_S`.

    Args:
        patience_s: how long to wait while there is none.

    Raises:
        Busy: there was none.
    """
    deadline = time.monotonic() + patience_s
    until = _lease_end()
    while not (taken := _take(endpoint, wanted, until)):
        if time.monotonic() >= deadline:
            raise Busy(f"{endpoint.name} has its {endpoint.concurrency} requests under way", retry_after=1.0)
        # Uneven waits, or those who wait would all look at the same moments.
        time.sleep(_POLL_S * (0.5 + random.random()))  # noqa: S311 - nothing depends on it
        until = _lease_end()
    slots = Held(taken, until)
    try:
        yield slots
    finally:
        slots.give_back()


def _take(endpoint: Endpoint, wanted: int, until: datetime) -> list[int]:
    now = timezone.now()
    taken: list[int] = []
    for slot in _slots_of(endpoint, now):
        if len(taken) == wanted:
            break
        # A guarded update: of two who saw the slot free, one gets it.
        if slot.until <= now and Slot.objects.filter(pk=slot.pk, until=slot.until).update(until=until):
            taken.append(slot.pk)
    return taken


def _slots_of(endpoint: Endpoint, now: datetime) -> list[Slot]:
    """Return the endpoint's slots, made on first use and when the limit was raised."""
    rows = Slot.objects.filter(endpoint=endpoint, number__lt=endpoint.concurrency)
    found = list(rows)
    if len(found) == endpoint.concurrency:
        return found
    there = {slot.number for slot in found}
    missing = [number for number in range(endpoint.concurrency) if number not in there]
    Slot.objects.bulk_create(
        [Slot(endpoint=endpoint, number=number, until=now) for number in missing], ignore_conflicts=True
    )
    return list(rows.all())


def _lease_end() -> datetime:
    return timezone.now() + timedelta(seconds=LEASE_S)
