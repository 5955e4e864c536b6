"""The record of a campaign: its decided steps, votes and samples, a page at a time, and all of it as a ZIP."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from django.http import Http404, HttpRequest, StreamingHttpResponse
from ninja import Field, Path, Query, Router, Schema
from ninja.errors import HttpError

from prefmh_web.api.access import REFUSALS, campaign_for
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.record import export
from prefmh_web.campaigns.record.export import results_now
from prefmh_web.campaigns.record.rows import Snapshot, StepRange
from prefmh_web.participants.people import Person, people_after
from prefmh_web.transport.bodies import stream
from sampler import tables

router = Router(tags=["record"])
_MOST = 500
_TABLES = {table.name: table for table in (tables.STEPS, tables.VOTES, tables.SAMPLES)}


class PageIn(Schema):
    """Which steps are wanted."""

    cursor: str = Field("", pattern=r"^(\d{1,9}\.\d{1,9})?$", description="Of the page before; empty for the first one")
    chain_index: int | None = Field(None, ge=0, lt=10**9, description="Only of this chain")
    limit: int = Field(100, ge=1, le=_MOST, description="Steps of a page")


class PageOut(Schema):
    """Rows as the table of the same name has them in the record, with the same columns."""

    rows: list[dict[str, Any]]
    cursor: str = Field(description="Send it with the next request, also once `is_last` is true: more may come")
    is_last: bool = Field(description="True when nothing more was decided by now")


class ResultsOut(Schema):
    """What was found."""

    verdict: str = Field(description="Whether the chains show a sign that they have not converged")
    because: str
    advice: str = Field(description="What to do; empty where nothing is to be done")
    r_hat: float | None
    bulk_ess: float | None
    tail_ess: float | None
    draws: int = Field(description="Decided steps of the sampling phase, of all chains")
    length_changes: int = Field(description="How often the length was changed after the start")
    rows: list[dict[str, Any]] = Field(description="As results.csv has them, with the same columns")


class PersonOut(Schema):
    """Somebody who votes, by the number that the record has. Ids of platforms are not told."""

    voter: int
    outcome: str | None = Field(description="How their part has ended; null while it goes on")
    is_online: bool
    votes: int
    first: int = Field(description="Votes for the first of the two objects")
    skips: int
    median_ms: float | None = Field(description="Median time of a vote in milliseconds, without hidden time")
    checks_passed: int
    checks_failed: int


class PeopleIn(Schema):
    """Which people are wanted."""

    after: int = Field(0, ge=0, lt=2**63, description="The cursor of the page before")
    limit: int = Field(100, ge=1, le=_MOST, description="People of a page")


class PeopleOut(Schema):
    """A page of people."""

    people: list[PersonOut]
    cursor: int | None = Field(description="Send it as `after` for the next page; null on the last one")


@router.get(
    "/{int:campaign_id}/record.zip",
    response={200: None, **REFUSALS},
    summary="Download the record",
)
def record(request: HttpRequest, campaign_id: int) -> StreamingHttpResponse:
    """Download the whole record, as *Download all* on the tab *Record* does."""
    campaign = _started(request, campaign_id)
    response = stream(lambda: export.archive(campaign), "application/zip")
    response["Content-Disposition"] = f'attachment; filename="campaign-{campaign.pk}.zip"'
    return response


@router.get("/{int:campaign_id}/people", response={200: PeopleOut, **REFUSALS}, summary="List the people who vote")
def people(request: HttpRequest, campaign_id: int, wanted: Query[PeopleIn]) -> dict[str, Any]:
    """List the people who vote, in the order in which they joined."""
    found = people_after(campaign_for(request, campaign_id, Right.RUN), wanted.after, wanted.limit + 1)
    shown = found[: wanted.limit]
    return {"people": [_told(each) for each in shown], "cursor": shown[-1].number if len(found) > len(shown) else None}


@router.get("/{int:campaign_id}/results", response={200: ResultsOut, **REFUSALS}, summary="What was found")
def results(request: HttpRequest, campaign_id: int) -> dict[str, Any]:
    """Return the objects with their shares of the sampling steps, and the verdict on the chains, as of now."""
    return results_now(_started(request, campaign_id)).as_json()


@router.get("/{int:campaign_id}/{table}", response={200: PageOut, **REFUSALS}, summary="Steps, votes or samples")
def page(
    request: HttpRequest,
    campaign_id: int,
    table: Annotated[str, Path(description="One of steps, votes and samples")],
    wanted: Query[PageIn],
) -> dict[str, Any]:
    """Return rows of decided steps, chain by chain and in the order of the steps.

    To follow a running campaign, ask for each chain with `chain_index` and the last cursor. The uniform of a step that
    is still open is never told.
    """
    if table not in _TABLES:
        raise Http404
    snapshot = Snapshot.now(_started(request, campaign_id))
    step_range, is_last = _step_range(snapshot, wanted)
    columns, told = _TABLES[table], () if step_range is None else export.TABLES[f"{table}.csv"](snapshot.of(step_range))
    rows = [columns.values(row) for row in islice(told, 1, None)]
    cursor = wanted.cursor if step_range is None else f"{step_range.chain}.{step_range.last}"
    return {"rows": rows, "cursor": cursor, "is_last": is_last}


def _step_range(snapshot: Snapshot, wanted: PageIn) -> tuple[StepRange | None, bool]:
    """Return the next steps, and whether they are the last ones; None where there are no more.

    Raises:
        HttpError: the campaign has no such chain, or the cursor is of another one.
    """
    chain, after = _position(wanted)
    if wanted.chain_index is not None and wanted.chain_index not in snapshot.steps:
        raise HttpError(
            422, f"chain_index: there is no chain {wanted.chain_index} yet; there are {len(snapshot.steps)}."
        )
    if wanted.chain_index is not None and chain != wanted.chain_index:
        raise HttpError(422, "cursor: it is of another chain; leave it out, or ask for that one.")
    open_to = sorted(index for index in snapshot.steps if index >= chain and wanted.chain_index in (None, index))
    ahead = [(index, after if index == chain else -1) for index in open_to]
    left = [(index, done) for index, done in ahead if done < snapshot.steps[index]]
    if not left:
        return None, True
    index, done = left[0]
    last = min(done + wanted.limit, snapshot.steps[index])
    return StepRange(index, done, last), len(left) == 1 and last == snapshot.steps[index]


def _position(wanted: PageIn) -> tuple[int, int]:
    """Return the chain and the last step that were told; -1 before the first page: samples begin with step 0."""
    if not wanted.cursor:
        return wanted.chain_index or 0, -1
    chain, _, step = wanted.cursor.partition(".")
    return int(chain), int(step)


def _started(request: HttpRequest, campaign_id: int) -> Campaign:
    campaign = campaign_for(request, campaign_id)
    if campaign.is_draft:
        raise HttpError(409, "A draft has no record yet. Start it first.")
    return campaign


def _told(person: Person) -> dict[str, Any]:
    figures = {name: getattr(person, name) for name in PersonOut.model_fields if name not in ("voter", "outcome")}
    return {"voter": person.number, "outcome": person.outcome, **figures}
