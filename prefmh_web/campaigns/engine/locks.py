"""Transactions of the engine: begun, joined, and begun again after a conflict; and claims that outlive them.

lock_caps, lock_people     one at a time, until the end of the transaction
begin                      a transaction, or a part of the one that `together` has begun
together                   several of the engine's calls as one transaction, which waits for nobody
pass_over                  note what was not waited for
retried_after_conflicts    once more when the database has ended one of two transactions so that the other may go on

What the path of a vote reads whole: a comparison under its lock, and the person who votes.

locked           one comparison with its chain and campaign, its row locked until the transaction ends
locked_all       several of them, in the transaction that the caller has begun
person, refresh  a voter with their campaign; the same, into one that was read before

`held` keeps a claim in the database while one works: it ends by itself soon after its holder's process does.
Clocks must agree to within `CLAIM_S`, and no holder may be stopped for longer than it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import Error, OperationalError, connection, transaction
from django.db.models import Model, Q, QuerySet
from django.utils import timezone

from prefmh_web.campaigns.engine import sql
from prefmh_web.campaigns.models import Comparison, Voter

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
def together(work: Callable[[], _R]) -> tuple[_R, bool]:
    """Call `work` in one transaction, three times at most after conflicts.

    Returns:
        What `work` returns, and whether it has passed something over.

    Raises:
        django.db.IntegrityError: somebody else was quicker, and nothing that `work` did is stored.
    """
    shared = _Shared()
    with transaction.atomic():
        token = _shared.set(shared)
        try:
            return work(), shared.has_passed_over
        finally:
            _shared.reset(token)


def _is_conflict(error: OperationalError) -> bool:
    return getattr(error.__cause__, "sqlstate", None) in (_SERIALIZATION_FAILURE, _DEADLOCK)


@contextmanager
def locked(pk: int) -> Iterator[Comparison]:
    """Open a transaction and yield a comparison with its chain and campaign, its row locked until the end.

    Raises:
        Comparison.DoesNotExist: there is none.
    """
    with begin():
        row = sql.COMPARISON.row(pk)
        if row is None:
            raise Comparison.DoesNotExist
        yield _comparison(row)


def locked_all(keys: Collection[int]) -> dict[int, Comparison]:
    """Return comparisons with their chains and campaigns by their keys, their rows locked; those that there are."""
    found = map(_comparison, sql.COMPARISONS.rows(sorted(keys)))
    return {comparison.pk: comparison for comparison in found}


def _comparison(row: Sequence[Any]) -> Comparison:
    comparison: Comparison
    comparison, chain, campaign = sql.read_all((sql.OF_COMPARISON, sql.OF_CHAIN, sql.OF_CAMPAIGN), row)
    chain.campaign, comparison.chain = campaign, chain
    return comparison


def person(voter_id: int) -> Voter:
    """Return a voter with their campaign, the number of their votes, and whether they hold a lease, in one statement.

    Raises:
        Voter.DoesNotExist: there is none.
    """
    row = sql.PERSON.row(voter_id)
    if row is None:
        raise Voter.DoesNotExist
    voter: Voter
    voter, campaign, holds_a_lease = sql.read_all((sql.OF_VOTER, sql.OF_CAMPAIGN), row)
    voter.campaign, voter.holds_a_lease = campaign, bool(holds_a_lease)
    return voter


def refresh(voter: Voter) -> None:
    """Bring a voter that was read before up to date, as `person` reads them."""
    vars(voter).update(vars(person(voter.pk)))


CLAIM_S = 60.0
RENEW_EVERY_S = CLAIM_S / 3


def claim_end() -> datetime:
    """Return until when a claim holds that is taken or renewed now."""
    return timezone.now() + timedelta(seconds=CLAIM_S)


def unclaimed() -> Q:
    """What holds for rows that nobody holds: their `claimed_until` is null, or past."""
    return Q(claimed_until__isnull=True) | Q(claimed_until__lte=timezone.now())


@contextmanager
def held(model: type[Model], keys: Collection[int], until: datetime) -> Iterator[None]:
    """Keep rows claimed whose `claimed_until` was set to a moment, and free them at the end."""
    if not keys:
        yield
        return
    claim = _Claim(model._default_manager.filter(pk__in=keys), until)
    claim.start()
    try:
        yield
    finally:
        claim.free()


class _Claim(threading.Thread):
    """Renews the claim on rows that are being worked on, from a thread of its own: work holds the one that it is on."""

    def __init__(self, rows: QuerySet[Any], until: datetime) -> None:
        super().__init__(name="claim", daemon=True)
        self._rows, self._until, self._is_over = rows, until, threading.Event()

    def run(self) -> None:
        while not self._is_over.wait(RENEW_EVERY_S):
            until = claim_end()
            try:
                self._write(until)
                self._until = until
            except Error:
                words = "could not renew the claim on rows of %s; trying again"
                logger.warning(words, self._rows.model.__name__, exc_info=True)
            # Of this thread's own; it is seldom needed.
            connection.close()

    def free(self) -> None:
        self._is_over.set()
        # None is renewed after the end.
        self.join()
        self._write(None)

    def _write(self, until: datetime | None) -> None:
        # Only as they were taken: one that was given up, or that ran out, may be somebody else's by now.
        self._rows.filter(claimed_until=self._until).update(claimed_until=until)
