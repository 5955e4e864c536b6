"""What the researcher sees of a warm-up, and the one thing that they can do about it."""

from __future__ import annotations

import json

import pytest
from django.urls import reverse

import sampler
from prefmh_web.campaigns.models import Campaign, Chain
from prefmh_web.console.board import board_for
from tests.campaigns.lifecycle.test_warm_up import decide, late
from tests.support.campaigns import WARM_UP_TEXTS as TEXTS
from tests.support.campaigns import (
    live_page,
    make_draft,
    sent_back,
    voted_to_the_end,
    warming_campaign,
    warming_config,
)


@pytest.fixture
def waiting(researcher, idle_tasks) -> Campaign:
    """A campaign of which one chain has finished the warm-up."""
    campaign = warming_campaign(researcher)
    decide(campaign, only=1)
    return Campaign.objects.get(pk=campaign.pk)


def test_the_page_says_which_chains_the_others_wait_for(signed_in, waiting):
    page = live_page(signed_in, waiting)
    assert "Chains 0, 2 have at most 6 steps left" in page
    assert page.count("waiting for the other chains") == 1
    assert "possible when a chain has waited for 5 minutes" in page
    refused = signed_in.post(reverse("console:end-warm-up", args=[waiting.pk]), follow=True).content.decode()
    assert "only when a chain has waited" in refused
    assert signed_in.get(reverse("console:download", args=[waiting.pk, "tuning.json"])).status_code == 404


def test_a_warm_up_that_nobody_finishes_can_be_ended_from_the_page(signed_in, waiting, idle_tasks):
    late(waiting)
    page = live_page(signed_in, waiting)
    assert "Chains 0, 2 have waited for a long time" in page
    assert "End the warm-up" in page
    ended = signed_in.post(reverse("console:end-warm-up", args=[waiting.pk]), follow=True).content.decode()
    idle_tasks()
    assert "5</strong> moves, as in the setup, because the warm-up was ended early" in ended
    assert "End the warm-up" not in ended
    again = signed_in.post(reverse("console:end-warm-up", args=[waiting.pk]), follow=True).content.decode()
    assert "The warm-up is over" in again


def finished(researcher, **options) -> Campaign:
    campaign = warming_campaign(researcher, {"steps": 60}, steps=120, **options)
    return voted_to_the_end(campaign)


def test_the_page_shows_what_was_chosen_and_from_what(signed_in, researcher, idle_tasks):
    campaign = finished(researcher)
    page = live_page(signed_in, campaign)
    assert f"<strong>{campaign.walk_length}</strong> move" in page
    assert f"<strong>{campaign.walk_length}</strong> (chosen)" in page
    for trial in campaign.tuning["trials"]:
        assert f"<td>{trial['steps']}</td><td>{trial['votes']}</td>" in page
    chains = campaign.chains.all()
    votes = sum(chain.votes for chain in chains) - sum(trial["votes"] for trial in campaign.tuning["trials"])
    won = sum(chain.votes_for for chain in chains) - sum(trial["votes_for"] for trial in campaign.tuning["trials"])
    assert f"{round(100 * won / votes)} % of the {votes} votes that counted since then are for the proposal" in page
    answer = signed_in.get(reverse("console:download", args=[campaign.pk, "tuning.json"]))
    assert json.loads(answer.content) == campaign.tuning


def test_a_distance_at_which_hardly_any_vote_is_won_is_pointed_out(researcher, idle_tasks):
    campaign = finished(researcher)
    longest = campaign.tuning["trials"][-1]["length"]
    Campaign.objects.filter(pk=campaign.pk).update(walk_length=longest)
    before = sum(trial["votes_for"] for trial in campaign.tuning["trials"])
    Chain.objects.filter(campaign=campaign).update(votes=300, votes_for=0)
    Chain.objects.filter(campaign=campaign, place=0).update(votes_for=before + 20)
    walks = board_for(Campaign.objects.get(pk=campaign.pk)).progress.walks
    assert walks.wins_too_little
    shorter, chosen = campaign.tuning["trials"][-2:]
    assert (walks.shorter.length, walks.shorter.cost) == (
        shorter["length"],
        chosen["jump_per_vote"] / shorter["jump_per_vote"],
    )
    html = board_for(Campaign.objects.get(pk=campaign.pk)).html()
    assert f"The next shorter distance of the warm-up is {shorter['length']} move" in html


def test_a_warm_up_that_nobody_has_typed_follows_the_chains_and_steps(signed_in, researcher, idle_tasks):
    usual = sampler.warm_up_steps(3, 400)
    draft = make_draft(researcher, file=TEXTS, config=warming_config({"steps": usual, "settling": 10}, steps=400))
    edit = reverse("console:edit", args=[draft.pk])
    for steps, expected in (("800", 100), ("240", 60), ("60", None)):
        shown = signed_in.get(edit).context["forms"]
        fields = sent_back(shown.campaign, shown.space, shown.questions)
        assert fields["catalog-warm_up"] == ""
        signed_in.post(edit, fields | {"steps": steps})
        draft.refresh_from_db()
        assert draft.config_data["steps"] == int(steps)
        assert (draft.config_data["kernel"].get("warm_up") or {}).get("steps") == expected


def test_a_page_says_when_a_warm_up_brought_too_little(signed_in, researcher, idle_tasks):
    campaign = warming_campaign(researcher)
    decide(campaign)
    assert "too little to choose by" in live_page(signed_in, campaign)
