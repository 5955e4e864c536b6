"""What happened in a campaign after its start, in the order of time, as rows of events.csv."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any

from prefmh_web import hooks
from prefmh_web.campaigns.events import told
from prefmh_web.campaigns.models import Campaign, ChainOpening, Event
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.campaigns.voters import numbers_in
from sampler import tables

Happened = tuple[datetime, str, int | None, dict[str, Any]]
"""When, of which kind, about whom by their primary key, and what it says; `by` is the role of a researcher."""


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Yield the header and a row for each event; none of a draft. As many queries as there are kinds of tables."""
    yield tables.EVENTS.header
    if snapshot.campaign.started_at is None:
        return
    numbers, found = numbers_in(snapshot.campaign), list(_events(snapshot, snapshot.campaign.started_at))
    for happened in hooks.load(hooks.RECORD_EVENTS):
        found += happened(snapshot.campaign)
    for number, (at, kind, voter, said) in enumerate(sorted(found, key=itemgetter(0)), start=1):
        by, who = said.pop("by", None), None if voter is None else numbers[voter]
        yield tables.EVENTS.row(number=number, at=at, kind=kind, by=by, voter=who, data=said)


def _events(snapshot: Snapshot, started_at: datetime) -> Iterator[Happened]:
    campaign = snapshot.campaign
    yield started_at, "started", None, {"seed_hash": campaign.seed_hash}
    if told_at := campaign.seed_told_at or campaign.finished_at:
        yield told_at, "seed-told", None, {}
    yield from _of_links(campaign, started_at)
    if campaign.tuning and "ended_at" in campaign.tuning:
        yield datetime.fromisoformat(campaign.tuning["ended_at"]), "warm-up-ended", None, {}
    opened = ChainOpening.objects.filter(chain__campaign=campaign).order_by("chain__place")
    for at, place, voter, is_ahead in opened.values_list("opened_at", "chain__place", "annotator", "is_ahead"):
        if place in snapshot.steps and at is not None:
            yield at, "chain-opened", voter, {"chain_index": place, "reason": "ahead" if is_ahead else "wait"}
    found = Event.objects.filter(campaign=campaign)
    for at, kind, voter, data in found.values_list("at", "kind", "voter", "data"):
        if _had_happened(snapshot, kind, data):
            yield at, kind, voter, told(kind, data) | {"by": data.get("by")}


def _had_happened(snapshot: Snapshot, kind: str, data: dict[str, Any]) -> bool:
    """False for what would not fit the other tables, because it came after their moment."""
    if kind == Event.Kind.EXTENDED:
        return bool(data["steps_after"] <= snapshot.config.steps)
    if kind == Event.Kind.CHAIN_ENDED:
        return (data["chain_index"], data["step"]) in snapshot.ended
    is_of_step = kind in (Event.Kind.STEP_SUSPENDED, Event.Kind.STEP_TRIED_AGAIN)
    return not is_of_step or snapshot.has_step(data["chain_index"], data["step"])


def _of_links(campaign: Campaign, started_at: datetime) -> Iterator[Happened]:
    """Yield links that were made after those of the start, and links that were closed, each by its number."""
    links = campaign.invitations.order_by("pk").values_list("created_at", "revoked_at", "is_single_use")
    for number, (made, closed, is_single_use) in enumerate(links, start=1):
        # Those of the start are made in its transaction, a moment later; that of everybody is the first.
        if number > max(1, len(campaign.config.panelists)):
            yield made, "link-made", None, {"link": number, "people": "one" if is_single_use else "many"}
        if closed is not None:
            yield closed, "link-closed", None, {"link": number}
