"""What asking models took, as a file of the record; in the archive only of campaigns that had a cap on it."""

from __future__ import annotations

from collections.abc import Iterator

from prefmh_web.campaigns.models import Campaign, Event
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from sampler import schema


def are_in(campaign: Campaign) -> bool:
    """True where models were asked, and a cap on that was ever declared: records of others stay as they were."""
    is_capped = (
        campaign.cost_cap is not None
        or campaign.request_cap is not None
        or campaign.events.filter(kind=Event.Kind.CONFIG_CHANGED, data__path__startswith="caps").exists()
    )
    return is_capped and campaign.model_usage.exists()


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield what each judge has taken by now, and the writing of texts."""
    yield schema.CALLS.header
    for usage in snapshot.campaign.model_usage.all():
        yield schema.CALLS.row(
            judge=None if usage.is_of_proposals else usage.place,
            requests=usage.requests,
            failed=usage.failed,
            unreadable=usage.unreadable,
            unpriced=usage.unpriced,
            tokens_in=usage.tokens_in,
            tokens_out=usage.tokens_out,
            seconds=usage.seconds,
            cost=usage.cost,
        )
