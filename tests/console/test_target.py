"""Two judges, one for each order, sample exp(2s): the form, the campaign's page and the record say so."""

import json
import zipfile

import pytest
from django.core.management import call_command
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign
from tests.console.test_pages import form
from tests.support.campaigns import assert_replay_passes, export_to, make_campaign, make_recipe

DARK = {"question": "Which is darker?", "budget": 2}
KIND = {"question": "Which is kinder?", "budget": 1}


def both(judge: dict) -> list[dict]:
    return [judge | {"order": order} for order in ("proposal-first", "proposal-second")]


@pytest.mark.parametrize(
    ("judges", "formula"),
    [
        ([DARK], "p0(x) * exp(s1(x))"),
        (both(DARK), "p0(x) * exp(2*s1(x))"),
        ([KIND, *both(DARK)], "p0(x) * exp(s1(x) + 2*s2(x))"),
    ],
)
def test_start_writes_the_law_and_the_setup_shows_it(signed_in, researcher, idle_tasks, tmp_path, judges, formula):
    campaign = make_campaign(researcher, recipe=make_recipe(judges=judges))
    with zipfile.ZipFile(path := export_to(campaign, tmp_path)) as archive:
        recipe = json.loads(archive.read("recipe.json"))
    assert recipe.get("target", "nothing").split("; ")[0] == formula
    assert "Which is darker?" in recipe["target"]
    assert_replay_passes(path)
    page = signed_in.get(reverse("console:edit", args=[campaign.pk])).content.decode()
    assert formula in page


def test_a_draft_shows_what_it_would_sample_and_holds_no_target_yet(signed_in, idle_tasks):
    answer = signed_in.post(reverse("console:create"), form(**{"questions-0-order": "both"}))
    campaign = Campaign.objects.get()
    idle_tasks()
    assert [judge["order"] for judge in campaign.recipe["judges"]] == ["proposal-first", "proposal-second"]
    assert "target" not in campaign.recipe
    assert "p0(x) * exp(2*s1(x))" in signed_in.get(answer.url).content.decode()


def test_a_wrong_target_is_found_by_replay(researcher, idle_tasks, tmp_path, capsys):
    campaign = make_campaign(researcher, recipe=make_recipe(judges=both(DARK)))
    campaign.recipe["target"] = "p0(x) * exp(s1(x))"
    campaign.save()
    with pytest.raises(Exception, match=r"target: .*2\*s1"):
        call_command("replay", str(export_to(campaign, tmp_path)))
