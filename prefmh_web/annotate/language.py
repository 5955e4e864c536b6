"""The language of voters' pages: that of the campaign, whatever their browser asks for, so that all judge by the same
words. Where a campaign offers several, each person judges in one of them, which they choose on the first page.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import wraps

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils import translation
from django.utils.translation.trans_real import parse_accept_lang_header

from prefmh_web.annotate import admission
from prefmh_web.campaigns.models import Annotator, Campaign, Invitation, Vote
from prefmh_web.campaigns.started import language_of
from prefmh_web.settings.languages import local_name

View = Callable[..., HttpResponseBase]
COOKIE = "prefmh_language"
"""What somebody has chosen who has not pressed *Start* yet."""


def spoken_to(annotator: Annotator) -> AbstractContextManager[None]:
    """Speak the language in which somebody judges within the block."""
    return translation.override(language_of(annotator))


def spoken_by_link(view: View) -> View:
    """Let a view speak the language of whoever opens the link that the address names by its token."""

    @wraps(view)
    def speaking(request: HttpRequest, token: str, **rest: object) -> HttpResponseBase:
        invitation = admission.invitation_by(token)
        if invitation is None:
            return view(request, token, **rest)
        with translation.override(_language_for(request, invitation.campaign)):
            return view(request, token, **rest)

    return speaking


def spoken(campaign: Campaign) -> str:
    """Return the language of the page that is being made: one of the campaign's."""
    now = translation.get_language()
    return now if now in campaign.languages else campaign.language


def _language_for(request: HttpRequest, campaign: Campaign) -> str:
    """Return that of a person who has joined; of others what they have chosen, else what their browser asks for."""
    if not campaign.more_languages:
        return campaign.language
    if annotator := admission.who_joined(request.session, campaign.pk):
        return language_of(annotator)
    chosen = request.COOKIES.get(COOKIE, "")
    return chosen if chosen in campaign.languages else _asked_for(request, campaign)


def _asked_for(request: HttpRequest, campaign: Campaign) -> str:
    for asked, _weight in parse_accept_lang_header(request.headers.get("Accept-Language", "").lower()):
        # de-at is answered in de.
        for offered in campaign.languages:
            if asked == offered.lower() or asked.startswith(f"{offered.lower()}-"):
                return offered
    return campaign.language


def offered(campaign: Campaign, annotator: Annotator | None) -> list[dict[str, object]]:
    """Return the languages among which somebody may choose now; none where there is no choice, or no more."""
    if not campaign.more_languages or (annotator and _has_voted(annotator)):
        return []
    return [
        {"code": code, "name": local_name(code), "is_chosen": code == spoken(campaign)} for code in campaign.languages
    ]


def choose(request: HttpRequest, invitation: Invitation, language: str) -> HttpResponse:
    """Take the choice of a language, and show the first page again. Where it is none of the campaign's, or the person
    has voted, nothing changes.
    """
    response = redirect("annotate:welcome", token=invitation.token)
    if language not in invitation.campaign.languages:
        return response
    if annotator := admission.who_joined(request.session, invitation.campaign_id):
        _store(annotator, language)
    response.set_cookie(
        COOKIE,
        language,
        path=response.url,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


def _store(annotator: Annotator, language: str) -> None:
    with transaction.atomic():
        # Locked, as by a vote: the language is that of all votes of the person, for it is part of the judge.
        Annotator.objects.select_for_update(no_key=True).get(pk=annotator.pk)
        if not _has_voted(annotator):
            Annotator.objects.filter(pk=annotator.pk).update(language=language)


def _has_voted(annotator: Annotator) -> bool:
    return Vote.objects.filter(annotator=annotator).exists()
