"""The language of voters' pages: that of the campaign, whatever their browser asks for, so that all judge by the same
words.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils import translation

from prefmh_web.annotate.admission import invitation_by
from prefmh_web.campaigns.models import Campaign

View = Callable[..., HttpResponseBase]


def spoken_in(campaign: Campaign) -> AbstractContextManager[None]:
    """Speak the language of a campaign within the block."""
    return translation.override(campaign.language)


def spoken_by_link(view: View) -> View:
    """Let a view speak the language of the campaign whose link the address names by its token."""

    @wraps(view)
    def speaking(request: HttpRequest, token: str, **rest: object) -> HttpResponseBase:
        invitation = invitation_by(token)
        if invitation is None:
            return view(request, token, **rest)
        with spoken_in(invitation.campaign):
            return view(request, token, **rest)

    return speaking
