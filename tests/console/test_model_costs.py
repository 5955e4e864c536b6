"""What models cost on the researcher's pages: the estimate, the live figures, caps in the setup and while it runs."""

import pytest
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from tests.flows.test_model_caps import settled
from tests.flows.test_model_costs import QUESTION, asked, by_model, draft, endpoint, script, started
from tests.security.world import browser_of
from tests.support.campaigns import live_page

__all__ = ["endpoint", "script"]


def cap(browser, campaign: Campaign, **fields: str) -> str:
    return browser.post(reverse("console:caps", args=[campaign.pk]), fields, follow=True).content.decode()


@pytest.mark.parametrize(
    ("judge", "at_most", "expected"),
    [
        # 2 chains of 8 steps, 3 votes each; of one judge it is known how many are needed on average.
        (by_model(budget=3), 48, True),
        (by_model(budget=3, votes="log-probabilities"), 32, False),
        (by_model(budget=1, votes="log-probabilities"), 16, False),
    ],
)
def test_the_draft_s_page_shows_what_the_models_will_take(researcher, endpoint, idle_tasks, judge, at_most, expected):
    page = browser_of(researcher).get(draft(researcher, judge).get_absolute_url())
    (estimate,) = page.context["board"].estimates
    assert estimate.most == at_most
    assert (estimate.expected is not None) == expected
    if expected:
        assert at_most / 3 < estimate.expected < at_most
    # Nothing has been asked: no figure is made up.
    assert "price unknown until a request has been made" in page.content.decode()


def test_the_live_page_shows_figures_the_reason_of_the_pause_and_a_form_to_raise_the_cap(
    researcher, endpoint, script, idle_tasks
):
    desk = browser_of(researcher)
    campaign = settled(started(idle_tasks, draft(researcher, by_model(budget=3), cost_cap="0.10")), idle_tasks)
    page = live_page(desk, campaign)
    requests = len(asked(script, QUESTION))
    assert f"{requests} requests" in page
    assert f"{10 * requests} %" in page
    assert "The cap of 0.10 is reached" in page
    refused = desk.post(reverse("console:resume", args=[campaign.pk]), follow=True).content.decode()
    assert "Raise the cap, then press Resume." in refused

    wrong = cap(desk, campaign, cost_cap="much", request_cap="")
    assert "Models may cost at most: Enter a number. Nothing was changed." in wrong
    assert not campaign.events.filter(kind="caps").exists()

    assert "The caps are changed. Press Resume to go on." in cap(desk, campaign, cost_cap="5", request_cap="")
    assert "The cap of 0.10 is reached" not in live_page(desk, campaign)
    desk.post(reverse("console:resume", args=[campaign.pk]))
    idle_tasks()
    page = live_page(desk, campaign)
    assert "finished" in page
    assert "Change the caps" not in page
    assert "Only the caps of a running or paused campaign" in cap(desk, campaign, cost_cap="9", request_cap="")
