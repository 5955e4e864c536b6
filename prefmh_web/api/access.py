"""Who a program acts for, by the token in its header `Authorization: Bearer prefmh_…`, and how it is refused.

Whatever was wrong, it is told so in one shape: an object with a list of problems.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import RawPostDataException
from django.shortcuts import get_object_or_404
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from ninja.security import HttpBearer

from prefmh_web.accounts.models import ApiToken
from prefmh_web.campaigns.lifecycle import access
from prefmh_web.campaigns.lifecycle.access import Right
from prefmh_web.campaigns.models import NotPossible
from prefmh_web.config_yaml import Problem, SetupError
from prefmh_web.transport import rate_limits

_SIGN_IN = "Send a token: “Authorization: Bearer prefmh_…”. Researchers create tokens on the page “Tokens”."


class ProblemsOut(Schema):
    """Why a request was refused. Nothing was changed."""

    problems: list[Problem]


REFUSALS = dict.fromkeys((401, 403, 404, 409, 422, 429), ProblemsOut)
"""What any address may answer, for its OpenAPI document."""


_TOLD: tuple[type[Exception], ...] = (
    *(NotPossible, SetupError, ValidationError, Http404, AuthenticationError, HttpError),
    *(RawPostDataException, rate_limits.TooMany),
)


def tell_on(api: NinjaAPI) -> None:
    """Make an API answer every problem in the one shape."""

    def answer(request: HttpRequest, error: Any) -> HttpResponse:
        status, told, headers = _told(error)
        problems = [Problem(message=told)] if isinstance(told, str) else told
        response = api.create_response(request, ProblemsOut(problems=problems), status=status)
        for name, value in headers.items():
            response[name] = value
        return response

    for kind in _TOLD:
        api.add_exception_handler(kind, answer)


def _told(error: Any) -> tuple[int, str | list[Problem], dict[str, str]]:
    """Return the status of an error, what was wrong, and the headers that go with it."""
    match error:
        case NotPossible():
            return 409, str(error), {}
        case SetupError():
            return 422, error.problems, {}
        case ValidationError():
            found = [(each["msg"], ".".join(map(str, each["loc"][1:]))) for each in error.errors]
            return 422, [Problem(message=message, path=path) for message, path in found], {}
        case Http404():
            return 404, "There is no such thing, or it is not yours to see.", {}
        case AuthenticationError():
            return 401, _SIGN_IN, {"WWW-Authenticate": "Bearer"}
        case RawPostDataException():
            return 415, "Send JSON, not a form: “Content-Type: application/json”.", {}
        case rate_limits.TooMany():
            message = f"Too many requests. Try again in {error.retry_after} s."
            return 429, message, {"Retry-After": str(error.retry_after)}
    return error.status_code, str(error), {}


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
            HttpError: it may not do this.
            TooMany: it was used too often.
        """
        found = ApiToken.shown(token)
        if found is None:
            rate_limits.spend("api-refused", rate_limits.by_address(request))
            return None
        rate_limits.spend("api", found.pk)
        if self._may_run and not found.may_run:
            raise HttpError(403, "This token may only read. Create one with the scope “run” for changes.")
        request.user = found.owner
        return found


def for_whoever_may_ask(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Let a view be seen by people who are signed in, and by programs with a token of any scope."""
    for_people = login_required(view)

    @wraps(view, assigned=())
    def seen(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        shown = request.headers.get("Authorization", "")
        is_let_in = shown.startswith(_SCHEME) and ApiToken.shown(shown.removeprefix(_SCHEME))
        return view(request, *args, **kwargs) if is_let_in else for_people(request, *args, **kwargs)

    return seen


async def may_upload(headers: dict[bytes, bytes]) -> bool:
    """Say whether a request with these headers may have the body of an uploaded setup."""
    shown = headers.get(b"authorization", b"").decode("latin1")
    if not shown.startswith(_SCHEME):
        return False
    found: Any = await sync_to_async(ApiToken.shown)(shown.removeprefix(_SCHEME))
    return found is not None and found.may_run


def campaign_for(request: HttpRequest, number: int, right: Right = Right.WATCH) -> access.SeenCampaign:
    """Return a campaign in which the token's owner has this right; 404 for everybody else."""
    return get_object_or_404(access.campaigns_for(request.user, right).select_related("owner"), pk=number)
