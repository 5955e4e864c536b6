"""Scorers on the researcher's pages: chosen in the setup, watched on the live page, tried again there."""

from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from tests.support.campaigns import live_page, make_campaign, make_config, make_draft, sweep_everything

LENGTH = "print(len(told['content']), flush=True)"


def scored(researcher, idle_tasks, names: str) -> Campaign:
    campaign = make_campaign(researcher, config=make_config(chains=2, steps=6), scorer_names=names)
    sweep_everything()
    idle_tasks()
    return campaign


def test_a_scorer_that_is_gone_stays_ticked_and_the_start_says_so(owner, researcher, idle_tasks, declare, settings):
    declare(LENGTH)
    draft = make_draft(researcher, scorer_names="length")
    settings.SCORERS = {}
    assert "length (not in SCORERS any more)" in owner.get(reverse("console:edit", args=[draft.pk])).content.decode()
    told = owner.post(reverse("console:start", args=[draft.pk]), follow=True).content.decode()
    assert "“length” is not offered for texts here. Declare it in SCORERS" in told


def test_the_live_page_shows_how_many_are_scored_and_the_files(owner, researcher, idle_tasks, declare):
    declare(LENGTH)
    campaign = scored(researcher, idle_tasks, "length words")
    page = live_page(owner, campaign)
    assert "Mean where the chains are now" in page
    page = owner.get(reverse("console:record", args=[campaign.pk])).content.decode()
    for name in ("scores.csv", "scorers.json"):
        address = reverse("console:download", args=[campaign.pk, name])
        assert address in page
        assert owner.get(address).status_code == 200
