"""Choosing the rule in the browser: what the form makes, what it refuses, and what editing keeps."""

import pytest
from django.urls import reverse

from prefmh_web.accounts.links import sign_in_path
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.models import Endpoint
from tests.console.test_pages import form

RATED = {
    "rule-kind": "pointwise",
    "rule-form": "separate",
    "rule-lowest": "1",
    "rule-beta": "30",
    "questions-0-source": "A model",
    "questions-0-temperature": "0.7",
}


@pytest.fixture
def signed_in(client, researcher):
    Endpoint.objects.create(owner=researcher, name="A model", base_url="http://127.0.0.1:9/v1", model="tiny")
    client.force_login(researcher)
    return client


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, {"form": "separate", "lowest": 1, "highest": 10, "beta": 30}),
        ({"rule-lowest": "0"}, {"form": "separate", "lowest": 0}),
        ({"rule-form": "joint"}, {"form": "joint"}),
        ({"rule-form": "power", "rule-beta": "12.5"}, {"form": "power", "beta": 12.5}),
        # What another form leaves in its field is not meant.
        ({"rule-form": "difference", "rule-beta": "12.5"}, {"form": "difference", "beta": 30}),
    ],
)
def test_a_form_makes_a_baseline_and_editing_keeps_it(signed_in, idle_tasks, changes, rule):
    answer = signed_in.post(reverse("console:create"), form(**RATED | changes))
    campaign = Campaign.objects.get()
    assert campaign.recipe["rule"].items() >= ({"kind": "pointwise"} | rule).items()
    idle_tasks()
    assert "a baseline, not exact" in signed_in.get(answer.url).content.decode()
    edit = signed_in.get(reverse("console:edit", args=[campaign.pk]))
    assert "another distribution" in edit.content.decode()
    shown = {bound.html_name: bound.value() for bound in edit.context["forms"].rule}
    sent = form(**RATED | shown | {"catalog-file": "", "seed": str(campaign.recipe["seed"])})
    signed_in.post(reverse("console:edit", args=[campaign.pk]), sent)
    recipe = campaign.recipe
    campaign.refresh_from_db()
    assert campaign.recipe == recipe


def test_without_a_choice_votes_decide(signed_in, idle_tasks):
    signed_in.post(reverse("console:create"), form())
    assert Campaign.objects.get().recipe["rule"] == {"kind": "n-vote"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"questions-0-source": ""}, "must be a model: people compare, they do not rate"),
        ({"questions-0-order": "balanced"}, "stands alone"),
        ({"questions-0-votes": "log-probabilities"}, "not drawn from probabilities"),
        ({"rule-form": "power", "rule-lowest": "0"}, "lowest must be 1"),
        ({"rule-form": "power", "rule-beta": "0"}, "greater than or equal to 0.01"),
        ({"rule-form": "majority"}, "not one of the available choices"),
        (
            {
                "rule-form": "joint",
                "questions-TOTAL_FORMS": "2",
                "questions-1-question": "How kind is it?",
                "questions-1-budget": "1",
                "questions-1-source": "A model",
            },
            "ask all in one question",
        ),
    ],
)
def test_what_a_baseline_cannot_be_is_said_and_nothing_saved(signed_in, changes, message):
    answer = signed_in.post(reverse("console:create"), form(**RATED | changes))
    assert answer.status_code == 200
    assert message in answer.content.decode().replace("&#x27;", "'")
    assert not Campaign.objects.exists()


@pytest.mark.browser
def test_what_the_rule_does_not_use_is_put_aside(signed_in, researcher, chromium, live_site):
    page = chromium.new_page(base_url=live_site.url)
    page.goto(sign_in_path(researcher))
    page.goto(reverse("console:create"))
    beta, order = page.locator("#id_rule-beta"), page.locator("#id_questions-0-order")
    assert order.is_visible()
    assert not beta.is_visible()
    page.locator("input[name=rule-kind][value=pointwise]").check()
    assert order.is_disabled()
    assert not order.is_visible()
    assert page.get_by_text("Pointwise-MH").is_visible()
    assert not beta.is_visible()
    page.locator("#id_rule-form").select_option("power")
    assert beta.is_visible()
    page.locator("#add-question").click()
    assert page.locator("#id_questions-1-order").is_disabled()
    page.locator("input[name=rule-kind][value=n-vote]").check()
    assert order.is_enabled()
    assert not beta.is_visible()
    page.close()
