"""What people answered about themselves: a table for the owner, by the numbers of the record. It is no part of the
record, for it is personal data.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.voters import numbers_in
from prefmh_web.participants.models import Participation

NAME = "answers.csv"
COLUMNS = ("voter", "question", "answer", "answered_at")


def rows(campaign: Campaign) -> Iterator[tuple[str, ...]]:
    """Yield the header and a row for each answer, in the order in which they were given."""
    yield COLUMNS
    numbers = numbers_in(campaign)
    parts = Participation.objects.filter(campaign=campaign).exclude(answers={}).values_list("annotator", "answers")
    found = [(each["at"], who, name, each["answer"]) for who, given in parts for name, each in given.items()]
    for at, who, name, answer in sorted(found):
        yield str(numbers[who]), name, sampler.escaped(answer), sampler.moment(datetime.fromisoformat(at))
