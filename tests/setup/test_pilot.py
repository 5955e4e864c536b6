"""A pilot: a campaign of its own with a draft's setup, few people, and nobody who waits."""

import pytest

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants.recruiting import recruitment_of
from prefmh_web.setup import pilot
from prefmh_web.setup.export import setup_of
from tests.support.setups import SETUPS
from tests.support.stack import wait_until_idle


def made(campaign, owner, people=5, votes_each=30) -> Campaign:
    found = pilot.make(campaign, owner, people, votes_each)
    wait_until_idle()
    return Campaign.objects.get(pk=found.pk)


@pytest.mark.parametrize("name", ["texts", "listed", "images", "prolific"])
def test_a_pilot_has_the_setup_of_its_campaign_but_for_its_size(name, researcher):
    campaign = SETUPS[name](researcher)
    found = made(campaign, researcher, people=4, votes_each=12)
    assert found.is_draft
    assert found.pilot_of == campaign
    assert found.name == f"Pilot of {campaign.name}"
    assert found.recipe["seed"] != campaign.recipe["seed"]
    before, after = setup_of(campaign), setup_of(found)
    same = {"name", "people", "most_chains", "seed"}
    assert after.model_dump(exclude=same) == before.model_dump(exclude=same)
    recruitment = recruitment_of(found)
    assert (recruitment.places, recruitment.votes_each, recruitment.budget) == (4, 12, None)
    assert found.parsed_recipe.most_chains >= found.parsed_recipe.chains + 4
    lifecycle.start(found)
    wait_until_idle()
    campaign.refresh_from_db()
    assert campaign.is_draft


@pytest.mark.parametrize(
    ("name", "told"), [("started", "has started"), ("base", "No crowd votes"), ("panel", "No crowd votes")]
)
def test_no_pilot_is_made_where_it_would_time_nobody(name, told, researcher):
    campaign = SETUPS[name](researcher)
    with pytest.raises(NotPossible, match=told):
        pilot.make(campaign, researcher, 5, 30)


def test_a_pilot_has_no_pilot_and_outlives_its_campaign(researcher):
    campaign = SETUPS["texts"](researcher)
    found = made(campaign, researcher)
    with pytest.raises(NotPossible, match="This is a pilot"):
        pilot.make(found, researcher, 5, 30)
    lifecycle.discard(campaign)
    found.refresh_from_db()
    assert found.pilot_of is None
