"""What asking models takes, counted by campaign and judge. The only place where that is written.

    counted     calls that are made in a block are counted at its end, whether they go well or not
    record      what a tally holds, in the transaction that stores the outcome, if there is one

A count is added in one statement that reads nothing first, so no two workers lose one another's. It is written once the
outcome is there: a worker that dies loses at most the count of what it had under way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict

from django.db import connection

from prefmh_web.campaigns.models import ModelUsage
from prefmh_web.endpoints import accounting
from prefmh_web.endpoints.accounting import Tally

PROPOSALS = ModelUsage.PROPOSALS
_SUMS = ("requests", "failed", "unreadable", "unpriced", "tokens_in", "tokens_out", "seconds", "cost")
_LARGEST = ("most_tokens_in", "most_tokens_out")
_TABLE = ModelUsage._meta.db_table
_CHANGES = [
    *(f"{name} = {_TABLE}.{name} + excluded.{name}" for name in _SUMS),
    # SQLite knows no GREATEST.
    *(
        f"{name} = CASE WHEN {_TABLE}.{name} > excluded.{name} THEN {_TABLE}.{name} ELSE excluded.{name} END"
        for name in _LARGEST
    ),
]
# Found by model_usage_once_per_judge. Nothing is written for a draft that was deleted meanwhile.
_ADD = f"""
    INSERT INTO {_TABLE} (campaign_id, place, {", ".join((*_SUMS, *_LARGEST))})
    SELECT id, {", ".join(["%s"] * (1 + len(_SUMS) + len(_LARGEST)))} FROM campaigns_campaign WHERE id = %s
    ON CONFLICT (campaign_id, place) DO UPDATE SET {", ".join(_CHANGES)}
"""


def record(campaign_id: int, place: int, tally: Tally) -> None:
    """Add to what a judge of a campaign has taken.

    Args:
        place: the judge's, or `PROPOSALS`.
    """
    if not tally.requests:
        return
    counts = asdict(tally)
    with connection.cursor() as cursor:
        cursor.execute(_ADD, [place, *(counts[name] for name in (*_SUMS, *_LARGEST)), campaign_id])


@contextmanager
def counted(campaign_id: int, place: int) -> Iterator[None]:
    """Count all calls that are made in this block, for a judge of a campaign or for its `PROPOSALS`."""
    with accounting.tallied() as tally:
        try:
            yield
        finally:
            record(campaign_id, place, tally)
