"""What people answered about themselves: a table for the owner, by the numbers of the record. It is no part of the
record, for it is personal data.
"""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.models import Answer
from sampler import schema

NAME = "answers.csv"
COLUMNS = ("annotator", "question", "answer", "answered_at")


def rows(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each answer, in the order in which they were given."""
    yield COLUMNS
    found = Answer.objects.filter(participation__campaign=campaign).select_related("participation").order_by("pk")
    for each in found.iterator(chunk_size=500):
        yield (
            str(each.participation.annotator_id),
            each.name,
            schema.escaped(each.answer),
            schema.moment(each.answered_at),
        )
