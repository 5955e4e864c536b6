"""Who a program acts for, by the token in its header `Authorization: Bearer prefmh_…`, and how it is refused.

Whatever was wrong, it is told so in one shape: an object with a list of problems.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Annotated, Any

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import RawPostDataException
from django.shortcuts import get_object_or_404
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.security import HttpBearer
from pydantic import Field

from prefmh_web.accounts import tokens
from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import NotPossible
from prefmh_web.setup.fitting import SetupError
from prefmh_web.transport import rate_limits

_UNREADABLE = "This version of prefmh cannot read the campaign’s setup. Its page says why."
_SIGN_IN = "Send a token: “Authorization: Bearer prefmh_…”. Researchers create tokens on the page “Tokens”."


class ProblemOut(Schema):
    """One thing that was wrong."""

    message: str = Field(description="A sentence that says what is wrong and what would be accepted")
    path: Annotated[str, Field(description="The field, such as judges.0.votes; empty for the whole")] = ""
    line: Annotated[int | None, Field(description="In campaign.yaml, from 1")] = None
    column: Annotated[int | None, Field(description="In that line, from 1")] = None


class ProblemsOut(Schema):
    """Why a request was refused. Nothing was changed."""

    problems: list[ProblemOut]


REFUSALS = dict.fromkeys((401, 403, 404, 409, 422, 429), ProblemsOut)
"""What any address may answer, for its OpenAPI document."""


class Refused(Exception):  # noqa: N818 - reads as the sentence it starts
    """A request that is answered with this status and sentence.

    Args:
        status: of HTTP.
        message: what is wrong and what to do.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def tell_on(api: NinjaAPI) -> None:
    """Make an API answer every problem in the one shape."""

    def answer(request: HttpRequest, problems: Sequence[ProblemOut], status: int) -> HttpResponse:
        return api.create_response(request, ProblemsOut(problems=list(problems)), status=status)

    @api.exception_handler(Refused)
    def refused(request: HttpRequest, reason: Refused) -> HttpResponse:
        return answer(request, [ProblemOut(message=str(reason))], reason.status)

    @api.exception_handler(NotPossible)
    def not_possible(request: HttpRequest, reason: NotPossible) -> HttpResponse:
        return answer(request, [ProblemOut(message=str(reason))], 409)

    @api.exception_handler(SetupError)
    def no_setup(request: HttpRequest, error: SetupError) -> HttpResponse:
        return answer(request, [ProblemOut(**vars(each)) for each in error.problems], 422)

    @api.exception_handler(ValidationError)
    def invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
        found = [ProblemOut(message=each["msg"], path=".".join(map(str, each["loc"][1:]))) for each in error.errors]
        return answer(request, found, 422)

    @api.exception_handler(Http404)
    def missing(request: HttpRequest, _error: Http404) -> HttpResponse:
        return answer(request, [ProblemOut(message="There is no such thing, or it is not yours to see.")], 404)

    @api.exception_handler(AuthenticationError)
    def unknown(request: HttpRequest, _error: AuthenticationError) -> HttpResponse:
        response = answer(request, [ProblemOut(message=_SIGN_IN)], 401)
        response["WWW-Authenticate"] = "Bearer"
        return response

    @api.exception_handler(RawPostDataException)
    def a_form(request: HttpRequest, _error: RawPostDataException) -> HttpResponse:
        return answer(request, [ProblemOut(message="Send JSON, not a form: “Content-Type: application/json”.")], 415)

    @api.exception_handler(HttpError)
    def other(request: HttpRequest, error: HttpError) -> HttpResponse:
        return answer(request, [ProblemOut(message=str(error))], error.status_code)

    @api.exception_handler(rate_limits.TooMany)
    def too_many(request: HttpRequest, reason: rate_limits.TooMany) -> HttpResponse:
        message = f"Too many requests. Try again in {reason.retry_after} s."
        response = answer(request, [ProblemOut(message=message)], 429)
        response["Retry-After"] = str(reason.retry_after)
        return response


_SCHEME = "Bearer "


class Bearer(HttpBearer):
    """Lets a program in by a token, and counts its requests.

    Args:
        may_run: whether the token must be one that may change campaigns.
    """

    def __init__(self, *, may_run: bool = False) -> None:
        super().__init__()
        self._may_run = may_run

    def authenticate(self, request: HttpRequest, token: str) -> ApiToken | None:
        """Return the token; None if it lets nobody in.

        Raises:
            Refused: it may not do this.
            TooMany: it was used too often.
        """
        found = tokens.token_shown(token)
        if found is None:
            rate_limits.spend("api-refused", rate_limits.by_address(request))
            return None
        rate_limits.spend("api", found.pk)
        if self._may_run and not found.may_run:
            raise Refused(403, "This token may only read. Create one with the scope “run” for changes.")
        request.user = found.owner
        return found


def for_whoever_may_ask(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let a view be seen by people who are signed in, and by programs with a token of any scope."""
    for_people = login_required(view)

    @wraps(view, assigned=())
    def seen(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        shown = request.headers.get("Authorization", "")
        is_let_in = shown.startswith(_SCHEME) and tokens.token_shown(shown.removeprefix(_SCHEME))
        return view(request, *args, **kwargs) if is_let_in else for_people(request, *args, **kwargs)

    return seen


async def may_upload(headers: dict[bytes, bytes]) -> bool:
    """Say whether a request with these headers may have the body of an uploaded setup."""
    shown = headers.get(b"authorization", b"").decode("latin1")
    if not shown.startswith(_SCHEME):
        return False
    found: Any = await sync_to_async(tokens.token_shown)(shown.removeprefix(_SCHEME))
    return found is not None and found.may_run


def campaign_for(request: HttpRequest, number: int, right: Right = Right.WATCH) -> access.SeenCampaign:
    """Return a campaign in which the token's owner has this right; 404 for everybody else."""
    return get_object_or_404(access.campaigns_for(request.user, right).select_related("owner"), pk=number)
