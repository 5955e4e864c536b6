"""The problems that people have reported with pairs, as a file of the record; none without any."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign, Problem
from prefmh_web.campaigns.record.rows import Row
from sampler import schema

_AT_A_TIME = 500


def tables(campaign: Campaign) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield the file of the problems, if there are any. What people wrote may name them, and is left out."""
    if Problem.objects.filter(annotator__campaign=campaign).exists():
        yield schema.PROBLEMS.file, _rows(campaign)


def _rows(campaign: Campaign) -> Iterator[Row]:
    yield schema.PROBLEMS.header
    found = Problem.objects.filter(annotator__campaign=campaign)
    for problem in found.select_related("lease__comparison__chain").order_by("pk").iterator(chunk_size=_AT_A_TIME):
        lease = problem.lease
        yield schema.PROBLEMS.row(
            annotator=problem.annotator_id,
            chain=lease and lease.comparison.chain.place,
            step=lease and lease.comparison.step,
            proposal_side=lease and lease.proposal_side,
            reason=problem.reason,
            reported_at=problem.reported_at,
        )
