"""Chains at most: what the setup says of it, what it refuses, and what the campaign's page shows."""

from __future__ import annotations

from django.urls import reverse

from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.participants import recruiting
from tests.console.test_pages import form
from tests.support.campaigns import make_campaign, make_draft, make_recipe


def test_a_drafts_page_says_what_people_will_be_asked_for(signed_in, researcher, idle_tasks):
    draft = make_draft(
        researcher, recipe=make_recipe(judges=[{"question": "Which?", "budget": 2}], chains=6, steps=100)
    )
    recruiting.set_up(draft, {"recruiter": "prolific", "votes_each": 30, "place_pay": 2.5, "currency": "EUR"}, ())
    page = signed_in.get(draft.get_absolute_url()).content.decode()
    for words in ("<strong>900</strong> votes", "1,200 at most", "<strong>2.5</strong> hours", "30 people who give 30"):
        assert words in page
    assert "<strong>75.00 EUR</strong> for their places" in page


def test_a_new_campaign_opens_chains_for_whoever_would_wait(signed_in):
    page = signed_in.get(reverse("console:create")).content.decode()
    assert 'name="most_chains" value="100"' in page
    assert "up to 100 chains open" in page
    signed_in.post(reverse("console:create"), form(most_chains="100"))
    assert Campaign.objects.get().recipe["most_chains"] == 100


def test_the_number_that_nobody_has_typed_does_not_stand_in_the_way(signed_in, researcher):
    Endpoint.objects.create(owner=researcher, name="tiny", base_url="http://127.0.0.1:9/v1", model="tiny")
    by_model = {"questions-0-source": "tiny", "questions-0-temperature": "1"}
    for changes in ({"chains": "100"}, by_model):
        signed_in.post(reverse("console:create"), form(most_chains="100", **changes))
        assert "most_chains" not in Campaign.objects.latest("pk").recipe
    page = signed_in.post(reverse("console:create"), form(most_chains="99", **by_model)).content.decode()
    assert "does not go with models that judge" in page


def test_a_wrong_number_is_refused_beside_its_field(signed_in):
    page = signed_in.post(reverse("console:create"), form(most_chains="2")).content.decode()
    assert "must be more than the 2 chains of the start" in page
    assert not Campaign.objects.exists()


def test_the_page_says_how_many_chains_are_open_and_when_they_opened(signed_in, researcher, idle_tasks):
    judges = [{"question": "Which?", "budget": 1}]
    campaign = make_campaign(researcher, recipe=make_recipe(judges=judges, chains=1, most_chains=5))
    for _ in range(3):
        leases.take(Annotator.objects.create(campaign=campaign))
    page = signed_in.get(campaign.get_absolute_url()).content.decode()
    assert "<dd>3<small> of at most 5</small></dd>" in page
    assert page.count("opened at") == 2
    assert signed_in.get(reverse("console:download", args=[campaign.pk, "chains.csv"])).status_code == 200
    fixed = make_campaign(researcher)
    assert "of at most" not in signed_in.get(fixed.get_absolute_url()).content.decode()
    assert signed_in.get(reverse("console:download", args=[fixed.pk, "chains.csv"])).status_code == 404
