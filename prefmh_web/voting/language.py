"""The language of voters' pages: that of the campaign, whatever their browser asks for, so that all judge by the same
words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation

from prefmh_web.voting import admission

View = Callable[..., HttpResponseBase]


def spoken_by_link(view: View) -> View:
    """Let a view speak the language of the campaign whose link the address names by its token."""

    @wraps(view)
    def speaking(request: HttpRequest, token: str, **rest: object) -> HttpResponseBase:
        invitation = admission.invitation_by(token)
        if invitation is None:
            return view(request, token, **rest)
        with translation.override(invitation.campaign.config.language):
            return view(request, token, **rest)

    return speaking
