"""Transactions of the engine: begun, joined, and begun again after a conflict; and claims that outlive them.

lock_caps, lock_people     one at a time, until the end of the transaction
begin                      a transaction, or a part of the one that `together` has begun
together                   several of the engine's calls as one transaction, which waits for nobody
pass_over                  note what was not waited for
retried_after_conflicts    once more when the database has ended one of two transactions so that the other may go on

What the path of a vote reads whole: a comparison under its lock, and the person who votes.

locked           one comparison with its chain and campaign, its row locked until the transaction ends
locked_all       several of them, in the transaction that the caller has begun
person, refresh  an annotator with their campaign; the same, into one that was read before

`held` keeps a claim in the database while one works: it ends by itself soon after its holder's process does.
Clocks must agree to within `CLAIM_S`, and no holder may be stopped for longer than it.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from django.db import Error, OperationalError, connection, transaction
from django.db.models import Model, Q
from django.utils import timezone

from prefmh_web.campaigns.engine import sql
from prefmh_web.campaigns.models import Annotator, Comparison

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


def person(annotator_id: int) -> Annotator:
    """Return an annotator with their campaign, the number of their votes, and whether a lease is theirs, in one
    statement.

    Raises:
        Annotator.DoesNotExist: there is none.
    """
    row = sql.PERSON.row(annotator_id)
    if row is None:
        raise Annotator.DoesNotExist
    annotator: Annotator
    annotator, campaign, holds_a_lease = sql.read_all((sql.OF_ANNOTATOR, sql.OF_CAMPAIGN), row)
    annotator.campaign, annotator.holds_a_lease = campaign, bool(holds_a_lease)
    return annotator


def refresh(annotator: Annotator) -> None:
    """Bring an annotator that was read before up to date, as `person` reads them."""
    vars(annotator).update(vars(person(annotator.pk)))


CLAIM_S = 60.0
RENEW_EVERY_S = CLAIM_S / 3


def claim_end() -> datetime:
    """Return until when a claim holds that is taken or renewed now."""
    return timezone.now() + timedelta(seconds=CLAIM_S)


def unclaimed() -> Q:
    """What holds for rows that nobody holds: their `claimed_until` is null, or past."""
    return Q(claimed_until__isnull=True) | Q(claimed_until__lte=timezone.now())


@contextmanager
def held(model: type[Model], keys: Collection[int], column: str, until: datetime) -> Iterator[None]:
    """Keep rows claimed that were taken until a moment, each until the one in a column of its, and free them at the
    end. They are renewed from another thread, since work here holds its own.
    """
    if not keys:
        yield
        return
    claim = _Claim(model, keys, column, until)
    _renewer.add(claim)
    try:
        yield
    finally:
        _renewer.remove(claim)
        claim.free()


class _Claim:
    """Rows that are being worked on. The lock is held while they are renewed, so that none is renewed after the end."""

    def __init__(self, model: type[Model], keys: Collection[int], column: str, until: datetime) -> None:
        self._rows, self._column, self._until = model._default_manager.filter(pk__in=keys), column, until
        self._lock, self._is_over = threading.Lock(), False
        self.due = time.monotonic() + RENEW_EVERY_S

    def renew(self) -> None:
        with self._lock:
            if self._is_over:
                return
            until = claim_end()
            try:
                self._write(until)
                self._until = until
            except Error:
                words = "could not renew the claim on %s of rows of %s; trying again"
                logger.warning(words, self._column, self._rows.model.__name__, exc_info=True)
            self.due = time.monotonic() + RENEW_EVERY_S

    def free(self) -> None:
        with self._lock:
            self._is_over = True
        self._write(None)

    def _write(self, until: datetime | None) -> None:
        # Only as they were taken: one that was given up, or that ran out, may be somebody else's by now.
        self._rows.filter(**{self._column: self._until}).update(**{self._column: until})


class _Renewer:
    """Renews all claims of this process, on one thread that ends when there has been none for a while."""

    def __init__(self) -> None:
        self._held: set[_Claim] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._wakes_at = 0.0

    def add(self, held: _Claim) -> None:
        with self._changed:
            self._held.add(held)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="claims", daemon=True)
                self._thread.start()
            elif held.due < self._wakes_at:
                self._changed.notify()

    def remove(self, held: _Claim) -> None:
        with self._changed:
            self._held.discard(held)

    def _run(self) -> None:
        while (held := self._next()) is not None:
            held.renew()
            # Of this thread's own; it is seldom needed.
            connection.close()

    def _next(self) -> _Claim | None:
        """Wait until a claim is due, and return it; None if there has been none for a while, and this thread ends."""
        with self._changed:
            while True:
                was_idle = not self._held
                held = min(self._held, key=lambda held: held.due, default=None)
                now = time.monotonic()
                if held is not None and held.due <= now:
                    return held
                self._wakes_at = now + RENEW_EVERY_S if held is None else held.due
                self._changed.wait(self._wakes_at - now)
                if was_idle and not self._held and time.monotonic() >= self._wakes_at:
                    self._thread = None
                    return None


def _begin() -> None:
    global _renewer
    _renewer = _Renewer()


_renewer = _Renewer()
# A child has none of its parent's threads.
os.register_at_fork(after_in_child=_begin)
