"""What the path of a vote reads whole: a comparison under its lock, and the person who votes.

locked           one comparison with its chain and campaign, its row locked until the transaction ends
locked_all       several of them, in the transaction that the caller has begun
locked_lease     a lease with its comparison and its annotator, all three locked
locked_pair      one comparison with its two objects
person           an annotator with their campaign
refresh          the same, into an annotator that was read before
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prefmh_web.campaigns.engine import sql
from prefmh_web.campaigns.engine.transactions import begin
from prefmh_web.campaigns.models import Annotator, Comparison, Lease


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


@contextmanager
def locked_lease(key: uuid.UUID, annotator: Annotator) -> Iterator[Lease]:
    """Open a transaction and yield a lease of an annotator with its comparison as `locked` does, all rows locked.

    Args:
        annotator: is brought up to date, together with their campaign.

    Raises:
        Comparison.DoesNotExist: the annotator was never given this lease.
    """
    with begin():
        row = sql.COMPARISON_OF_LEASE.row(key, annotator.pk)
        if row is None:
            raise Comparison.DoesNotExist
        columns = (sql.OF_COMPARISON, sql.OF_CHAIN, sql.OF_CAMPAIGN, sql.OF_LEASE, sql.OF_ANNOTATOR)
        comparison, chain, campaign, lease, now, holds_another = sql.read_all(columns, row)
        chain.campaign, comparison.chain, lease.comparison, lease.annotator = campaign, chain, comparison, annotator
        vars(annotator).update(vars(now))
        annotator.campaign = campaign
        # Once this one has ended, which every caller sees to.
        annotator.holds_a_lease = bool(holds_another)
        yield lease


@contextmanager
def locked_pair(pk: int, *, patient: bool) -> Iterator[Comparison | None]:
    """Lock a comparison as `locked` does, and read its pair; None if somebody else holds it and the caller is not
    patient.
    """
    with begin():
        row = (sql.PAIR_ONCE_FREE if patient else sql.PAIR).row(pk)
        if row is None:
            yield None
            return
        comparison, current, proposal = sql.read_all((sql.OF_COMPARISON, sql.OF_CURRENT, sql.OF_PROPOSAL), row)
        comparison.current, comparison.proposal = current, proposal
        yield comparison


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
