"""What a program is told when something was wrong: always an object with a list of problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import RawPostDataException
from ninja import NinjaAPI, Schema
from ninja.errors import AuthenticationError, HttpError, ValidationError
from pydantic import Field

from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.setup.problems import SetupError
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
