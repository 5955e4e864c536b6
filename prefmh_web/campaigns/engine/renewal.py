"""Keeping a claim in the database while one works: it ends by itself soon after its holder's process does.

As with `endpoints.slots`, clocks must agree to within `CLAIM_S`, and no holder may be stopped for longer than it.
"""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Protocol

from django.db import Error, connection
from django.utils import timezone

logger = logging.getLogger(__name__)

CLAIM_S = 60.0
RENEW_EVERY_S = CLAIM_S / 3


class Renewable(Protocol):
    """What somebody holds while they work, and has to be renewed."""

    def renew(self) -> None:
        """Hold it for another while."""
        ...


def claim_end() -> datetime:
    """Return until when a claim holds that is taken or renewed now."""
    return timezone.now() + timedelta(seconds=CLAIM_S)


@contextmanager
def renewed(claim: Renewable) -> Iterator[None]:
    """Renew a claim from another thread, since work here holds its own."""
    over = threading.Event()

    def renew() -> None:
        while not over.wait(RENEW_EVERY_S):
            try:
                claim.renew()
            except Error:
                logger.warning("could not renew the claim on %s; trying again", claim, exc_info=True)
            finally:
                # Of this thread's own; it is seldom needed.
                connection.close()

    thread = threading.Thread(target=renew, name="claim", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
