"""Transactions of the engine: begun, joined, and begun again after a conflict.

lock_caps, lock_people      one at a time, until the end of the transaction
begin                      a transaction, or a part of the one that `together` has begun
together                   several of the engine's calls as one transaction, which waits for nobody
pass_over                  note what was not waited for
retried_after_conflicts    once more when the database has ended one of two transactions so that the other may go on
"""

import logging
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import ParamSpec, TypeVar

from django.db import OperationalError, connection, transaction

logger = logging.getLogger(__name__)

_P = ParamSpec("_P")
_R = TypeVar("_R")
_SERIALIZATION_FAILURE, _DEADLOCK = "40001", "40P01"
ATTEMPTS = 3
_CAPS, _PEOPLE = 0x63_61_70, 0x70_65_6F
"""Of which kind of lock a number is."""


@dataclass
class _Shared:
    """A transaction of several calls."""

    has_passed_over: bool = False


_shared: ContextVar[_Shared | None] = ContextVar("shared", default=None)


def lock_caps(number: int) -> None:
    """Wait until nobody else sets anything aside under the caps of a campaign, or of the site, whose number is 0."""
    _lock(_CAPS, number)


def lock_people(campaign_id: int) -> None:
    """Wait until nobody else joins a campaign, takes a place in it or changes what it asks of people."""
    _lock(_PEOPLE, campaign_id)


def _lock(kind: int, number: int) -> None:
    # On SQLite a transaction that writes is alone. The lock ends with the transaction.
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [kind, number])


def begin() -> transaction.Atomic:
    """Return a transaction to enter. A part of a larger one has no savepoint: when it fails, all of that one goes."""
    return transaction.atomic(savepoint=not is_joined())


def is_joined() -> bool:
    """True inside `together`: locks are held from what came before, so nothing may be waited for."""
    return _shared.get() is not None


def pass_over() -> None:
    """Note, inside `together`, that there was something to find, and somebody else holds it at this moment."""
    if shared := _shared.get():
        shared.has_passed_over = True


def together(work: Callable[[], _R]) -> tuple[_R, bool]:
    """Call `work` in one transaction, three times at most after conflicts.

    Returns:
        What `work` returns, and whether it has passed something over.

    Raises:
        django.db.IntegrityError: somebody else was quicker, and nothing that `work` did is stored.
    """
    return _together(work)


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


@retried_after_conflicts
def _together(work: Callable[[], _R]) -> tuple[_R, bool]:
    shared = _Shared()
    with transaction.atomic():
        token = _shared.set(shared)
        try:
            return work(), shared.has_passed_over
        finally:
            _shared.reset(token)


def _is_conflict(error: OperationalError) -> bool:
    return getattr(error.__cause__, "sqlstate", None) in (_SERIALIZATION_FAILURE, _DEADLOCK)
