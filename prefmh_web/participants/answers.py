"""What people answered about themselves: a table for the owner, by the numbers of the record. It is no part of the
record, for it is personal data.
"""

from __future__ import annotations

from collections.abc import Iterator

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.voters import numbers_in
from prefmh_web.participants.models import Answer

NAME = "answers.csv"
COLUMNS = ("voter", "question", "answer", "answered_at")


def rows(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each answer, in the order in which they were given."""
    yield COLUMNS
    numbers = numbers_in(campaign)
    found = Answer.objects.filter(participation__campaign=campaign).select_related("participation").order_by("pk")
    for each in found.iterator(chunk_size=500):
        yield (
            str(numbers[each.participation.annotator_id]),
            each.name,
            sampler.escaped(each.answer),
            sampler.moment(each.answered_at),
        )
