"""Copies: a duplicate, which is the same setup under a name and a seed of its own, and a pilot for a few people."""

import pytest
from django.urls import reverse

import sampler
from prefmh_web.campaigns.models import Campaign, NotPossible
from prefmh_web.setup import apply
from prefmh_web.setup.apply import duplicate
from prefmh_web.setup.files import config_of, file_of
from tests.support.campaigns import SETUPS, make_draft, started_now, wait_until_idle


def copied(campaign, owner) -> Campaign:
    made = duplicate(campaign, owner)
    wait_until_idle()
    return Campaign.objects.get(pk=made.pk)


@pytest.mark.parametrize("name", ["texts", "listed", "panel", "prolific", "quest"])
def test_a_duplicate_has_the_same_setup_and_its_own_name_and_seed(name, researcher):
    before = SETUPS[name](researcher)
    after = copied(before, researcher)
    assert after.is_draft
    assert after.name == f"Copy of {before.name}"
    assert after.seed != before.seed
    assert not after.is_seed_typed
    assert config_of(after) == config_of(before).model_copy(
        update={"name": after.name, "seed": None, "judges": sampler.unnamed(config_of(before).judges)}
    )


def test_the_button_on_the_campaigns_page_makes_one(researcher, client):
    before = SETUPS["base"](researcher)
    client.force_login(researcher)
    page = client.post(reverse("console:duplicate", args=[before.pk]), follow=True).content.decode()
    assert f"This is a copy of “{before.name}”" in page


def test_each_has_its_own_file(researcher):
    before = SETUPS["listed"](researcher)
    after = copied(before, researcher)
    assert after.catalog.file.name != before.catalog.file.name
    content = b"".join(file_of(before.catalog))
    after.catalog.file.delete()
    assert b"".join(file_of(before.catalog)) == content


def test_what_another_owner_lacks_is_told_and_nothing_is_made(researcher, django_user_model):
    before = SETUPS["prolific"](researcher)
    count = Campaign.objects.count()
    with pytest.raises(NotPossible, match="has no started campaign"):
        duplicate(before, django_user_model.objects.create_user("bo"))
    assert Campaign.objects.count() == count


def test_of_a_file_that_is_gone_nothing_is_made(researcher):
    before = SETUPS["listed"](researcher)
    before.catalog.file.storage.delete(before.catalog.file.name)
    with pytest.raises(NotPossible, match="gone from the server's disk"):
        duplicate(before, researcher)
    assert Campaign.objects.count() == 1


@pytest.mark.parametrize("name", ["texts", "listed", "prolific"])
def test_a_pilot_has_the_config_of_its_campaign_but_for_its_size(name, researcher):
    campaign = SETUPS[name](researcher)
    made = apply.pilot(campaign, researcher, 4, 12)
    wait_until_idle()
    found = Campaign.objects.get(pk=made.pk)
    assert found.is_draft
    assert found.name == f"Pilot of {campaign.name}"
    assert found.seed != campaign.seed
    before, after = config_of(campaign), config_of(found)
    same = {"name", "study", "seed"}
    assert after.model_dump(exclude=same) == before.model_dump(exclude=same)
    recruitment = found.config.study
    assert (recruitment.places, recruitment.votes_each, recruitment.budget) == (4, 12, None)
    started_now(found)
    campaign.refresh_from_db()
    assert campaign.is_draft


@pytest.mark.parametrize("name", ["base", "panel"])
def test_no_pilot_is_made_where_no_crowd_votes(name, researcher, client):
    campaign = SETUPS[name](researcher)
    with pytest.raises(NotPossible, match="No crowd votes"):
        apply.pilot(campaign, researcher, 5, 30)
    client.force_login(researcher)
    assert "Run a pilot" not in client.get(campaign.get_absolute_url()).content.decode()


def test_the_button_on_the_drafts_page_makes_a_pilot(researcher, client, idle_tasks):
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
