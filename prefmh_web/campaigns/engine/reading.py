"""What the path of a vote reads whole: a comparison under its lock, and the person who votes.

locked, locked_by_lease    one comparison with its chain and campaign, its row locked until the transaction ends
locked_pair                one comparison with its two objects
person                     an annotator with their campaign
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prefmh_web.campaigns.engine import statements
from prefmh_web.campaigns.engine.rows import read_all
from prefmh_web.campaigns.engine.statements import (
    OF_ANNOTATOR,
    OF_CAMPAIGN,
    OF_CHAIN,
    OF_COMPARISON,
    OF_CURRENT,
    OF_LEASE,
    OF_PROPOSAL,
)
from prefmh_web.campaigns.engine.transactions import begin
from prefmh_web.campaigns.models import Annotator, Comparison, Lease


@contextmanager
def locked(pk: int) -> Iterator[Comparison]:
    """Open a transaction and yield a comparison with its chain and campaign, its row locked until the end.

    Raises:
        Comparison.DoesNotExist: there is none.
    """
    with begin():
        yield _with_its_chain(statements.COMPARISON.row(pk))


@contextmanager
def locked_by_lease(key: uuid.UUID, annotator: Annotator) -> Iterator[Comparison]:
    """The same of the comparison that an annotator was leased.

    Raises:
        Comparison.DoesNotExist: the annotator was never given this lease.
    """
    with begin():
        yield _with_its_chain(statements.COMPARISON_OF_LEASE.row(key, annotator.pk))


def lease_of(comparison: Comparison, key: uuid.UUID) -> tuple[Lease, bool]:
    """Return a lease on a comparison that is locked, and whether its annotator rests. Until the lock was there, the
    lease may have ended.

    Raises:
        Comparison.DoesNotExist: the annotator has lost access.
    """
    row = statements.LEASE.row(key)
    if row is None:
        raise Comparison.DoesNotExist
    lease, rests = read_all((OF_LEASE,), row)
    lease.comparison = comparison
    return lease, bool(rests)


@contextmanager
def locked_pair(pk: int, *, patient: bool) -> Iterator[Comparison | None]:
    """Lock a comparison as `locked` does, and read its pair; None if somebody else holds it and the caller is not
    patient.
    """
    with begin():
        row = (statements.PAIR_ONCE_FREE if patient else statements.PAIR).row(pk)
        yield None if row is None else _with_its_pair(row)


def _with_its_pair(row: Sequence[Any]) -> Comparison:
    comparison: Comparison
    comparison, current, proposal = read_all((OF_COMPARISON, OF_CURRENT, OF_PROPOSAL), row)
    comparison.current, comparison.proposal = current, proposal
    return comparison


def _with_its_chain(row: Sequence[Any] | None) -> Comparison:
    if row is None:
        raise Comparison.DoesNotExist
    comparison: Comparison
    comparison, chain, campaign = read_all((OF_COMPARISON, OF_CHAIN, OF_CAMPAIGN), row)
    chain.campaign, comparison.chain = campaign, chain
    return comparison


def person(annotator_id: int) -> tuple[Annotator, int, bool]:
    """Return an annotator with their campaign, the number of their votes, and whether a lease is theirs, in one
    statement.

    Raises:
        Annotator.DoesNotExist: there is none.
    """
    row = statements.PERSON.row(annotator_id)
    if row is None:
        raise Annotator.DoesNotExist
    annotator, campaign, votes_cast, holds_a_lease = read_all((OF_ANNOTATOR, OF_CAMPAIGN), row)
    annotator.campaign = campaign
    return annotator, votes_cast, bool(holds_a_lease)
