"""The API of a program that judges: it asks for questions and answers them, with the token of its judge.

It is told the question, the two objects in the order drawn and what is shown with them. Nothing tells which of them is
the proposal: neither a number nor an address of an object stands in an answer, nor the chain, the step or other votes.
"""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from ninja import Field, Router, Schema, Status

from prefmh_web.api.authentication import JudgeBearer
from prefmh_web.api.problems import ProblemsOut
from prefmh_web.campaigns.engine import programs
from prefmh_web.campaigns.models import Judge, ProgramLease, Side, State
from prefmh_web.campaigns.started import context_of, objects, started_campaign
from prefmh_web.objects import ObjectKind
from prefmh_web.objects.kind import Look
from sampler.judges import Context, shared_context

router = Router(tags=["judge"], auth=JudgeBearer())
_REFUSALS = {401: ProblemsOut, 404: ProblemsOut, 429: ProblemsOut}
Place = Literal["first", "second"]
_SIDES: dict[Place, Side] = {"first": Side.LEFT, "second": Side.RIGHT}
# Seconds before it is worth asking again: votes of others make room at any moment; a pause lasts.
_SOON, _LATER = 2, 15


class LineOut(Schema):
    """One line that is shown with an object or above both, from a further column of the list."""

    label: str
    text: str


class ObjectOut(Schema):
    """One of the two objects."""

    text: str = Field(description="The text, or the SMILES of a molecule; empty of an image or a recording")
    picture: str = Field(description="Where the image is, from the same site and with the same token; empty of others")
    sound: str = Field(description="Where the recording is, in the same way; empty of others")
    context: list[LineOut] = Field(description="What is shown with it, and not with the other one")


class QuestionOut(Schema):
    """A question that the program holds until its time is over."""

    key: UUID = Field(description="Names the question, and makes sure that its answer counts once")
    question: str
    objects: str = Field(description="texts, markdown, molecules, images or audio")
    first: ObjectOut
    second: ObjectOut
    context: list[LineOut] = Field(description="What is shown above both objects")
    expires_at: str = Field(description="ISO 8601. An answer after it is refused")


class NextOut(Schema):
    """The next question, or none now."""

    status: str = Field(description="Of the campaign: running, paused or finished. Stop once it is finished")
    question: QuestionOut | None
    ask_again_s: int = Field(description="Where there is no question: after how many seconds to ask again")


class NextIn(Schema):
    """Who asks."""

    worker: str = Field(
        "",
        max_length=ProgramLease.MOST_WORKER,
        pattern=r"^[\w.:-]*$",
        description="Names one process of the program: while it holds a question, it gets that one again",
    )


class AnswerIn(Schema):
    """What the program chose."""

    chosen: Place


class AnswerOut(Schema):
    """What was stored. The same answer sent again gets the same."""

    key: UUID
    chosen: Place
    counted: bool = Field(description="False where the chain was ended before the answer came")


class AboutOut(Schema):
    """The judge that a token belongs to."""

    campaign: str
    status: str
    question: str
    objects: str
    budget: int = Field(description="Answers on a pair, at most")
    held: int = Field(description="Questions that the program holds now")
    most_held: int
    seconds: int = Field(description="Time to answer a question")


@router.get("", response={200: AboutOut, **_REFUSALS}, summary="See which judge this is")
def about(request: HttpRequest) -> dict[str, Any]:
    """Say which judge the token belongs to, and how its campaign stands."""
    judge = _judge(request)
    campaign = judge.campaign
    return {
        "campaign": campaign.name,
        "status": campaign.status,
        "question": judge.question,
        "objects": started_campaign(campaign).object_kind.name,
        "budget": judge.budget,
        "held": ProgramLease.held_by(judge.pk).count(),
        "most_held": programs.MOST_HELD,
        "seconds": campaign.lease_seconds,
    }


@router.post("/questions", response={200: NextOut, **_REFUSALS}, summary="Ask for a question")
def ask(request: HttpRequest, response: HttpResponse, asked: NextIn) -> dict[str, Any]:
    """Lease the next question. Without one, `question` is null: ask again after `ask_again_s`, as `Retry-After` says.

    A judge holds 64 questions at most; beyond that the answer is 429.
    """
    judge = _judge(request)
    lease = programs.take(judge.campaign, judge.pk, asked.worker)
    wait = 0 if lease else _SOON if judge.campaign.is_running else _LATER
    if wait:
        response["Retry-After"] = str(wait)
    told = None if lease is None else _question(_whole(judge, lease.key), judge)
    return {"status": judge.campaign.status, "question": told, "ask_again_s": wait}


@router.post(
    "/questions/{uuid:key}/answer",
    response={200: AnswerOut, **_REFUSALS, 409: ProblemsOut, 422: ProblemsOut},
    summary="Answer a question",
)
def answer(request: HttpRequest, key: UUID, given: AnswerIn) -> dict[str, Any]:
    """Cast the vote of a question. Send it again if no answer came: it counts once.

    Refused with 409 where the time is over, it was skipped, or it was answered with the other object before.
    """
    judge = _judge(request)
    try:
        vote = programs.answer(judge.campaign, judge.pk, key, _SIDES[given.chosen])
    except ProgramLease.DoesNotExist as error:
        raise Http404 from error
    return {"key": key, "chosen": given.chosen, "counted": vote.counted}


@router.post(
    "/questions/{uuid:key}/skip", response={204: None, **_REFUSALS, 409: ProblemsOut}, summary="Skip a question"
)
def skip(request: HttpRequest, key: UUID) -> Status[None]:
    """Give a question back. It comes again after others: only the answer of this judge can decide the step."""
    try:
        programs.skip(_judge(request).pk, key)
    except ProgramLease.DoesNotExist as error:
        raise Http404 from error
    return Status(204, None)


@router.get("/questions/{uuid:key}/{position}", response={200: None, **_REFUSALS}, summary="Get the file of an object")
def picture(request: HttpRequest, key: UUID, position: Place) -> HttpResponse:
    """Send the file of an object: an image, the drawing of a molecule, or a recording. Texts have none."""
    lease = _whole(_judge(request), key)
    kind = started_campaign(lease.judge.campaign).object_kind
    try:
        file = kind.media(objects.stored(_standing(lease, position)), Look(raster=True))
    except FileNotFoundError as error:
        raise Http404 from error
    if file is None:
        raise Http404
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    return HttpResponse(file.body, content_type=file.media_type, headers=headers)


def _judge(request: HttpRequest) -> Judge:
    # What `JudgeBearer` has found; ninja puts it there.
    judge: Judge = request.auth  # type: ignore[attr-defined]  # django-ninja sets it: what the token check returned
    return judge


def _whole(judge: Judge, key: UUID) -> ProgramLease:
    """Return a question of a judge's, with its objects; 404 where it is none of theirs."""
    whole = ProgramLease.objects.select_related(
        "judge__campaign", "comparison__current__campaign", "comparison__proposal__campaign"
    )
    return get_object_or_404(whole, key=key, judge=judge)


def _standing(lease: ProgramLease, place: Place) -> State:
    return lease.first if place == "first" else lease.second


def _question(lease: ProgramLease, judge: Judge) -> dict[str, Any]:
    started = started_campaign(judge.campaign)
    shown = shared_context(context_of(lease.first, started.recipe), context_of(lease.second, started.recipe))
    of_first, of_second = shown.own
    return {
        "key": lease.key,
        "question": judge.question,
        "objects": started.object_kind.name,
        "first": _object(lease, "first", started.object_kind, of_first),
        "second": _object(lease, "second", started.object_kind, of_second),
        "context": _lines(shown.shared),
        "expires_at": lease.expires_at.isoformat(timespec="milliseconds"),
    }


def _object(lease: ProgramLease, place: Place, kind: ObjectKind, context: Context) -> dict[str, Any]:
    # Named by the question: an object's own number would tell which of the two is the proposal.
    address, found = reverse("api:picture", args=[lease.key, place]), {"text": "", "picture": "", "sound": ""}
    if kind.medium == "words":
        found["text"] = kind.exhibit(objects.stored(_standing(lease, place)), sees_pictures=False).text
    else:
        found[kind.medium] = address
    return {**found, "context": _lines(context)}


def _lines(context: Context) -> list[dict[str, str]]:
    return [{"label": line.label, "text": line.text} for line in context]
