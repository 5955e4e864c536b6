"""Further steps: what the setup says of them and refuses, and what the campaign's page shows."""

from __future__ import annotations

import pytest
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.models import Endpoint
from tests.campaigns.engine.test_rounds import campaign_with, finish, vote_up_to_the_first_round
from tests.console.test_pages import form


def page_of(client, name: str, campaign: Campaign) -> str:
    return client.get(reverse(f"console:{name}", args=[campaign.pk])).content.decode()


def test_the_number_is_kept_and_shown_and_can_be_taken_away(signed_in, idle_tasks):
    signed_in.post(reverse("console:create"), form(**{"further_steps": "4", "catalog-distance": "fixed"}))
    campaign = Campaign.objects.get()
    assert campaign.recipe["further_steps"] == 4
    assert 'name="further_steps" value="4"' in page_of(signed_in, "edit", campaign)
    page = page_of(signed_in, "campaign", campaign)
    assert "the 10 steps are sure; then 4 more at a time, as often as the budget covers them, up to 100" in page
    edited = form(**{"catalog-file": "", "catalog-distance": "fixed"})
    signed_in.post(reverse("console:edit", args=[campaign.pk]), edited)
    campaign.refresh_from_db()
    assert "further_steps" not in campaign.recipe
    assert "are sure" not in page_of(signed_in, "campaign", campaign)


def test_without_a_budget_the_pages_say_that_it_cannot_start(signed_in, idle_tasks):
    signed_in.post(reverse("console:create"), form(**{"further_steps": "4", "catalog-distance": "fixed"}))
    campaign = Campaign.objects.get()
    for name in ("campaign", "participants"):
        assert "cannot start without a budget, which pays for further steps" in page_of(signed_in, name, campaign)
    refused = signed_in.post(reverse("console:start", args=[campaign.pk]), follow=True).content.decode()
    assert "A budget pays for further steps, and there is none" in refused
    campaign.refresh_from_db()
    assert campaign.is_draft


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"further_steps": "91"}, "must be at most 90: a chain walks 100 steps at most"),
        ({"further_steps": "0"}, "greater than or equal to 1"),
        (
            {"further_steps": "4", "questions-0-source": "tiny", "questions-0-temperature": "1"},
            "does not go with models or programs that judge: a budget counts people&#x27;s answers",
        ),
    ],
)
def test_what_does_not_fit_is_refused_beside_its_field(signed_in, researcher, changes, problem):
    Endpoint.objects.create(owner=researcher, name="tiny", base_url="http://127.0.0.1:9/v1", model="tiny")
    page = signed_in.post(reverse("console:create"), form(**changes)).content.decode()
    assert problem in page
    assert not Campaign.objects.exists()


def test_the_live_page_says_how_many_rounds_were_opened_and_what_is_left(signed_in, researcher, idle_tasks):
    campaign = campaign_with(researcher, 80)
    assert "No round of further steps was opened so far" in page_of(signed_in, "campaign", campaign)
    people = vote_up_to_the_first_round(campaign)
    left = campaign.rounds.get().answers_left
    page = page_of(signed_in, "campaign", campaign)
    assert "<dt title" in page
    assert "<dd>1<small> of 2 steps</small></dd>" in page
    assert f"<dd>{left}<small> of 80</small></dd>" in page
    assert "each chain walks 2 steps beyond the 6 declared ones" in page
    assert signed_in.get(reverse("console:download", args=[campaign.pk, "rounds.csv"])).status_code == 200
    finish(campaign, people)
    assert f"<dd>{campaign.rounds.count()}<small> of 2 steps</small></dd>" in page_of(signed_in, "campaign", campaign)


def test_a_campaign_without_further_steps_says_nothing_of_them(signed_in, researcher, idle_tasks):
    campaign = campaign_with(researcher, 80, further_steps=None)
    page = page_of(signed_in, "campaign", campaign)
    assert "Further rounds" not in page
    assert "rounds.csv" not in page
    assert signed_in.get(reverse("console:download", args=[campaign.pk, "rounds.csv"])).status_code == 404
