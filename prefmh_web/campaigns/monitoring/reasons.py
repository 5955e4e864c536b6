"""What the models of a campaign thought before their last votes, where that is kept. Reads only."""

from __future__ import annotations

from collections.abc import Sequence

from prefmh_web.campaigns.models import Campaign, VoteReason

MOST = 10


def latest_of(campaign: Campaign) -> Sequence[VoteReason]:
    """Return the last reasons, the newest first, each with its vote, step and chain."""
    found = VoteReason.objects.filter(judge__in=list(campaign.judges.all())).order_by("-pk")
    return list(found.select_related("judge__endpoint", "vote__comparison__chain")[:MOST])
