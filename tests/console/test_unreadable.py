"""A setup that this version of the program or of a library cannot read: told on its page, and harmless to others."""

import pytest

from prefmh_web.annotate.tasks import sweep_leases
from prefmh_web.campaigns import tasks
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Lease, Side
from tests.support.stack import invitation_path, make_campaign, make_draft

REASON = "space.neighbours"


def spoil(campaign: Campaign) -> None:
    recipe = campaign.recipe | {"space": campaign.recipe["space"] | {"neighbours": "many"}}
    Campaign.objects.filter(pk=campaign.pk).update(recipe=recipe)
    # A process of another version would know nothing of them by heart.
    Campaign.objects.filter(pk=campaign.pk, started_at__isnull=False).update(started_at="2026-01-01T00:00:00Z")


@pytest.fixture
def signed_in(client, researcher):
    client.force_login(researcher)
    return client


def test_a_draft_says_why_and_the_list_shows_the_others(signed_in, researcher, idle_tasks):
    spoilt, other = make_draft(researcher, name="Spoilt"), make_draft(researcher, name="Other")
    spoil(spoilt)
    listed = signed_in.get("/").content.decode()
    assert "cannot be read" in listed
    assert "texts" in listed
    assert "Other" in listed
    page = signed_in.get(spoilt.get_absolute_url())
    assert page.status_code == 200
    assert REASON in page.content.decode()
    assert signed_in.get(f"{spoilt.get_absolute_url()}setup/").url == spoilt.get_absolute_url()
    answer = signed_in.post(f"{spoilt.get_absolute_url()}start/", follow=True)
    assert "The setup cannot be run" in answer.content.decode()
    signed_in.post(f"{spoilt.get_absolute_url()}delete/")
    assert list(Campaign.objects.all()) == [other]


def test_a_running_campaign_keeps_no_other_from_going_on(signed_in, researcher, idle_tasks):
    spoilt, other = make_campaign(researcher), make_campaign(researcher)
    spoil(spoilt)
    Comparison.objects.all().delete()
    Chain.objects.update(step=0)
    tasks.sweep()
    idle_tasks()
    assert Comparison.objects.filter(chain__campaign=other).count() == other.chains.count()
    assert not Comparison.objects.filter(chain__campaign=spoilt).exists()
    assert REASON in signed_in.get(spoilt.get_absolute_url()).content.decode()


def test_its_leases_end_and_so_do_those_of_others(researcher, idle_tasks):
    campaigns = [make_campaign(researcher), make_campaign(researcher)]
    for campaign in campaigns:
        leases.take(Annotator.objects.create(campaign=campaign))
    spoil(campaigns[0])
    Lease.objects.update(expires_at="2026-01-01T00:00:00Z")
    sweep_leases()
    assert not Lease.objects.filter(ended_at__isnull=True).exists()


def test_its_voters_are_told_and_what_they_have_answered_counts(client, researcher, idle_tasks):
    campaign = make_campaign(researcher)
    link = invitation_path(campaign)
    client.post(link)
    assert 'name="lease"' in client.get(f"{link}vote/").content.decode()
    spoil(campaign)
    lease = Lease.objects.get()
    answer = client.post(f"{link}vote/", {"lease": lease.key, "choice": Side.LEFT}, follow=True)
    assert "Not available at the moment" in answer.content.decode()
    assert campaign.judges.get(pk=lease.judge_id).votes.filter(number=1).exists()
    assert client.get(link).status_code == 200
