"""What models thought before they voted, as a file of the record; only of campaigns that keep it."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q

import sampler
from prefmh_web.campaigns.models import Campaign, Vote
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import schema

_ROWS_AT_ONCE = 200


def are_in(campaign: Campaign) -> bool:
    """True where the config says of a judge that its reasons are kept: records of others stay as they were."""
    sources = [judge.source for judge in campaign.config.judges]
    return any(isinstance(source, sampler.ModelSource) and source.reasons for source in sources)


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the reason of each vote that has one, by the vote's chain, step, judge and slot."""
    yield schema.REASONS.header
    found = Vote.objects.filter(judge__campaign=snapshot.campaign).exclude(reason="")
    found = found.filter(Q(number__isnull=False) | Q(pk__lte=snapshot.last_vote))
    found = found.select_related("comparison__chain", "judge")
    found = found.order_by("comparison__chain__place", "comparison__step", "judge__place", "slot")
    for vote in found.iterator(_ROWS_AT_ONCE):
        step = vote.comparison
        if snapshot.has_vote(step.chain.place, step.step, vote.number):
            yield schema.REASONS.row(
                chain=step.chain.place,
                step=step.step,
                judge=vote.judge.place,
                slot=vote.slot,
                reason=vote.shown_reason,
                cut=vote.is_reason_cut,
            )
