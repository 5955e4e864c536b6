"""Panels: campaigns whose people are named, each with a link of their own."""

from __future__ import annotations

from django.contrib.sessions.backends.db import SessionStore

from prefmh_web.annotate import admission
from prefmh_web.campaigns.models import Annotator, Campaign, Invitation
from tests.support.stack import make_campaign, make_recipe


def panel_judges(panelists: int, *questions: str, names: tuple[str, ...] = ()) -> list[dict]:
    """Return the judges of a panel; without names, each has their number for one."""
    return [
        {"question": question, "budget": 1, "source": {"kind": "panelist", "name": name}}
        for question in questions or ("Which is darker?",)
        for name in names or map(str, range(1, panelists + 1))
    ]


def panel_campaign(owner, panelists: int = 3, *, names: tuple[str, ...] = (), recipe=None, **options) -> Campaign:
    """Return a started campaign of a panel; `recipe` changes that of `make_recipe`."""
    described = make_recipe(**{"judges": panel_judges(panelists, names=names)} | (recipe or {}))
    return make_campaign(owner, recipe=described, **options)


def link_of(campaign: Campaign, panelist: int) -> Invitation:
    """Return the invitation of a panelist."""
    return campaign.invitations.get(panelist=panelist)


def sit_down(campaign: Campaign, panelist: int) -> Annotator:
    """Open the link of a panelist and press the button; return who that is, as an engine reads them."""
    person = admission.join(SessionStore(), link_of(campaign, panelist))
    return Annotator.objects.select_related("campaign").get(pk=person.pk)
