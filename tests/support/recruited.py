"""Campaigns whose people are sent by a platform."""

from __future__ import annotations

import asyncio
import csv
import io

from django.test import Client
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import recruiting
from tests.support import copies
from tests.support.stack import invitation_path, make_draft, wait_until_idle

CODES = {"completed": "C0MPLETE", "nothing-left": "N0THING"}
WAY_BACK = "https://app.prolific.com/submissions/complete?cc={code}"


def recruited_campaign(owner, recruiter: str = "prolific", excluded: tuple[Campaign, ...] = (), **options) -> Campaign:
    """Return a started campaign; of `options`, those of a recruitment set it up."""
    names = ("parameter", "votes_each", "consent", "codes", "pay", "way_back", "protocol")
    names += ("places", "most_minutes", "absent_minutes", "most_a_minute", "budget", "place_pay", "currency")
    names += ("most_active_minutes",)
    fields = {"recruiter": recruiter, "codes": CODES, "way_back": WAY_BACK}
    fields |= {name: options.pop(name) for name in names if name in options}

    def make() -> Campaign:
        campaign = make_draft(owner, **options)
        recruiting.set_up(campaign, fields, excluded)
        lifecycle.start(campaign)
        wait_until_idle()
        return campaign

    return copies.copied(owner, (fields, options), make)


def prolific(person: str, session: str = "s1") -> dict[str, str]:
    """Return the parameters with which Prolific sends somebody."""
    return {"PROLIFIC_PID": person, "STUDY_ID": "study", "SESSION_ID": session}


def arrive(campaign: Campaign, query: dict[str, str], client: Client | None = None) -> Client:
    """Open the link as a platform gives it, and press the button; return the browser."""
    browser = client or Client()
    path = invitation_path(campaign)
    assert browser.get(path, query).url == path
    assert browser.post(path).url == f"{path}vote/"
    return browser


def pair_of(browser: Client, campaign: Campaign):
    """Return the key of the pair on somebody's page, or None."""
    lease = browser.get(f"{invitation_path(campaign)}vote/").context["screen"].visit.lease
    return lease and lease.key


def payments_of(browser: Client, campaign: Campaign) -> list[dict[str, str]]:
    """Download payments.csv and return its rows."""
    answer = browser.get(reverse("console:payments", args=[campaign.pk]))

    async def content() -> bytes:
        return b"".join([chunk async for chunk in answer.streaming_content])

    return list(csv.DictReader(io.StringIO(asyncio.run(content()).decode(), newline="")))


def vote(browser: Client, campaign: Campaign, times: int = 1) -> None:
    """Answer the pair on somebody's page by form post."""
    for _ in range(times):
        path = f"{invitation_path(campaign)}vote/"
        answer = browser.post(path, {"choice": "left", "lease": str(pair_of(browser, campaign))})
        assert answer.status_code == 302
        wait_until_idle()
