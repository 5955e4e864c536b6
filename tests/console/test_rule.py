"""Choosing the rule in the browser: what the form makes, and what it refuses."""

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
        ({"rule-lowest": "0"}, {"form": "separate", "lowest": 0, "highest": 10}),
        ({"rule-form": "power", "rule-beta": "12.5"}, {"form": "power", "beta": 12.5}),
        # What another form leaves in its field is not meant.
        ({"rule-form": "difference", "rule-beta": "12.5"}, {"form": "difference", "beta": 30}),
    ],
)
def test_a_form_makes_a_baseline(signed_in, idle_tasks, changes, rule):
    answer = signed_in.post(reverse("console:create"), form(**RATED | changes))
    campaign = Campaign.objects.get()
    assert campaign.config_data["rule"].items() >= ({"kind": "pointwise"} | rule).items()
    idle_tasks()
    assert "a baseline, not exact" in signed_in.get(answer.url).content.decode()


UNJUDGED = [
    ({"rule-kind": "base", "catalog-move": "independent"}, {"kind": "base"}, "independent draw from p0"),
    (
        {"rule-kind": "score", "rule-score_form": "power", "rule-scorer": "words", "rule-exponent": "2"},
        {"kind": "score", "form": "power", "scorers": ["words"], "beta": 2},
        "β = 2, scores by words",
    ),
    (
        {"rule-kind": "quest", "rule-quality": "readability", "rule-temperature": "0.05"},
        {"kind": "quest", "scorer": "readability", "beta": 0.05},
        "β = 0.05, quality by readability",
    ),
]


@pytest.mark.parametrize(("changes", "rule", "line"), UNJUDGED, ids=["base", "score", "quest"])
@pytest.mark.parametrize("is_put_aside", [True, False], ids=["with script", "without"])
def test_a_rule_that_asks_nobody_needs_no_question(signed_in, idle_tasks, changes, rule, line, is_put_aside):
    sent = form(**changes | {"max_chains": "100"})
    # Without the script that puts them aside, the fields of a question come along and are not meant.
    sent = {name: value for name, value in sent.items() if not (is_put_aside and name.startswith("questions-0"))}
    answer = signed_in.post(reverse("console:create"), sent)
    campaign = Campaign.objects.get()
    assert (campaign.config_data["rule"], campaign.config_data["judges"]) == (rule, [])
    assert "max_chains" not in campaign.config_data
    idle_tasks()
    page = signed_in.get(answer.url).content.decode()
    assert line in page
    assert "Questions" not in page


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rule-kind": "base"}, "only fresh draws from p0 may all be accepted"),
        ({"rule-kind": "score", "rule-score_form": "power"}, "Choose the scorer whose numbers decide"),
        ({"rule-kind": "score"}, "“qed” is not offered for texts"),
        ({"rule-kind": "quest"}, "Choose the scorer that estimates quality"),
    ],
)
def test_what_a_rule_that_asks_nobody_cannot_be_is_said_and_nothing_saved(signed_in, idle_tasks, changes, message):
    answer = signed_in.post(reverse("console:create"), form(**changes))
    assert answer.status_code == 200
    assert message in answer.content.decode().replace("&#x27;", "'")
    assert not Campaign.objects.exists()


@pytest.mark.browser
def test_what_the_rule_does_not_use_is_put_aside(signed_in, researcher, chromium, live_site):
    page = chromium.new_page(base_url=live_site.url)
    page.goto(sign_in_path(researcher))
    page.goto(reverse("console:create"))
    beta, order = page.locator("#id_rule-beta"), page.locator("#id_questions-0-order")
    page.get_by_text("Which object stands first").click()
    page.get_by_text("Decide in another way").click()
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
    page.locator("input[name=rule-kind][value=quest]").check()
    assert page.locator("#id_rule-quality").is_visible()
    assert not page.locator("#questions").is_visible()
    assert page.locator("#id_questions-0-question").is_disabled()
    page.locator("input[name=rule-kind][value=score]").check()
    second = page.locator("#id_rule-second")
    assert second.is_visible()
    page.locator("#id_rule-score_form").select_option("power")
    assert not second.is_visible()
    page.locator("input[name=rule-kind][value=base]").check()
    assert page.get_by_text("no links for voters").is_visible()
    page.locator("input[name=rule-kind][value=n-vote]").check()
    assert order.is_enabled()
    assert not beta.is_visible()
    page.close()
