"""The judges of a campaign, and the tokens of those that are programs."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Field, Router, Schema, Status

from prefmh_web.api.authentication import Bearer
from prefmh_web.api.found import campaign_for
from prefmh_web.api.problems import ProblemsOut
from prefmh_web.campaigns.lifecycle import programs
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import Campaign, Judge
from prefmh_web.campaigns.monitoring.programs import programs_of

router = Router(tags=["judges"])
_REFUSALS = {401: ProblemsOut, 404: ProblemsOut}


class JudgeOut(Schema):
    """A judge of a started campaign. The figures are those of a program, and null of any other judge."""

    place: int = Field(description="Its number, as the record has it")
    question: str
    budget: int
    source: str = Field(description="people, seat, model, local or program")
    name: str = Field(description="Of the endpoint, the model or the program; empty of people")
    has_token: bool | None = None
    held: int | None = Field(None, description="Questions that it holds now")
    skipped: int | None = None
    expired: int | None = None
    pairs: int | None = Field(None, description="Decided pairs with two or more of its answers, of the last 2,000")
    pairs_alike: int | None = Field(None, description="Of these, pairs on which all its answers were the same")


class JudgeTokenOut(Schema):
    """A judge's new token, which nothing tells again."""

    token: str


@router.get("/{int:campaign_id}/judges", response={200: list[JudgeOut], **_REFUSALS}, summary="List the judges")
def judges(request: HttpRequest, campaign_id: int) -> list[dict[str, Any]]:
    """List the judges of a started campaign; of a draft, none."""
    campaign = campaign_for(request, campaign_id)
    found = list(campaign.judges.select_related("endpoint"))
    figures = {each.judge.pk: each for each in programs_of(found)}
    told = [_told(campaign, judge) for judge in found]
    for judge, about in zip(found, told, strict=True):
        if standing := figures.get(judge.pk):
            about |= {"has_token": standing.token is not None, "held": standing.held}
            about |= {"skipped": standing.skipped, "expired": standing.expired}
            about |= {} if standing.alike is None else {"pairs": standing.alike.of, "pairs_alike": standing.alike.count}
    return told


@router.post(
    "/{int:campaign_id}/judges/{int:place}/token",
    auth=Bearer(may_run=True),
    response={201: JudgeTokenOut, **_REFUSALS, 403: ProblemsOut, 409: ProblemsOut},
    summary="Make a judge's token",
)
def make_token(request: HttpRequest, campaign_id: int, place: int) -> Status[dict[str, str]]:
    """Make the token of a judge that is a program, and withdraw the one before. It is told this once."""
    judge = _judge(request, campaign_id, place)
    return Status(201, {"token": programs.make_token(judge, _user(request))})


@router.delete(
    "/{int:campaign_id}/judges/{int:place}/token",
    auth=Bearer(may_run=True),
    response={204: None, **_REFUSALS, 403: ProblemsOut},
    summary="Withdraw a judge's token",
)
def withdraw_token(request: HttpRequest, campaign_id: int, place: int) -> Status[None]:
    """Let no program in by the token of a judge any more. Without one, nothing happens."""
    programs.withdraw_token(_judge(request, campaign_id, place), _user(request))
    return Status(204, None)


def _judge(request: HttpRequest, campaign_id: int, place: int) -> Judge:
    campaign = campaign_for(request, campaign_id, Right.RUN)
    return get_object_or_404(Judge.objects.select_related("campaign"), campaign=campaign, place=place)


def _user(request: HttpRequest) -> User:
    user = request.user
    if not isinstance(user, User):
        raise TypeError("a token belongs to a user")
    return user


def _told(campaign: Campaign, judge: Judge) -> dict[str, Any]:
    source = campaign.parsed_recipe.judges[judge.place].source.kind
    about = {"place": judge.place, "question": judge.question, "budget": judge.budget}
    return about | {"source": source, "name": judge.answered_by}
