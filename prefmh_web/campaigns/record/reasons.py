"""What models thought before they voted, as a file of the record; only of campaigns that keep it."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q

import sampler
from prefmh_web.campaigns.models import Campaign, VoteReason
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import schema

_ROWS_AT_ONCE = 200
_COLUMNS = ("vote__comparison__chain__place", "vote__comparison__step", "vote__number", "vote__slot", "judge__place")


def are_in(campaign: Campaign) -> bool:
    """True where the config says of a judge that its reasons are kept: records of others stay as they were."""
    sources = [judge.source for judge in campaign.config.judges]
    return any(isinstance(source, sampler.ModelSource) and source.reasons for source in sources)


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the reason of each vote that has one, by the vote's chain, step, judge and slot."""
    yield schema.REASONS.header
    found = VoteReason.objects.filter(judge__campaign=snapshot.campaign)
    found = found.filter(Q(vote__number__isnull=False) | Q(vote__lte=snapshot.last_vote))
    found = found.order_by("vote__comparison__chain__place", "vote__comparison__step", "judge__place", "vote__slot")
    for chain, step, number, slot, judge, text, is_cut in found.values_list(*_COLUMNS, "text", "is_cut").iterator(
        _ROWS_AT_ONCE
    ):
        if snapshot.has_vote(chain, step, number):
            yield schema.REASONS.row(chain=chain, step=step, judge=judge, slot=slot, reason=text, cut=is_cut)
