"""Answers that have come are stored, also when the database is away for a moment: a model was asked and paid for them.

A vote has its slot and its key, so that one which was stored after all, or was asked for again meanwhile, is stored
once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from django.db import InterfaceError, OperationalError, close_old_connections

from prefmh_web.endpoints.lending import lent

logger = logging.getLogger(__name__)

# A restart of PostgreSQL takes some seconds, and a busy machine may keep all connections of a pool from us for as long.
# Beyond a minute others may take the turn.
_PAUSES_S = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)


def stored_in_the_end(store: Callable[[], None]) -> None:
    """Call `store`, a whole transaction, until the database takes it.

    Raises:
        OperationalError, InterfaceError: it has not within some forty seconds.
    """
    for pause in _PAUSES_S:
        try:
            return store()
        except (OperationalError, InterfaceError) as error:
            logger.warning("answers of a model could not be stored, trying again in %g s: %s", pause, error)
        # One that is broken would stay this thread's.
        close_old_connections()
        with lent():
            time.sleep(pause)
    return store()
