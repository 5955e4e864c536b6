"""What researchers did in a campaign after its start, in the order of time, as rows of events.csv."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from prefmh_web.campaigns.events import told
from prefmh_web.campaigns.models import Campaign, Event
from prefmh_web.campaigns.record.rows import Row
from sampler import schema

# suspended.csv says when and why.
_ELSEWHERE = (Event.Kind.STEP_SUSPENDED,)
_Event = tuple[datetime, str, str]
"""When, of which kind, and what was changed."""


def rows(campaign: Campaign) -> Iterator[tuple[datetime, Row]]:
    """Yield a row for each deed, with its moment; none of a draft. As many queries as there are kinds of tables."""
    for at, kind, detail in sorted(_events(campaign)):
        yield at, schema.EVENTS.row(annotator=None, kind=kind, at=at, reason="", paid=None, detail=detail)


def _events(campaign: Campaign) -> Iterator[_Event]:
    if campaign.started_at is None:
        return
    yield campaign.started_at, "started", _detail(seed_hash=campaign.seed_hash)
    if told_at := campaign.seed_told_at or campaign.finished_at:
        yield told_at, "seed-told", ""
    yield from _of_links(campaign, campaign.started_at)
    if campaign.tuning and "ended_at" in campaign.tuning:
        yield datetime.fromisoformat(campaign.tuning["ended_at"]), "warm-up-ended", ""
    found = Event.objects.filter(campaign=campaign).exclude(kind__in=_ELSEWHERE).values_list("at", "kind", "data")
    for at, kind, data in found:
        yield at, kind, _detail(**told(kind, data))


def _of_links(campaign: Campaign, started_at: datetime) -> Iterator[_Event]:
    """Yield links that were made after those of the start, and links that were closed, each by its number."""
    links = campaign.invitations.order_by("pk").values_list("created_at", "revoked_at", "is_single_use")
    for number, (made, closed, is_single_use) in enumerate(links, start=1):
        # Those of the start are made in its transaction, a moment later; that of everybody is the first.
        if number > max(1, campaign.parsed_recipe.seats):
            yield made, "link-made", _detail(link=number, people="one" if is_single_use else "many")
        if closed is not None:
            yield closed, "link-closed", _detail(link=number)


def _detail(**changed: Any) -> str:
    return "; ".join(f"{name}={'none' if value is None else value}" for name, value in changed.items())
