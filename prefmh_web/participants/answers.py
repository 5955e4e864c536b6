"""What people answered about themselves: a table for the owner, by the numbers of the record. It is no part of the
record, for it is personal data.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.models import Participation
from sampler import schema

NAME = "answers.csv"
COLUMNS = ("annotator", "question", "answer", "answered_at")


def rows(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each answer, in the order in which they were given."""
    yield COLUMNS
    parts = Participation.objects.filter(campaign=campaign).exclude(answers={}).values_list("annotator", "answers")
    found = [(each["at"], who, name, each["answer"]) for who, given in parts for name, each in given.items()]
    for at, who, name, answer in sorted(found):
        yield str(who), name, schema.escaped(answer), schema.moment(datetime.fromisoformat(at))
