"""What the path of a vote reads whole: a comparison under its lock, and the person who votes.

locked           one comparison with its chain and campaign, its row locked until the transaction ends
locked_lease     a lease with its comparison and its annotator, all three locked
locked_pair      one comparison with its two objects
person           an annotator with their campaign
refresh          the same, into an annotator that was read before
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
def locked_lease(key: uuid.UUID, annotator: Annotator) -> Iterator[Lease]:
    """Open a transaction and yield a lease of an annotator with its comparison as `locked` does, all rows locked.

    Args:
        annotator: is brought up to date, together with their campaign.

    Raises:
        Comparison.DoesNotExist: the annotator was never given this lease.
    """
    with begin():
        row = statements.COMPARISON_OF_LEASE.row(key, annotator.pk)
        if row is None:
            raise Comparison.DoesNotExist
        of_comparison = len(OF_COMPARISON) + len(OF_CHAIN) + len(OF_CAMPAIGN)
        lease, now, holds_another = read_all((OF_LEASE, OF_ANNOTATOR), row[of_comparison:])
        lease.comparison, lease.annotator = _with_its_chain(row[:of_comparison]), annotator
        vars(annotator).update(vars(now))
        annotator.campaign = lease.comparison.chain.campaign
        # Once this one has ended, which every caller sees to.
        annotator.holds_a_lease = bool(holds_another)
        yield lease


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


def person(annotator_id: int) -> Annotator:
    """Return an annotator with their campaign, the number of their votes, and whether a lease is theirs, in one
    statement.

    Raises:
        Annotator.DoesNotExist: there is none.
    """
    row = statements.PERSON.row(annotator_id)
    if row is None:
        raise Annotator.DoesNotExist
    annotator: Annotator
    annotator, campaign, holds_a_lease = read_all((OF_ANNOTATOR, OF_CAMPAIGN), row)
    annotator.campaign, annotator.holds_a_lease = campaign, bool(holds_a_lease)
    return annotator


def refresh(annotator: Annotator) -> None:
    """Bring an annotator that was read before up to date, as `person` reads them."""
    now = person(annotator.pk)
    annotator.campaign, annotator.votes_cast = now.campaign, now.votes_cast
    annotator.holds_a_lease, annotator.removed_at = now.holds_a_lease, now.removed_at
