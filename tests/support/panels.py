"""Panels: campaigns whose seats are people, each with a link of their own."""

from __future__ import annotations

from django.contrib.sessions.backends.db import SessionStore

from prefmh_web.annotate import admission
from prefmh_web.campaigns.models import Annotator, Campaign, Invitation
from tests.support.stack import make_campaign, make_recipe


def panel_judges(seats: int, *questions: str) -> list[dict]:
    """Return the judges of a panel."""
    return [
        {"question": question, "budget": 1, "source": {"kind": "seat", "seat": seat}}
        for question in questions or ("Which is darker?",)
        for seat in range(1, seats + 1)
    ]


def panel_campaign(owner, seats: int = 3, *, names: tuple[str, ...] = (), recipe=None, **options) -> Campaign:
    """Return a started campaign of a panel; `recipe` changes that of `make_recipe`."""
    described = make_recipe(**{"judges": panel_judges(seats)} | (recipe or {}))
    return make_campaign(owner, recipe=described, seats=names, **options)


def link_of(campaign: Campaign, seat: int) -> Invitation:
    """Return the invitation of a seat."""
    return campaign.invitations.get(seat=seat)


def sit_down(campaign: Campaign, seat: int) -> Annotator:
    """Open the link of a seat and press the button; return who that is, as an engine reads them."""
    person = admission.join(SessionStore(), link_of(campaign, seat))
    return Annotator.objects.select_related("campaign").get(pk=person.pk)
