"""Models rate each object alone: the paper's baselines, through the same loop, record and export as votes."""

import numpy as np
import pytest
from django.core.management import CommandError, call_command

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.models import Campaign, Comparison, Rating, Turn, Vote
from tests.campaigns.record.test_export import rewrite
from tests.support.campaigns import (  # noqa: F401 - fixtures
    ONE,
    TWO,
    assert_record_is_whole,
    assert_replay_passes,
    create_draft,
    export_to,
    finish,
    make,
    rated_config,
    rating_endpoint,
    rating_script,
    table,
)
from tests.support.models import chat_reply, returns, votes_asked


@pytest.mark.parametrize(
    ("form", "questions"), [("separate", TWO), ("joint", ONE), ("difference", ONE), ("power", ONE)]
)
def test_a_baseline_runs_to_its_end_and_its_record_replays(
    researcher, endpoint, idle_tasks, tmp_path, client, form, questions
):
    campaign = make(researcher, idle_tasks, form, questions)
    assert campaign.status == Campaign.Status.FINISHED
    assert not Vote.objects.exists()
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert f"20 verdicts recomputed from {Rating.objects.count()} ratings" in assert_replay_passes(path)
    rows = table(path, "ratings.csv")
    assert {(row["endpoint"], row["asks"]) for row in rows} == {("A model", "1")}
    client.force_login(researcher)
    page = client.get(campaign.get_absolute_url()).content.decode()
    assert "sample from another distribution" in page
    assert "→" in page


def test_verdicts_follow_from_the_ratings_and_the_numbers_that_were_drawn(researcher, endpoint, idle_tasks):
    # Ratings differ by up to five points, so that some steps are rejected is as good as certain.
    campaign = make(researcher, idle_tasks, "difference", ONE, steps=30)
    moves = [step for step in Comparison.objects.filter(chain__campaign=campaign) if not step.is_identity]
    for step in moves:
        before, after = (np.mean([r.value for r in state.ratings.all()]) for state in (step.current, step.proposal))
        is_below = step.uniform < min(1, np.exp(step.log_r0 + after - before))
        assert step.verdict == (Comparison.Verdict.ACCEPT if is_below else Comparison.Verdict.REJECT)
    assert len({step.verdict for step in moves}) == 2


def test_the_state_of_a_chain_is_rated_once_however_long_it_stays(researcher, endpoint, script, idle_tasks):
    # Of this form, that a state with the better rating stays for a while is as good as certain.
    config = rated_config("power", ONE, space={"kind": "texts", "scenarios": [3]}, kernel={"kind": "suffix"})
    campaign = create_draft(owner=researcher, is_seed_typed=True, name="Made", config=config)
    lifecycle.start(campaign)
    idle_tasks()
    moves = sum(not step.is_identity for step in Comparison.objects.all())
    assert Comparison.objects.filter(verdict="reject").exists()
    # Each chain's start, and each proposal, three times.
    assert len(votes_asked(script)) == Rating.objects.count() == 3 * (2 + moves)


def test_replies_that_are_no_rating_suspends_the_step_until_somebody_has_seen_to_it(
    researcher, endpoint, script, idle_tasks, tmp_path
):
    script.faults.extend([returns(chat_reply("11"))] * 500)
    campaign = make(researcher, idle_tasks)
    assert {turn.is_suspended for turn in Turn.objects.all()} == {True}
    assert "11 is not between 1 and 10" in Turn.objects.first().reason
    script.faults.clear()
    script.faults.append(returns(chat_reply("eleven")))
    turns.try_again(campaign)
    idle_tasks()
    finish(campaign, idle_tasks)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    # One of the first turn's replies could not be read.
    asks = [row["asks"] for row in table(path, "ratings.csv")]
    assert (asks.count("2"), set(asks)) == (1, {"1", "2"})


TAMPERINGS = {
    "a rating": ("ratings.csv", lambda rows: rows[0].update(rating=str(int(rows[0]["rating"]) % 10 + 1))),
    "a missing rating": ("ratings.csv", lambda rows: rows.pop(0)),
    "all ratings": ("ratings.csv", lambda rows: rows.clear()),
    "a mean": ("evidence.csv", lambda rows: rows[0].update(proposal_number="9.5")),
    "a verdict": ("steps.csv", lambda rows: flip(moved(rows))),
    "a forgotten verdict": ("steps.csv", lambda rows: rows[-1].update(verdict="")),
}


def moved(rows: list[dict]) -> dict:
    return next(row for row in rows if row["verdict"] and row["current_state"] != row["proposal_state"])


def flip(row: dict) -> None:
    row["verdict"] = "accept" if row["verdict"] == "reject" else "reject"


@pytest.fixture
def exported(researcher, endpoint, idle_tasks, tmp_path):
    return export_to(make(researcher, idle_tasks), tmp_path)


def test_replay_finds_a_changed_record(exported, capsys):
    for what, (name, change) in TAMPERINGS.items():
        with pytest.raises(CommandError, match="difference") as refusal:
            call_command("replay", str(rewrite(exported, name, change)))
        assert refusal.value.returncode == 1, what
        assert "DIFFERENT" in capsys.readouterr().out, what
