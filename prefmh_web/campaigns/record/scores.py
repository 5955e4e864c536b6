"""The numbers that scorers gave objects, as two files of the record; none without scorers."""

from __future__ import annotations

import json
from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign, Score
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import schema

_AT_A_TIME = 2000


def are_in(campaign: Campaign) -> bool:
    """True where the campaign has started with scorers."""
    return bool(campaign.config.all_scorers)


def scorers(campaign: Campaign) -> str:
    """Return what each scorer said of itself when the campaign started, as JSON."""
    frozen = list(campaign.scorers.values_list("frozen", flat=True))
    return json.dumps(frozen, indent=2, ensure_ascii=False) + "\n"


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the number that each scorer gave each object; an empty cell where it was asked and gave none."""
    yield schema.SCORES.header
    found = Score.objects.filter(scorer__campaign=snapshot.campaign).order_by("state__place", "scorer__place")
    for state, scorer, value in found.values_list("state__place", "scorer__name", "value").iterator(_AT_A_TIME):
        if snapshot.has_state(state):
            yield schema.SCORES.row(state=state, scorer=scorer, score=value)
