"""Who a program acts for: the owner of the token in its header `Authorization: Bearer prefmh_…`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from ninja.security import HttpBearer

from prefmh_web.accounts import tokens
from prefmh_web.accounts.models import ApiToken
from prefmh_web.api.problems import Refused
from prefmh_web.transport import rate_limits

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
