"""What the path of a vote reads whole: a comparison under its lock, and the person who votes.

locked           one comparison with its chain and campaign, its row locked until the transaction ends
locked_all       several of them, in the transaction that the caller has begun
person           an annotator with their campaign
refresh          the same, into an annotator that was read before
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from prefmh_web.campaigns.engine import sql
from prefmh_web.campaigns.engine.transactions import begin
from prefmh_web.campaigns.models import Annotator, Comparison


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
