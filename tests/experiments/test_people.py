"""`manage.py experiment compare … --people`: two people vote on the pages, and the table says whom they prefer."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client
from scipy.special import expit

import sampler
from prefmh_web.campaigns.models import Campaign, State
from prefmh_web.experiments.models import ExperimentCampaign
from tests.support.compared_records import write_list, write_texts
from tests.support.record import assert_replay_passes, export_to
from tests.support.stack import invitation_path, wait_until_idle

PLANTED = {"ash": 0.8, "birch": -0.8}
LEAN = 0.4
QUESTION = "Which is the better opening?"
PROMPTS = [f"Write about {number}." for number in range(40)]
ANSWERS = 3

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def owner(django_user_model):
    return django_user_model.objects.create_user("researcher")


@pytest.fixture
def records(tmp_path) -> list[str]:
    return [
        str(write_texts(tmp_path / f"secret-{tree}.zip", lambda chain, step, tree=tree: f"{tree} {chain}", PROMPTS))
        for tree in PLANTED
    ]


def compare(out: Path, *given: str) -> str:
    said = io.StringIO()
    options = ["--question", QUESTION, "--people", "--out", str(out), "--matches", "1", "--answers", str(ANSWERS)]
    call_command("experiment", "compare", *options, *given, stdout=said)
    wait_until_idle()
    return said.getvalue()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def join(path: str) -> Client:
    found = Client()
    found.post(path)
    return found


def answer(person: Client, path: str, rng: np.random.Generator, strengths: dict[str, float]) -> bool:
    """Let somebody answer what their page shows; False if it shows no pair."""
    page = person.get(f"{path}vote/")
    screen = page.context["screen"]
    if getattr(screen.visit, "lease", None) is None:
        return False
    left, right = re.findall(r"\b(ash|birch) \d+", page.content.decode())[:2]
    assert not re.search(r"secret|\.zip|\br[12]\b", page.content.decode())
    is_left = rng.random() < expit(strengths[left] - strengths[right] + LEAN)
    answered = person.post(
        f"{path}vote/", {"choice": "left" if is_left else "right", "lease": screen.visit.lease.key, "elapsed_ms": "900"}
    )
    assert answered.status_code == 302
    wait_until_idle()
    return True


def vote_to_the_end(campaign: Campaign, strengths: dict[str, float], most: int = 10_000) -> None:
    path, rng = invitation_path(campaign), np.random.default_rng(20261124)
    people = [join(path) for _ in range(ANSWERS)]
    for _ in range(most):
        # Both, whatever the first one found.
        if sum(answer(each, path, rng, strengths) for each in people) == 0:
            return


def strengths_in(out: Path) -> dict[str, tuple[float, float]]:
    table = rows(out / "table.csv")
    return {row["name"]: (float(row["low"]), float(row["high"])) for row in table if row["column"] == "strength"}


def test_three_people_vote_and_the_table_says_whom_they_prefer(records, tmp_path, idle_tasks):
    out = tmp_path / "out"
    told = compare(out, *records)
    campaign = ExperimentCampaign.objects.get().campaign
    assert invitation_path(campaign) in told
    assert "0 of 120 answers, of 0 people" in told
    assert rows(out / "table.csv")[0]["value"] == ""
    vote_to_the_end(campaign, PLANTED, most=10)
    assert "30 of 120 answers, of 3 people" in compare(out, *records)
    assert len(rows(out / "evaluation" / "votes.csv")) == 30
    vote_to_the_end(campaign, PLANTED)
    told = compare(out, *records)
    assert "120 of 120 answers" in told
    assert "Invite" not in told
    votes = rows(out / "evaluation" / "votes.csv")
    # Each pair was answered so often, whoever won, in both orders by turns of chance.
    assert set(Counter(row["pair"] for row in votes).values()) == {ANSWERS}
    assert 40 < sum(row["one_first"] == "1" for row in votes) < 80
    # Nobody answered a pair twice, in whatever order it stood.
    assert {row["voter"] for row in votes} == {"1", "2", "3", "4", "5", "6"}
    assert len({(row["pair"], row["voter"]) for row in votes}) == len(votes)
    found = strengths_in(out)
    assert all(found[f"secret-{tree}"][0] <= value <= found[f"secret-{tree}"][1] for tree, value in PLANTED.items())
    assert found["secret-ash"][0] > found["secret-birch"][1]
    assert "s over" not in (out / "table.md").read_text()
    assert Campaign.objects.count() == 1
    assert "120 verdicts" in assert_replay_passes(export_to(campaign, tmp_path))
    # From files alone, and the same bytes.
    before = (out / "table.csv").read_bytes()
    sampler.write_report(out)
    assert (out / "table.csv").read_bytes() == before


def test_people_who_prefer_the_other_have_the_other_above(records, tmp_path, idle_tasks):
    """The control: it is what people choose that the table tells, not the places of the records."""
    out = tmp_path / "out"
    compare(out, *records)
    vote_to_the_end(ExperimentCampaign.objects.get().campaign, {"ash": -0.8, "birch": 0.8})
    compare(out, *records)
    found = strengths_in(out)
    assert found["secret-birch"][0] > found["secret-ash"][1]


def test_two_people_cannot_give_three_answers_and_a_third_one_ends_it(records, tmp_path, idle_tasks):
    """Each pair is asked in turns of chance in both orders; nobody gets it a second time, whichever way round."""
    compare(tmp_path / "out", *records)
    campaign, rng = Campaign.objects.get(), np.random.default_rng(1)
    path = invitation_path(campaign)
    two, third = [join(path), join(path)], join(path)
    while sum(answer(each, path, rng, PLANTED) for each in two):
        pass
    told = compare(tmp_path / "out", *records)
    assert "80 of 120 answers, of 2 people" in told
    assert "its 3 answers take 3 people" in told
    assert "There is no pair for you at the moment" in two[0].get(f"{path}vote/").content.decode()
    while answer(third, path, rng, PLANTED):
        pass
    assert "120 of 120 answers, of 3 people" in compare(tmp_path / "out", *records)
    assert "This campaign is finished" in two[0].get(f"{path}vote/").content.decode()


def test_the_campaign_holds_the_objects_and_no_name_of_a_record(records, tmp_path, idle_tasks):
    compare(tmp_path / "out", *records)
    campaign = Campaign.objects.get()
    assert not re.search(r"secret|\.zip", json.dumps(campaign.recipe) + campaign.name)
    assert State.objects.filter(campaign=campaign, content="ash 7").exists()


def test_options_that_do_not_go_with_people_are_refused(records, tmp_path):
    listed = [str(write_list(tmp_path / f"{name}.zip", "images", lambda *_: "red.png", 2)) for name in ("one", "two")]
    for given, told in (
        ((*records, "--endpoint", "judge=known"), "--endpoint must be left out where people vote"),
        ((*records, "--max-requests", "3"), "--max-requests must be left out where people vote"),
        ((*records, "--evaluator-votes", "log-probabilities"), "--evaluator-votes must be left out"),
        ((*records, "--answers", "0"), "--answers must be 1 at least"),
        (tuple(listed), "one.zip: it holds no pictures, as exports of earlier versions do not; export the campaign"),
    ):
        with pytest.raises(CommandError) as error:
            compare(tmp_path / "other", *given)
        assert (error.value.returncode, told in str(error.value)) == (2, True), str(error.value)
    with pytest.raises(CommandError, match="only compare takes it"):
        call_command("experiment", "stories", "--people", "--dry-run")
    assert not Campaign.objects.exists()
