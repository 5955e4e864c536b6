"""The problems that people have reported with pairs, as a file of the record; none without any."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign, Event
from prefmh_web.campaigns.record.rows import Row
from sampler import schema

_AT_A_TIME = 500


def tables(campaign: Campaign) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield the file of the problems, if there are any. What people wrote may name them, and is left out."""
    if Event.objects.filter(campaign=campaign, kind=Event.Kind.REPORTED).exists():
        yield schema.PROBLEMS.file, _rows(campaign)


def _rows(campaign: Campaign) -> Iterator[Row]:
    yield schema.PROBLEMS.header
    found = Event.objects.filter(campaign=campaign, kind=Event.Kind.REPORTED)
    for event in found.iterator(chunk_size=_AT_A_TIME):
        pair = {name: event.data[name] for name in ("chain", "step", "proposal_side", "reason")}
        yield schema.PROBLEMS.row(annotator=event.voter_id, reported_at=event.at, **pair)
