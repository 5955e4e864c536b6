"""What researchers did in a campaign after its start, in the order of time, as rows of events.csv."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from prefmh_web.campaigns.models import Campaign, CampaignEvent, Parking
from prefmh_web.campaigns.record.rows import Row
from sampler import schema

_Event = tuple[datetime, str, str]
"""When, of which kind, and what was changed."""


def rows(campaign: Campaign) -> Iterator[tuple[datetime, Row]]:
    """Yield a row for each deed, with its moment; none of a draft. As many queries as there are kinds of tables."""
    for at, kind, detail in sorted(_events(campaign)):
        yield at, schema.EVENTS.row(annotator=None, kind=kind, at=at, reason="", paid=None, detail=detail)


def _events(campaign: Campaign) -> Iterator[_Event]:
    if campaign.started_at is None:
        return
    yield campaign.started_at, "started", _detail(seed_hash=campaign.seed_hash) if campaign.seed_hash else ""
    if campaign.seed_hash and (told_at := campaign.seed_told_at or campaign.finished_at):
        yield told_at, "seed-told", ""
    for caps in campaign.cap_changes.all():
        yield caps.changed_at, "caps", _detail(cost_cap=caps.cost_cap, request_cap=caps.request_cap)
    for added in campaign.extensions.all():
        yield added.extended_at, "extended", _detail(steps_before=added.steps_before, steps_after=added.steps_after)
    yield from _of_steps(campaign)
    yield from _of_links(campaign, campaign.started_at)
    if campaign.tuning and "ended_at" in campaign.tuning:
        yield datetime.fromisoformat(campaign.tuning["ended_at"]), "warm-up-ended", ""
    yield from CampaignEvent.objects.filter(campaign=campaign).values_list("at", "kind", "detail")


def _of_steps(campaign: Campaign) -> Iterator[_Event]:
    found = Parking.objects.filter(comparison__chain__campaign=campaign, outcome__isnull=False)
    columns = ("settled_at", "outcome", "comparison__chain__place", "comparison__step")
    for at, outcome, chain, step in found.values_list(*columns):
        kind = "chain-ended" if outcome == Parking.Outcome.ENDED else "step-tried-again"
        yield at, kind, _detail(chain=chain, step=step)


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
