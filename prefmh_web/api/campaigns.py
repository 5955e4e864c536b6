"""Campaigns: list, create and change by their configuration, start, pause, resume, extend."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryFile
from typing import IO, Annotated, Any, Literal

from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.base import File
from django.db.models import Sum
from django.http import HttpRequest, StreamingHttpResponse
from ninja import Field, Query, Router, Schema, Status
from ninja.errors import HttpError

from prefmh_web import config_files, drafts
from prefmh_web.accounts.models import is_researcher
from prefmh_web.api.access import REFUSALS, Bearer, campaign_for
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import access, changes
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.results import figures_of
from prefmh_web.client import CampaignOut, Figures
from prefmh_web.config import CampaignConfig, json_schema
from prefmh_web.config_files import Tell
from prefmh_web.config_yaml import Problem
from prefmh_web.transport.bodies import stream

router = Router(tags=["campaigns"])
_runs = Bearer(may_run=True)
_PIECE = 2**20
# PostgreSQL keeps no NUL.
_Key = Annotated[str, Field(max_length=100, pattern=r"^[^\x00]*$")]
_AT_ONCE = 100
_ABOUT_CONFIG = {
    "requestBody": {
        "required": True,
        "description": "campaign.yaml, the same as JSON, or a ZIP of it with the uploaded file",
        "content": {
            "application/yaml": {"schema": {"type": "string"}},
            "application/json": {"schema": {"type": "object"}},
            "application/zip": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


class CampaignStatusOut(CampaignOut):
    """One campaign with its figures."""

    figures: Figures | None = Field(description="null before the start")


class CreatedOut(CampaignOut):
    """A campaign that a request has created or, under its key, an earlier one."""

    created: bool = Field(description="False where the key had a campaign already")
    warnings: list[str] = Field(description="What a start would refuse as things stand")


class CheckedOut(Schema):
    """A configuration that could be created."""

    warnings: list[str] = Field(description="What a start would refuse as things stand, and what was left out of it")


class CampaignsIn(Schema):
    """Which campaigns are wanted."""

    after: Annotated[int | None, Field(description="The cursor of the page before")] = None
    limit: Annotated[int, Field(ge=1, le=_AT_ONCE)] = _AT_ONCE


class CampaignsOut(Schema):
    """A page of campaigns, the newest first."""

    campaigns: list[CampaignOut]
    cursor: int | None = Field(description="Send it as `after` for the next page; null on the last one")


class ActionIn(Schema):
    """What is to be done."""

    action: Literal["start", "pause", "resume", "extend"]
    steps: int = Field(0, ge=0, le=10**6, description="Of extend: so many more for each chain")


@router.get("", response={200: CampaignsOut, **REFUSALS}, summary="List campaigns")
def campaigns(request: HttpRequest, wanted: Query[CampaignsIn]) -> dict[str, Any]:
    """List the campaigns that the token's owner can see."""
    found = access.campaigns_for(request.user).select_related("owner").order_by("-pk")
    if wanted.after is not None:
        found = found.filter(pk__lt=wanted.after)
    page = list(found[: wanted.limit + 1])
    is_last, shown = len(page) <= wanted.limit, page[: wanted.limit]
    return {"campaigns": [summary_of(each) for each in shown], "cursor": None if is_last else shown[-1].pk}


@router.post(
    "",
    auth=_runs,
    response={201: CreatedOut, 200: CreatedOut | CheckedOut, **REFUSALS},
    openapi_extra=_ABOUT_CONFIG,
    summary="Create a campaign",
)
def create(
    request: HttpRequest, once: _Key = "", *, only_check: bool = False
) -> Status[dict[str, Any]] | Status[CheckedOut]:
    """Create a draft from a configuration, which is the body of the request.

    With a key in `once`, at most one campaign is created under it: a request that was sent again changes nothing. With
    `only_check`, nothing is created: the answer has the warnings, or what is wrong.
    """
    owner = _researcher(request)
    if only_check:
        missing: list[Problem] = []
        with _sent(request, owner, missing.append) as (config, _):
            return Status(200, CheckedOut(warnings=[*map(str, missing), *drafts.warnings(config, owner)]))
    with _sent(request, owner) as (config, uploaded):
        warnings = list(drafts.warnings(config, owner))
        is_new = not (once and Campaign.objects.filter(owner=owner, creation_key=once).exists())
        campaign = drafts.create(config, owner, None if uploaded is None else File(uploaded), key=once)
    return Status(201 if is_new else 200, {**summary_of(campaign), "created": is_new, "warnings": warnings})


@router.get("/schema", response={200: dict[str, Any], **REFUSALS}, summary="The schema of a setup")
def schema(request: HttpRequest) -> dict[str, Any]:
    """Return the JSON Schema of campaign.yaml."""
    return json_schema()


@router.get("/{int:campaign_id}", response={200: CampaignStatusOut, **REFUSALS}, summary="A campaign")
def campaign(request: HttpRequest, campaign_id: int) -> dict[str, Any]:
    """Return a campaign as it stands."""
    found = campaign_for(request, campaign_id)
    figures = None if found.is_draft else figures_of(found)
    return summary_of(found) | {
        "figures": figures
        and {"accepted": figures["acceptance"].accepted, "differed": figures["acceptance"].differed}
        | {name: figures[name] for name in ("samples", "votes", "late", "people")}
    }


@router.get("/{int:campaign_id}/config", response={200: dict[str, Any], **REFUSALS}, summary="The configuration")
def config(request: HttpRequest, campaign_id: int) -> dict[str, Any]:
    """Return the configuration, to its owner whole; to others without what is hidden, which `hidden` names by path."""
    found = campaign_for(request, campaign_id)
    assert isinstance(request.user, User)
    if access.right_in(found, request.user) < Right.OWN:
        return found.public_config
    return config_files.config_of(found).model_dump(mode="json", exclude_none=True)


@router.put(
    "/{int:campaign_id}/config",
    auth=_runs,
    response={200: CampaignOut, **REFUSALS},
    openapi_extra=_ABOUT_CONFIG,
    summary="Change the configuration",
)
def change(request: HttpRequest, campaign_id: int) -> dict[str, Any]:
    """Change the configuration of a draft, or of a started campaign what is not fixed. The body is the whole of it."""
    found, by = campaign_for(request, campaign_id, Right.OWN), _researcher(request)
    with _sent(request, found.owner, kept=found.typed_config) as (wanted, uploaded):
        changes.apply(found, wanted, by, None if uploaded is None else File(uploaded))
    return _afterwards(found)


@router.get("/{int:campaign_id}/setup", response={200: None, **REFUSALS}, summary="Download the setup")
def setup(request: HttpRequest, campaign_id: int) -> StreamingHttpResponse:
    """Download the setup: campaign.yaml or, where objects were uploaded, a ZIP with the file."""
    ending, pieces = config_files.write(campaign_for(request, campaign_id, Right.OWN))
    return stream(lambda: pieces, "application/zip" if ending == ".zip" else "application/yaml")


@router.post(
    "/{int:campaign_id}",
    auth=_runs,
    response={200: CampaignOut, **REFUSALS},
    summary="Start, pause, resume or extend a campaign",
)
def act(request: HttpRequest, campaign_id: int, wanted: ActionIn) -> dict[str, Any]:
    """Do what the button of the same name does.

    Where models are tested at a start, `starting` says how far that is: ask again until it is empty. A finished
    campaign that is extended is paused until it is resumed.
    """
    found = campaign_for(request, campaign_id, Right.OWN if wanted.action == "extend" else Right.RUN)
    if wanted.action == "extend":
        changes.extend(found, wanted.steps, _researcher(request))
    else:
        {"start": lifecycle.request_start, "pause": lifecycle.pause, "resume": lifecycle.resume}[wanted.action](found)
    return _afterwards(found)


def summary_of(campaign: Campaign) -> dict[str, Any]:
    """Return what a program sees of a campaign."""
    config = campaign.config
    return {
        "number": campaign.pk,
        "owner": campaign.owner.get_username(),
        "objects": config.space.objects,
        "chains": campaign.chains.count() or config.chains,
        "steps": config.steps,
        "steps_decided": campaign.chains.aggregate(all=Sum("step"))["all"] or 0,
        "trouble": campaign.start_trouble or campaign.paused_because,
        "starting": campaign.start_progress if campaign.starting_since else "",
        **{name: getattr(campaign, name) for name in ("name", "status", "created_at", "started_at", "finished_at")},
    }


def _afterwards(campaign: Campaign) -> dict[str, Any]:
    campaign.refresh_from_db()
    return summary_of(campaign)


def _researcher(request: HttpRequest) -> User:
    user = request.user
    if not (isinstance(user, User) and is_researcher(user)):
        raise HttpError(403, "This account may not create campaigns. Ask the person who runs the server.")
    return user


@contextmanager
def _sent(
    request: HttpRequest, owner: User, tell: Tell | None = None, kept: CampaignConfig | None = None
) -> Iterator[tuple[CampaignConfig, IO[bytes] | None]]:
    """Yield the configuration that a request has as its body, and the file of its objects if it has one; see
    `config_files.opened`.
    """
    with TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as body:
        while piece := request.read(_PIECE):
            body.write(piece)
        body.seek(0)
        with config_files.opened(body, tell=tell, owner=owner, kept=kept) as found:
            yield found
