"""The page of the plan: figures from guesses, what to change, and a pilot that replaces the guesses."""

import math

import pytest
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Campaign, Chain, Comparison, Side, Vote
from prefmh_web.console import planning
from prefmh_web.console.estimates import Estimate
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.participants import recruiting
from tests.support.setups import SETUPS
from tests.support.stack import make_draft, make_recipe, wait_until_idle


def page_of(client, campaign, htmx=False, **numbers) -> str:
    headers = {"HX-Request": "true"} if htmx else {}
    answer = client.get(reverse("console:plan", args=[campaign.pk]), numbers, headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def pilot_with_votes(client, campaign, people, votes_each) -> Campaign:
    """Let people vote in a pilot that was made on the page."""
    sent = {"pilot-people": people, "pilot-votes_each": votes_each}
    answer = client.post(reverse("console:run-pilot", args=[campaign.pk]), sent)
    wait_until_idle()
    pilot = campaign.pilots.get()
    assert answer.url == pilot.get_absolute_url()
    lifecycle.start(pilot)
    wait_until_idle()
    for _ in range(people):
        annotator = Annotator.objects.create(campaign=pilot, invitation=pilot.invitations.get())
        for _ in range(votes_each):
            leases.answer(leases.take(annotator).key, annotator, Side.LEFT, 900)
            wait_until_idle()
            annotator.refresh_from_db()
    return pilot


def test_a_drafts_page_leads_to_its_plan(signed_in, researcher):
    draft = make_draft(researcher, recipe=make_recipe(chains=1))
    assert reverse("console:plan", args=[draft.pk]) in signed_in.get(draft.get_absolute_url()).content.decode()
    page = page_of(signed_in, draft, pay_hour=12, most_money=1)
    assert "From your guesses" in page
    for told in ("Votes", "Effective samples", "Hours of people", "Money", "People would wait", "more than 1.00"):
        assert told in page
    part = page_of(signed_in, draft, htmx=True, people=3)
    assert "Effective samples" in part
    assert "<html" not in part


def test_a_number_that_cannot_be_used_is_named(signed_in, researcher):
    page = page_of(signed_in, make_draft(researcher), htmx=True, people=0, seconds_a_vote="much")
    assert "People: Ensure this value is greater than or equal to 1." in page
    assert "Seconds a vote: Enter a number." in page
    assert "Effective samples" not in page


def test_the_setups_own_limits_are_the_usual_ones(signed_in, researcher):
    draft = make_draft(researcher, recipe=make_recipe(judges=[{"question": "Which?", "budget": 1}], steps=900))
    recruiting.set_up(draft, {"recruiter": "open", "votes_each": 7, "places": 6, "place_pay": 2, "currency": "£"}, ())
    page = page_of(signed_in, draft)
    assert "7 votes" in page
    assert "£" in page
    told = planning.Told(6, None, 10)
    study = planning.study_of(draft, told)
    assert (study.votes_each, study.present_minutes, study.active_minutes) == (7, None, None)
    _, foreseen = planning.plan_for(draft, told, None)
    assert foreseen.votes.high == 42
    assert foreseen.money.high == 12


@pytest.mark.parametrize("name", ["written", "base", "ratings"])
def test_where_no_person_votes_there_is_nobody_to_plan_for(signed_in, researcher, name):
    assert "nobody to plan for" in page_of(signed_in, SETUPS[name](researcher))


def test_a_pilot_feeds_the_plan_and_nothing_else(signed_in, researcher):
    campaign = make_draft(researcher)
    pilot = pilot_with_votes(signed_in, campaign, people=2, votes_each=4)
    assert "From the pilot: 8 votes of 2 people" in page_of(signed_in, campaign)
    assert "seconds_a_vote" not in page_of(signed_in, campaign)
    assert not Vote.objects.filter(judge__campaign=campaign).exists()
    assert campaign.states.count() == pilot.states.count()
    page = signed_in.get(pilot.get_absolute_url()).content.decode()
    assert "This is a pilot of" in page
    assert '<span class="status">pilot</span>' in signed_in.get("/").content.decode()
    seen = planning.pilot_of(campaign)
    assert sum(sum(step.votes_cast) for step in seen.steps) == 8
    assert [len(each.seconds) for each in seen.people] == [4, 4]


def test_the_base_ratios_of_a_pilot_come_chain_by_chain_however_they_were_stored(signed_in, researcher):
    campaign = make_draft(researcher, recipe=make_recipe(chains=2))
    pilot = pilot_with_votes(signed_in, campaign, people=2, votes_each=4)
    steps = Comparison.objects.filter(chain__campaign=pilot).order_by("pk")
    Chain.objects.filter(pk=steps[0].chain_id).update(place=2)  # whose step was stored first comes last by place
    for number, step in enumerate(steps):
        Comparison.objects.filter(pk=step.pk).update(log_r0=number / 8)
    rows = list(steps.values_list("chain__place", "step", "log_r0", "current", "proposal"))
    assert rows != sorted(rows)
    expected = [math.inf if current == proposal else log_r0 for _, _, log_r0, current, proposal in sorted(rows)]
    assert planning.pilot_ratios(campaign) == expected


def test_a_pilot_of_a_wrong_size_is_not_made(signed_in, researcher):
    campaign = make_draft(researcher)
    answer = signed_in.post(
        reverse("console:run-pilot", args=[campaign.pk]), {"pilot-people": 0, "pilot-votes_each": 5}, follow=True
    )
    assert "No pilot was made" in answer.content.decode()
    assert not campaign.pilots.exists()


def test_no_pilot_of_what_has_started(signed_in, researcher):
    campaign = SETUPS["started"](researcher)
    signed_in.post(reverse("console:run-pilot", args=[campaign.pk]), {"pilot-people": 5, "pilot-votes_each": 5})
    assert not campaign.pilots.exists()
    assert "this campaign has started" in page_of(signed_in, campaign)


def test_models_take_hours_by_the_measured_speed_of_their_endpoint():
    slow = Estimate("", Endpoint(concurrency=4), 7200, 3600.0, None, seconds=2.0, chains=2)
    assert slow.hours == "at most 2, 1 expected"
    assert Estimate("", Endpoint(concurrency=4), 7200, None, None).hours == "not measured yet"
