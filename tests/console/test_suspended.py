"""Suspended steps on the researcher's pages: told on the live page, tried again or ended on their own."""

import pytest
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign, Chain, Comparison, Event
from tests.campaigns.engine.test_suspension import campaign_of, skip
from tests.security.world import browser_of
from tests.support.campaigns import live_page

WHY = "A file is broken."


@pytest.fixture
def study(researcher, idle_tasks) -> Campaign:
    """A campaign whose only chain waits at a suspended step."""
    campaign = campaign_of(researcher, suspend_after_skips=2)
    skip(campaign, 2)
    return campaign


def address(campaign, name: str) -> str:
    return reverse(f"console:{name}", args=[campaign.pk, Comparison.objects.get(suspended_at__isnull=False).pk])


def test_the_live_page_tells_why_and_shows_the_objects(researcher, study):
    desk, step = browser_of(researcher), Comparison.objects.get()
    page = live_page(desk, study)
    assert "1 step waits for you." in page
    assert "It was skipped 2 times." in page
    assert step.current.content in page
    assert step.proposal.content in page
    setup = desk.get(reverse("console:edit", args=[study.pk])).content.decode()
    assert "after 2 skips, or when 2 people report that an object is not shown" in setup
    asked = desk.post(address(study, "ask-again"), follow=True).content.decode()
    assert "Step 1 of chain 0 is asked again." in asked
    assert "No step is suspended." in asked
    assert "Suspended steps" not in live_page(desk, study)


def test_a_chain_is_ended_with_a_reason_and_not_without(researcher, study):
    desk, path = browser_of(researcher), address(study, "end-chain")
    refused = desk.post(path, {"words": " "}).content.decode()
    assert "errorlist" in refused
    assert not Chain.objects.filter(ended_at__isnull=False).exists()
    ended = desk.post(path, {"words": WHY}, follow=True).content.decode()
    assert "Chain 0 ends before step 1." in ended
    assert "The campaign is finished." in ended
    assert "Finished.</strong> Every chain was ended at a suspended step." in live_page(desk, study)
    assert Event.objects.get(kind="chain-ended").data["words"] == WHY
    assert "ended here" in live_page(desk, study)
    # The page was open in another tab.
    assert "not suspended any more" in desk.post(path, {"words": WHY}, follow=True).content.decode()
