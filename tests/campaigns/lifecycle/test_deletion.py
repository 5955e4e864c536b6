"""A deleted campaign leaves nothing, whatever dies meanwhile; an archived one is off the list, and all else stays."""

import pytest
from django.apps import apps
from django.test import Client

from prefmh_web.campaigns import lifecycle, tasks
from prefmh_web.campaigns.errors import Deleted, NotPossible
from prefmh_web.campaigns.lifecycle import changes, deletion
from prefmh_web.campaigns.models import Campaign, Lease, Vote
from prefmh_web.participants.models import Participant, Participation
from tests.support.campaigns import (
    CODES_OF_ALL,
    OF_PICTURES,
    PICTURES,
    arrive,
    assert_replay_passes,
    export_to,
    invitation_path,
    make_campaign,
    make_config,
    make_draft,
    pair_of,
    prolific,
    recruited_campaign,
    vote,
)

OWN = ("campaigns", "participants", "experiments")


def rows() -> dict[str, int]:
    """Return how many rows each table of campaigns and people has, where it has any."""
    models = [model for name in OWN for model in apps.get_app_config(name).get_models()]
    return {model._meta.label: count for model in models if (count := model._default_manager.count())}


@pytest.fixture
def study(researcher, idle_tasks) -> Campaign:
    """A paid study with pictures, consent, checks, votes, a skip and two people."""
    config = make_config(space=OF_PICTURES, judges=[{"question": "Which?", "votes": 2}])
    options = {"consent": "# Consent", "codes": CODES_OF_ALL, "protocol": {"check_share": 0.5}}
    return recruited_campaign(researcher, file=PICTURES, filename="p.zip", config=config, **options)


def paused(campaign: Campaign) -> Campaign:
    lifecycle.pause(campaign)
    return campaign


def test_nothing_of_a_deleted_campaign_is_left_and_another_stays_whole(study, researcher, data_folder, tmp_path):
    other = recruited_campaign(researcher, name="Another")
    both = arrive(other, prolific("anna"))
    vote(both, other)
    before = rows()
    arrive_and_vote(study, "anna")
    arrive_and_vote(study, "ben")
    assert {"campaigns.Vote", "participants.Check", "participants.Participation"} <= set(rows())
    assert list(data_folder.glob("media/pictures/*/*/*.png"))
    deletion.request(paused(study), study.name)
    finish_deleting(study)
    left = rows()
    assert left.pop("participants.Participant") == 1
    assert before.pop("participants.Participant") == 1
    assert Participant.objects.get().external_id == "anna"
    assert not Campaign.objects.filter(pk=study.pk).exists()
    # The study's draft, its chains and its catalog are in `before` too, as it had been started.
    assert set(left) <= set(before)
    assert not list(data_folder.glob(f"media/pictures/{study.pk}/*/*"))
    vote(both, other)
    assert_replay_passes(export_to(other, tmp_path))
    deletion.request(paused(other), "Another")
    finish_deleting(other)
    assert rows() == {}
    assert not [path for path in data_folder.glob("media/**/*") if path.is_file()]


def arrive_and_vote(study: Campaign, name: str) -> None:
    browser = Client()
    path = invitation_path(study)
    page = browser.get(path, prolific(name), follow=True)
    browser.post(path, {"consent": "agree", "version": page.context["version"]})
    assert Participation.objects.filter(campaign=study, participant__external_id=name).exists()
    while pair_of(browser, study):
        vote(browser, study)


def joined(campaign: Campaign) -> Client:
    browser = Client()
    browser.post(invitation_path(campaign))
    return browser


def finish_deleting(campaign: Campaign) -> None:
    tasks.sweep()
    deletion.finish(campaign.pk)


def test_what_died_in_the_middle_is_finished_by_the_sweep(campaign, idle_tasks):
    browser = joined(campaign)
    vote(browser, campaign, 3)
    paused(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.DELETING)
    # As far as whoever has died had come.
    Lease.objects.all().delete()
    Vote.objects.first().delete()
    tasks.sweep()
    idle_tasks()
    assert rows() == {}


def test_nobody_finds_a_campaign_that_is_being_deleted_and_no_vote_brings_it_back(campaign, client, researcher):
    browser = joined(campaign)
    key = pair_of(browser, campaign)
    path = invitation_path(campaign)
    paused(campaign)
    Campaign.objects.filter(pk=campaign.pk).update(status=Campaign.Status.DELETING)
    client.force_login(researcher)
    assert client.get(campaign.get_absolute_url()).status_code == 404
    assert campaign.name not in client.get("/").content.decode()
    browser.post(f"{path}vote/", {"choice": "first", "lease": str(key)})
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.DELETING
    with pytest.raises(Deleted):
        changes.extend(campaign, 1)
    with pytest.raises(Deleted):
        deletion.request(campaign, campaign.name)
    with pytest.raises(NotPossible):
        lifecycle.resume(campaign)


def test_what_runs_has_not_started_or_has_another_name_is_not_deleted(campaign, researcher):
    with pytest.raises(NotPossible, match="Pause it first"):
        deletion.request(campaign, campaign.name)
    with pytest.raises(NotPossible, match="has not started"):
        deletion.request(make_draft(researcher), "Twelve texts")
    with pytest.raises(NotPossible, match="not the campaign's name"):
        deletion.request(paused(campaign), "Twelve")
    assert Campaign.objects.get(pk=campaign.pk).status == Campaign.Status.PAUSED


def test_the_owner_archives_and_deletes_on_the_page(campaign, client, researcher, idle_tasks):
    path = campaign.get_absolute_url()
    client.force_login(researcher)
    assert "Pause it before" in client.post(f"{path}archive/", follow=True).content.decode()
    paused(campaign)
    client.post(f"{path}archive/")
    assert campaign.name not in client.get("/").content.decode()
    assert campaign.name in client.get("/?archived").content.decode()
    assert "Put it back on the list" in client.get(f"{path}setup/").content.decode()
    client.post(f"{path}unarchive/")
    assert campaign.name in client.get("/").content.decode()
    assert "Nothing was deleted" in client.post(f"{path}delete/confirmed/", {"name": "?"}, follow=True).content.decode()
    assert Campaign.objects.exists()
    told = client.post(f"{path}delete/confirmed/", {"name": campaign.name}, follow=True).content.decode()
    assert "is being deleted" in told
    idle_tasks()
    assert rows() == {}


def test_a_finished_campaign_with_no_vote_is_deleted_too(researcher, idle_tasks):
    config = make_config(kernel={"kind": "independent"}, rule={"kind": "base"}, judges=[])
    campaign = make_campaign(researcher, config=config)
    campaign.refresh_from_db()
    if campaign.is_running:
        paused(campaign)
    deletion.request(campaign, f" {campaign.name} ")
    idle_tasks()
    assert rows() == {}
