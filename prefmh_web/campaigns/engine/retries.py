"""Once more after a conflict: what to do when the database ends one of two transactions so that the other may go on."""

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection

logger = logging.getLogger(__name__)

_P, _R = ParamSpec("_P"), TypeVar("_R")
_SERIALIZATION_FAILURE, _DEADLOCK = "40001", "40P01"
ATTEMPTS = 3


def retried_after_conflicts(work: Callable[_P, _R]) -> Callable[_P, _R]:
    """Call `work` again when PostgreSQL has ended its transaction for another's sake, three times at most.

    `work` is a whole transaction: inside a larger one nothing can be tried again, and the error passes through.
    """

    @wraps(work)
    def whole(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return work(*arguments, **keywords)
            except OperationalError as error:
                if not _is_conflict(error) or connection.in_atomic_block or attempt == ATTEMPTS:
                    raise
                logger.info("transaction conflict, trying again: %s", work.__name__)
        raise AssertionError("unreachable")

    return whole


def _is_conflict(error: OperationalError) -> bool:
    return getattr(error.__cause__, "sqlstate", None) in (_SERIALIZATION_FAILURE, _DEADLOCK)
