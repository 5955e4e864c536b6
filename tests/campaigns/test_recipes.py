"""Campaigns of prefmh 0.1.0, whose recipes are of version 1: drafts and started ones, after migrating."""

import importlib
import json
import pkgutil
import zipfile
from datetime import timedelta

import numpy as np
import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.urls import reverse

from prefmh_web.campaigns import lifecycle, migrations, tasks
from prefmh_web.campaigns.models import Annotator, Campaign, Catalog, Comparison, Turn
from prefmh_web.endpoints.models import Endpoint
from tests.support.ratings import (  # noqa: F401 - `rating_endpoint` and `rating_script` are fixtures
    ONE,
    TWO,
    NoisyRater,
    finish,
    make,
    rated_recipe,
    rating_endpoint,
    rating_script,
)
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to
from tests.support.scripted_server import status
from tests.support.stack import make_campaign, make_draft, make_recipe, vote_until_finished

DARK = {"question": "Which is darker?", "budget": 2}
HALVES = [DARK | {"order": order} for order in ("proposal-first", "proposal-second")]


def make_old(campaign: Campaign) -> None:
    """Give a campaign the recipe that 0.1.0 would have stored."""
    recipe = {name: value for name, value in campaign.recipe.items() if name != "target"} | {"version": 1}
    # What this process remembers of a started campaign goes by the time of its start.
    started_at = campaign.started_at and campaign.started_at - timedelta(seconds=1)
    Campaign.objects.filter(pk=campaign.pk).update(recipe=recipe, started_at=started_at)


def migrate() -> None:
    """Do what the migration does with the recipes it finds."""
    name = next(each.name for each in pkgutil.iter_modules(migrations.__path__) if "recipes_of_version_2" in each.name)
    importlib.import_module(f"{migrations.__name__}.{name}").carry_over(apps, None)


def exported(campaign: Campaign, folder) -> dict:
    with zipfile.ZipFile(export_to(campaign, folder)) as archive:
        return json.loads(archive.read("recipe.json"))


def refusal(campaign: Campaign, folder) -> str:
    with pytest.raises(CommandError) as refused:
        call_command("replay", str(export_to(campaign, folder)))
    return str(refused.value)


def test_a_draft_becomes_version_2_and_starts(researcher, idle_tasks):
    campaign = make_draft(researcher, recipe=make_recipe())
    make_old(campaign)
    migrate()
    campaign.refresh_from_db()
    assert campaign.recipe["version"] == 2
    lifecycle.start(campaign)
    idle_tasks()
    assert campaign.recipe["target"].startswith("p0(x) * exp(s1(x) + s2(x))")


def test_a_draft_that_cannot_be_started_any_more_still_has_its_file_read(researcher, idle_tasks):
    campaign = make_draft(researcher, recipe=make_recipe(judges=[DARK]))
    make_old(campaign)
    campaign.refresh_from_db()
    lone = campaign.recipe | {"judges": [DARK | {"order": "proposal-first"}]}
    Campaign.objects.filter(pk=campaign.pk).update(recipe=lone)
    migrate()
    Catalog.objects.filter(campaign=campaign).update(status=Catalog.Status.READING, rows_read=0)
    campaign.states.all().delete()
    tasks.sweep()
    idle_tasks()
    catalog = Catalog.objects.get(campaign=campaign)
    assert (catalog.status, catalog.error, campaign.states.count()) == (Catalog.Status.READY, "", 12)


@pytest.mark.parametrize("judges", [[DARK], HALVES])
def test_a_campaign_of_votes_goes_on_as_version_2_and_its_whole_record_replays(
    researcher, idle_tasks, tmp_path, judges
):
    campaign = make_campaign(researcher, recipe=make_recipe(judges=judges, chains=2, steps=12))
    make_old(campaign)
    migrate()
    campaign.refresh_from_db()
    people = [Annotator.objects.create(campaign=campaign) for _ in range(3)]
    places = {place: (lambda state: state / 5) for place in range(len(judges))}
    vote_until_finished(campaign, people, places, np.random.default_rng(3))
    assert exported(campaign, tmp_path)["version"] == 2
    assert_replay_passes(export_to(campaign, tmp_path))


@pytest.mark.parametrize(("form", "questions"), [("difference", ONE), ("power", ONE)])
def test_ratings_that_mean_the_same_become_version_2(researcher, endpoint, idle_tasks, tmp_path, form, questions):
    campaign = make(researcher, idle_tasks, form, questions)
    make_old(campaign)
    migrate()
    assert_replay_passes(export_to(Campaign.objects.get(), tmp_path))


@pytest.mark.parametrize(("form", "questions", "lowest"), [("separate", TWO, 1), ("joint", ONE, 1), ("joint", ONE, 0)])
def test_ratings_on_the_old_scale_are_finished_by_the_rule_they_began_with(
    researcher,
    endpoint,
    script,
    idle_tasks,
    tmp_path,
    client,
    form,
    questions,
    lowest,
):
    script.faults.extend([status(500)] * 400)
    rule = {"kind": "pointwise", "form": form, "lowest": lowest}
    campaign = make_draft(researcher, recipe=rated_recipe(form, questions, rule=rule, steps=20))
    lifecycle.start(campaign)
    idle_tasks()
    make_old(campaign)
    migrate()
    campaign.refresh_from_db()
    assert campaign.recipe["version"] == 1
    script.faults.clear()
    Turn.objects.update(until=campaign.started_at)
    Endpoint.objects.update(open_until=None, failures=0)
    finish(campaign, idle_tasks)
    assert_record_is_whole(campaign)
    for step in Comparison.objects.all():
        if step.is_identity:
            continue
        before, after = (sum(means(state, 10 - lowest, lowest)) for state in (step.current, step.proposal))
        accepted = step.uniform < min(1, np.exp(step.log_r0 + after - before))
        assert step.verdict == ("accept" if accepted else "reject")
    # The record is what its recipe says it is, a record of version 1.
    assert exported(campaign, tmp_path)["version"] == 1
    message = refusal(campaign, tmp_path)
    assert "version 1 is read by prefmh 0.1.0" in message
    assert message.count(". ") == 0
    client.force_login(researcher)
    page = client.get(reverse("console:edit", args=[campaign.pk])).content.decode()
    assert f"r1(x)/{10 - lowest}" in page


def means(state, unit: int, lowest: int) -> list[float]:
    """Return an object's mean rating by each judge, on a scale of its own."""
    by_judge: dict[int, list[int]] = {}
    for rating in state.ratings.all():
        by_judge.setdefault(rating.judge_id, []).append(rating.value)
    return [(float(np.mean(values)) - lowest) / unit for values in by_judge.values()]


def test_a_campaign_with_a_judge_of_one_order_is_finished_and_stays_version_1(researcher, idle_tasks, tmp_path):
    campaign = make_campaign(researcher, recipe=make_recipe(judges=[DARK], chains=2, steps=12))
    Campaign.objects.update(recipe=campaign.recipe | {"judges": HALVES[:1]})
    campaign.judges.update(order="proposal-first")
    campaign.refresh_from_db()
    make_old(campaign)
    migrate()
    campaign.refresh_from_db()
    people = [Annotator.objects.create(campaign=campaign) for _ in range(3)]
    vote_until_finished(campaign, people, {0: lambda state: state / 5}, np.random.default_rng(3))
    assert exported(campaign, tmp_path)["version"] == 1
    assert "prefmh 0.1.0" in refusal(campaign, tmp_path)
