"""Each event of a campaign happens through its real door, and a real receiver is told of it."""

from datetime import timedelta

import numpy as np
import pytest
from django.utils import timezone

from prefmh_web.annotate.tasks import settle_parts
from prefmh_web.campaigns import lifecycle, tasks
from prefmh_web.campaigns.lifecycle import panels, webhooks
from prefmh_web.campaigns.models import Annotator, Campaign, Delivery, Vote, Webhook
from prefmh_web.endpoints import breaker
from prefmh_web.endpoints.errors import RateLimited, Unreachable
from tests.campaigns.engine.test_suspension import skip
from tests.flows.test_model_costs import PRICES, by_model, draft, endpoint, registered, script, writes, written
from tests.participants.test_checks import MANY, answer_check, vote_until_check
from tests.participants.test_stages import CODES_OF_ALL
from tests.support.panels import panel_campaign
from tests.support.receiver import Receiver
from tests.support.recruited import arrive, prolific, recruited_campaign, vote
from tests.support.scripted_server import scripted_server, status
from tests.support.stack import make_campaign, make_recipe, vote_until_finished, wait_until_idle

__all__ = ["endpoint", "script"]
LIKES = {0: lambda place: place / 6, 1: lambda place: -place / 6}


@pytest.fixture
def told(settings):
    """Return the events of one kind that a campaign's webhook was told of, once all tasks are done."""
    settings.WEBHOOK_ALLOWED_HOSTS = ("127.0.0.1",)
    settings.WEBHOOK_ALLOW_PRIVATE = ("127.0.0.1/32",)
    receiver = Receiver()

    def of(kind: str) -> list[dict]:
        wait_until_idle()
        assert len(set(receiver.ids)) == len(receiver.ids)
        return [event["data"] for event in receiver.events if event["type"] == kind]

    of.url = receiver.url
    yield of
    receiver.stop()


def watch(campaign: Campaign, told) -> Webhook:
    return webhooks.make(campaign, told.url, Webhook.Event.values)[0]


def test_the_last_vote_finishes(researcher, told):
    campaign = make_campaign(researcher, recipe=make_recipe(chains=2, steps=4))
    watch(campaign, told)
    people = [Annotator.objects.create(campaign=campaign) for _ in range(3)]
    vote_until_finished(campaign, people, LIKES, np.random.default_rng(5))
    [event] = told("campaign.finished")
    assert event["campaign"]["status"] == "finished"
    assert Delivery.objects.count() == 1


def test_a_panel_that_is_ended_finishes(researcher, told):
    campaign = panel_campaign(researcher)
    watch(campaign, told)
    panels.end(campaign)
    [event] = told("campaign.finished")
    assert event["campaign"]["status"] == "finished"


def test_skips_suspend_a_step(researcher, told):
    campaign = make_campaign(researcher, recipe=make_recipe(chains=1), suspend_after_skips=2)
    watch(campaign, told)
    skip(campaign)
    assert told("step.suspended") == []
    skip(campaign)
    [event] = told("step.suspended")
    assert {name: event[name] for name in ("chain", "step", "cause", "count")} == {
        "chain": 0,
        "step": 1,
        "cause": "skips",
        "count": 2,
    }


def test_a_cap_on_models_is_reached(researcher, endpoint, told):
    campaign = draft(researcher, by_model(), request_cap=10)
    watch(campaign, told)
    lifecycle.start(campaign)
    for _ in range(10):
        wait_until_idle()
        tasks.sweep()
    [event] = told("budget.reached")
    assert (event["budget"], event["campaign"]["status"]) == ("models", "paused")
    assert event["reason"].startswith("The cap of 10 requests is reached")


def test_an_endpoint_that_fails_rests_and_is_told_of_once(researcher, endpoint, script, told):
    campaign = draft(researcher, by_model(budget=1), chains=4, steps=50)
    script.faults.extend([status(500)] * 100)
    watch(campaign, told)
    lifecycle.start(campaign)
    [event] = eventually_told(told, "endpoint.resting")
    assert event["endpoint"] == endpoint.name
    assert event["until"] > timezone.now().isoformat()[:10]
    # The trial fails, and so it goes on resting; then it answers and fails anew.
    breaker.failed(endpoint, Unreachable("the server cannot be reached"), is_trial=True)
    breaker.answered(endpoint, is_trial=True)
    for _ in range(3):
        breaker.failed(endpoint, Unreachable("the server cannot be reached"))
    assert len(told("endpoint.resting")) == 1


def eventually_told(told, kind: str) -> list[dict]:
    for _ in range(20):
        if found := told(kind):
            return found
        tasks.sweep()
    return []


def test_a_server_that_asks_for_a_pause_is_no_event(researcher, endpoint, told):
    # Many steps: those that the model rejects are decided without a person, and the campaign must not finish by them.
    campaign = draft(researcher, by_model(budget=1), {"question": "Which?", "budget": 1}, chains=1, steps=50)
    watch(campaign, told)
    lifecycle.start(campaign)
    breaker.failed(endpoint, RateLimited("too many", retry_after=30.0))
    assert told("endpoint.resting") == []
    breaker.answered(endpoint, is_trial=True)
    for _ in range(3):
        breaker.failed(endpoint, Unreachable("the server cannot be reached"))
    assert len(told("endpoint.resting")) == 1


def test_a_model_that_writes_and_rests_is_told_of(researcher, settings, told):
    with scripted_server(writes) as script:
        campaign = written(researcher, script, settings)
        watch(campaign, told)
        other = registered(researcher, script, settings, name="Another", **PRICES)
        lifecycle.start(campaign)
        wait_until_idle()
        for each in (other, campaign.owner.endpoints.get(name="A model")):
            for _ in range(3):
                breaker.failed(each, Unreachable("the server cannot be reached"))
        assert [event["endpoint"] for event in told("endpoint.resting")] == ["A model"]


def test_a_failed_check_flags_a_person_by_their_number_alone(researcher, told):
    study = recruited_campaign(researcher, protocol={"check_share": 0.5}, codes=CODES_OF_ALL, **MANY)
    watch(study, told)
    browser = arrive(study, prolific("anna-of-prolific"))
    vote_until_check(browser, study)
    answer_check(browser, study)
    assert told("person.flagged") == []
    vote(browser, study)
    vote_until_check(browser, study)
    answer_check(browser, study, rightly=False)
    [event] = told("person.flagged")
    assert event["person"] == Annotator.objects.get(campaign=study).pk
    assert (event["reason"], event["checks_failed"]) == ("attention-check", 1)
    assert "anna" not in str(Delivery.objects.values())


def test_fast_votes_flag_a_person_once(researcher, told):
    study = recruited_campaign(researcher, most_a_minute=3)
    watch(study, told)
    anna, ben = (arrive(study, prolific(person)) for person in ("anna", "ben"))
    vote(anna, study, times=5)
    vote(ben, study, times=3)
    settle_parts()
    # Looked at once a minute.
    assert told("person.flagged") == []
    Webhook.objects.update(looked_until=timezone.now() - timedelta(minutes=2))
    settle_parts()
    [event] = told("person.flagged")
    first = Annotator.objects.filter(campaign=study).earliest("pk")
    assert (event["person"], event["reason"], event["fast_votes"]) == (first.pk, "fast-votes", 2)
    vote(anna, study)
    Webhook.objects.update(looked_until=timezone.now() - timedelta(minutes=2))
    settle_parts()
    assert len(told("person.flagged")) == 1
    assert Vote.objects.count() == 9
