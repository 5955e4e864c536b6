"""What models answered about pairs that people were shown once more, as a file of the record, where they are asked."""

from __future__ import annotations

from collections.abc import Iterator

import sampler
from prefmh_web.campaigns.models import Campaign, RepeatQuestion
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import schema


def are_in(campaign: Campaign) -> bool:
    """True where the recipe lets a model be asked: records of others stay as they were."""
    sources = [judge.source for judge in campaign.parsed_recipe.judges]
    return any(isinstance(source, sampler.ModelSource) and source.repeats for source in sources)


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield every answer."""
    yield schema.REPEATS.header
    found = RepeatQuestion.objects.filter(judge__campaign=snapshot.campaign, lead__isnull=False)
    found = found.order_by("comparison__chain__place", "comparison__step", "judge__place")
    columns = ("comparison__chain__place", "comparison__step", "judge__place", "lead", "answered_at")
    for chain, step, judge, lead, answered_at in found.values_list(*columns):
        if snapshot.is_decided(chain, step):
            yield schema.REPEATS.row(chain=chain, step=step, judge=judge, lead=lead, answered_at=answered_at)
