"""A pilot: a copy of a campaign for a few people."""

import pytest
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.recruiting import recruitment_of
from prefmh_web.setup import pilot
from prefmh_web.setup.export import setup_of
from tests.support.campaigns import SETUPS, make_draft, wait_until_idle


@pytest.mark.parametrize("name", ["texts", "listed", "images", "prolific"])
def test_a_pilot_has_the_setup_of_its_campaign_but_for_its_size(name, researcher):
    campaign = SETUPS[name](researcher)
    made = pilot.make(campaign, researcher, 4, 12)
    wait_until_idle()
    found = Campaign.objects.get(pk=made.pk)
    assert found.is_draft
    assert found.name == f"Pilot of {campaign.name}"
    assert found.recipe["seed"] != campaign.recipe["seed"]
    before, after = setup_of(campaign), setup_of(found)
    same = {"name", "people", "seed"}
    assert after.model_dump(exclude=same) == before.model_dump(exclude=same)
    recruitment = recruitment_of(found)
    assert (recruitment.places, recruitment.votes_each, recruitment.budget) == (4, 12, None)
    lifecycle.start(found)
    wait_until_idle()
    campaign.refresh_from_db()
    assert campaign.is_draft


@pytest.mark.parametrize("name", ["base", "panel"])
def test_no_pilot_is_made_where_no_crowd_votes(name, researcher, client):
    campaign = SETUPS[name](researcher)
    with pytest.raises(NotPossible, match="No crowd votes"):
        pilot.make(campaign, researcher, 5, 30)
    client.force_login(researcher)
    assert "Run a pilot" not in client.get(campaign.get_absolute_url()).content.decode()


def test_the_button_on_the_drafts_page_makes_one(researcher, client, idle_tasks):
    draft = make_draft(researcher)
    idle_tasks()
    client.force_login(researcher)
    assert "Run a pilot" in client.get(draft.get_absolute_url()).content.decode()
    address = reverse("console:run-pilot", args=[draft.pk])
    told = client.post(address, {"people": 0, "votes_each": 5}, follow=True).content.decode()
    assert "No pilot was made" in told
    assert Campaign.objects.count() == 1
    answer = client.post(address, {"people": 3, "votes_each": 5})
    assert answer.url == Campaign.objects.get(name__startswith="Pilot of").get_absolute_url()
