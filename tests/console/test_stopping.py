"""The form of a stopping rule: kept, shown, taken away, and refused beside its fields."""

import pytest
from django.urls import reverse

from prefmh_web.campaigns.lifecycle import unparking
from prefmh_web.campaigns.models import Campaign
from tests.campaigns.engine.test_looks import EASY, campaign_with
from tests.campaigns.engine.test_parking import skip
from tests.campaigns.engine.test_rounds import finish
from tests.console.test_pages import form

RULE = {"stop_property": "words", "stop_ess": "50", "stop_r_hat": "1.1", "stop_first": "5", "stop_every": "2"}
USUAL = {"catalog-distance": "fixed", "most_chains": ""}


def page_of(client, name: str, campaign: Campaign) -> str:
    return client.get(reverse(f"console:{name}", args=[campaign.pk])).content.decode()


def test_a_rule_is_kept_and_shown_and_can_be_taken_away(signed_in, idle_tasks):
    signed_in.post(reverse("console:create"), form(**USUAL, **RULE))
    campaign = Campaign.objects.get()
    assert campaign.recipe["stopping"] == {"property": "words", "ess": 50, "r_hat": 1.1, "first": 5, "every": 2}
    assert 'name="stop_first" value="5"' in page_of(signed_in, "edit", campaign)
    page = page_of(signed_in, "campaign", campaign)
    assert "all chains stop at the first of the steps 5, 7, … before 10" in page
    assert "So the length depends on what was seen." in page
    none = RULE | {"stop_property": ""}
    signed_in.post(reverse("console:edit", args=[campaign.pk]), form(**USUAL, **none, **{"catalog-file": ""}))
    campaign.refresh_from_db()
    assert "stopping" not in campaign.recipe


def test_a_rule_fixes_the_number_of_chains_that_nobody_has_typed(signed_in, idle_tasks):
    signed_in.post(reverse("console:create"), form(**USUAL, **RULE) | {"most_chains": "100"})
    recipe = Campaign.objects.get().recipe
    assert "most_chains" not in recipe
    assert recipe["stopping"]["property"] == "words"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"stop_first": "10"}, "must be less than the 10 steps"),
        ({"stop_first": ""}, "Field required"),
        ({"stop_property": "qed"}, "there is no property &#x27;qed&#x27; of these objects"),
        ({"stop_r_hat": "1"}, "greater than 1"),
        ({"stop_property": ""}, "Without a property there is no rule."),
        ({"stop_property": "", "stop_first": ""}, "Without a property there is no rule."),
        ({"most_chains": "90"}, "does not go with chains that open later"),
    ],
)
def test_what_does_not_fit_is_refused_beside_its_field(signed_in, changes, problem):
    page = signed_in.post(reverse("console:create"), form(**USUAL | RULE | changes)).content.decode()
    assert problem in page
    assert not Campaign.objects.exists()


def test_a_chain_that_was_ended_was_not_stopped_by_the_rule(signed_in, researcher, idle_tasks):
    campaign = campaign_with(researcher, EASY, fields={"park_after_skips": 1})
    unparking.end_chain(skip(campaign).pk, "A file is broken.")
    finish(campaign)
    step = campaign.looks.get(stops=True).step
    told = f"The stopping rule was met at step {step}, and each of the other chains stopped there."
    assert f"1 chain was ended at a parked step. {told}" in page_of(signed_in, "campaign", campaign)
