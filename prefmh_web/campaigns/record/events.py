"""What happened in a campaign after its start, in the order of time, as rows of events.csv."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any

from prefmh_web.campaigns.events import told
from prefmh_web.campaigns.models import Campaign, Event
from prefmh_web.campaigns.record.rows import Row
from sampler import schema

# suspended.csv, problems.csv and consent_texts.csv have them.
_ELSEWHERE = (Event.Kind.STEP_SUSPENDED, Event.Kind.REPORTED, Event.Kind.CONSENT_TEXT)
_Event = tuple[datetime, str, int | None, dict[str, Any]]
"""When, of which kind, about whom, and what it says."""


def rows(campaign: Campaign) -> Iterator[Row]:
    """Yield the header and a row for each event; none of a draft. As many queries as there are kinds of tables."""
    yield schema.EVENTS.header
    for at, kind, voter, said in sorted(_events(campaign), key=itemgetter(0)):
        own = {"reason": said.pop("reason", ""), "paid": said.pop("paid", None)}
        yield schema.EVENTS.row(annotator=voter, kind=kind, at=at, detail=_detail(said), **own)


def _events(campaign: Campaign) -> Iterator[_Event]:
    if campaign.started_at is None:
        return
    yield campaign.started_at, "started", None, {"seed_hash": campaign.seed_hash}
    if told_at := campaign.seed_told_at or campaign.finished_at:
        yield told_at, "seed-told", None, {}
    yield from _of_links(campaign, campaign.started_at)
    if campaign.tuning and "ended_at" in campaign.tuning:
        yield datetime.fromisoformat(campaign.tuning["ended_at"]), "warm-up-ended", None, {}
    found = Event.objects.filter(campaign=campaign).exclude(kind__in=_ELSEWHERE)
    for at, kind, voter, data in found.values_list("at", "kind", "voter", "data"):
        yield at, kind, voter, told(kind, data)


def _of_links(campaign: Campaign, started_at: datetime) -> Iterator[_Event]:
    """Yield links that were made after those of the start, and links that were closed, each by its number."""
    links = campaign.invitations.order_by("pk").values_list("created_at", "revoked_at", "is_single_use")
    for number, (made, closed, is_single_use) in enumerate(links, start=1):
        # Those of the start are made in its transaction, a moment later; that of everybody is the first.
        if number > max(1, len(campaign.config.panelists)):
            yield made, "link-made", None, {"link": number, "people": "one" if is_single_use else "many"}
        if closed is not None:
            yield closed, "link-closed", None, {"link": number}


def _detail(said: dict[str, Any]) -> str:
    return "; ".join(f"{name}={'none' if value is None else value}" for name, value in said.items())
