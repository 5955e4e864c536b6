"""The setup as a page: its kinds as cards, what is folded, errors beside their fields; and chains at most."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.console.unstored import Sample
from prefmh_web.endpoints.models import Endpoint
from tests.console.test_pages import form
from tests.support.campaigns import make_campaign, make_config, make_draft, set_study

_FOLD = re.compile(r'<details class="fold[^"]*"( open)?><summary>([^<]+)</summary>')


def folds_of(page: str) -> dict[str, bool]:
    """Return for each fold by its title whether it is open, outside the template of a further question."""
    page = re.sub(r"<template.*?</template>", "", page, flags=re.DOTALL)
    return {title: bool(is_open) for is_open, title in _FOLD.findall(page)}


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"burn_in": "99999"}, "More chains while people come"),
        ({"lease_seconds": "3"}, "The layout, the time to answer"),
        ({"catalog-fresh_share": "7"}, "How far apart the two objects are"),
        ({"questions-0-order": "balanced"}, "Which object stands first"),
        ({"rule-kind": "score", "rule-exponent": "-1"}, "Decide in another way"),
    ],
)
def test_a_fold_with_an_error_is_open(signed_in, changes, title):
    page = signed_in.post(reverse("console:create"), form(**changes)).content.decode()
    assert any(is_open for name, is_open in folds_of(page).items() if name.startswith(title))


def test_nobody_makes_the_site_draw_what_they_choose(client, signed_in):
    address = Sample("molecules").address
    assert signed_in.get(address)["Content-Type"] == "image/svg+xml"
    assert signed_in.get(address[:-3] + "x/").status_code == 404
    signed_in.logout()
    assert client.get(address).url.startswith("/accounts/sign-in/")


def test_the_setup_says_what_all_of_it_takes_at_most(signed_in):
    fields = {"chains": "4", "max_chains": "20", "steps": "100", "burn_in": "10", "questions-0-budget": "2"}
    shown = signed_in.get(reverse("console:estimate"), fields).content.decode()
    assert "One chain takes <strong>200</strong> votes" in shown
    assert "up to 20 chains open, which take 4,000 votes" in shown
    assert "about 150 votes a chain from voters who are indifferent" in shown
    assert "Burn-in takes 15 of them" in shown
    assert (
        "20 chains open" not in signed_in.get(reverse("console:estimate"), fields | {"max_chains": ""}).content.decode()
    )
    for wrong in ({"chains": "x"}, {"questions-0-budget": "0"}, {"rule-kind": "base"}):
        assert "at most" not in signed_in.get(reverse("console:estimate"), fields | wrong).content.decode()


def test_a_drafts_page_says_what_people_will_be_asked_for(signed_in, researcher, idle_tasks):
    draft = make_draft(researcher, config=make_config(judges=[{"question": "Which?", "votes": 2}], chains=6, steps=100))
    set_study(draft, {"recruiter": "prolific", "votes_each": 30, "place_pay": 2.5, "currency": "EUR"}, ())
    page = signed_in.get(draft.get_absolute_url()).content.decode()
    for words in ("<strong>900</strong> votes", "1,200 at most", "<strong>2.5</strong> hours", "30 people who give 30"):
        assert words in page
    assert "<strong>75.00 EUR</strong> for their places" in page


def test_a_new_campaign_opens_chains_for_whoever_would_wait(signed_in):
    page = signed_in.get(reverse("console:create")).content.decode()
    assert 'name="max_chains" value="100"' in page
    assert "up to 100 chains open" in page
    signed_in.post(reverse("console:create"), form(max_chains="100"))
    assert Campaign.objects.get().config_data["max_chains"] == 100


def test_the_number_that_nobody_has_typed_does_not_stand_in_the_way(signed_in, researcher):
    Endpoint.objects.create(owner=researcher, name="tiny", base_url="http://127.0.0.1:9/v1", model="tiny")
    by_model = {"questions-0-source": "tiny", "questions-0-temperature": "1"}
    for changes in ({"chains": "100"}, by_model):
        signed_in.post(reverse("console:create"), form(max_chains="100", **changes))
        assert "max_chains" not in Campaign.objects.latest("pk").config
    page = signed_in.post(reverse("console:create"), form(max_chains="99", **by_model)).content.decode()
    assert "does not go with models that judge" in page


def test_the_page_says_how_many_chains_are_open_and_when_they_opened(signed_in, researcher, idle_tasks):
    judges = [{"question": "Which?", "votes": 1}]
    campaign = make_campaign(researcher, config=make_config(judges=judges, chains=1, max_chains=5))
    for _ in range(3):
        leases.take(Annotator.objects.create(campaign=campaign))
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert "<dd>3<small> of at most 5</small></dd>" in page
    assert page.count("opened at") == 2
    fixed = make_campaign(researcher)
    assert "of at most" not in signed_in.get(fixed.get_absolute_url()).content.decode()
