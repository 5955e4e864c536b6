"""Models rate each object alone: the paper's baselines, through the same loop, record and export as votes."""

import csv
import io
import zipfile

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.model_judges import turns
from prefmh_web.campaigns.models import Campaign, Comparison, Rating, Turn, Vote
from prefmh_web.campaigns.record import export
from prefmh_web.endpoints.models import Endpoint
from tests.support.ratings import (  # noqa: F401 - `rating_endpoint` and `rating_script` are fixtures
    ONE,
    TWO,
    finish,
    make,
    rated_recipe,
    rating_endpoint,
    rating_script,
)
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to, table
from tests.support.scripted_server import (
    chat_reply,
    raw,
    returns,
    status,
    votes_asked,
)


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
    recipe = rated_recipe("power", ONE, space={"kind": "texts", "scenarios": [3]}, kernel={"kind": "suffix"})
    campaign = drafts.create(owner=researcher, is_seed_typed=True, name="Made", recipe=recipe)
    lifecycle.start(campaign)
    idle_tasks()
    moves = sum(not step.is_identity for step in Comparison.objects.all())
    assert Comparison.objects.filter(verdict="reject").exists()
    # Each chain's start, and each proposal, three times.
    assert len(votes_asked(script)) == Rating.objects.count() == 3 * (2 + moves)


def test_an_object_of_a_catalog_is_rated_once_for_all_visits(researcher, endpoint, script, idle_tasks):
    make(researcher, idle_tasks, chains=1, steps=40)
    seen = {
        pk for step in Comparison.objects.all() if not step.is_identity for pk in (step.current_id, step.proposal_id)
    }
    assert len(seen) < 20
    assert len(votes_asked(script)) == Rating.objects.count() == 4 * len(seen)


@pytest.mark.parametrize(
    ("fault", "word"),
    [(status(500), "500"), (status(429, Retry_After="7"), "429"), (raw(b"no json"), "")],
    ids=["server error", "rate limit", "garbage"],
)
def test_a_passing_fault_leaves_the_step_open_and_the_campaign_goes_on(
    researcher, endpoint, script, idle_tasks, tmp_path, fault, word
):
    script.faults.extend([fault] * 200)
    campaign = make(researcher, idle_tasks)
    assert campaign.status == Campaign.Status.RUNNING
    turns = list(Turn.objects.all())
    assert turns
    assert all(turn.reason.startswith("A model: ") and word in turn.reason and turn.until for turn in turns)
    assert_replay_passes(export_to(campaign, tmp_path))
    script.faults.clear()
    # The time passes, and the server is well again.
    Turn.objects.update(until=turns[0].since)
    Endpoint.objects.update(open_until=None, failures=0)
    finish(campaign, idle_tasks)
    assert not Turn.objects.exists()
    assert_record_is_whole(campaign)
    assert_replay_passes(export_to(campaign, tmp_path))


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
    "a mean": ("steps.csv", lambda rows: moved(rows).update(proposal_ratings="9.5 9.5")),
    "a verdict": ("steps.csv", lambda rows: flip(moved(rows))),
    "a forgotten verdict": ("steps.csv", lambda rows: rows[-1].update(verdict="")),
}


def moved(rows: list[dict]) -> dict:
    return next(row for row in rows if row["current_ratings"])


def flip(row: dict) -> None:
    row["verdict"] = "accept" if row["verdict"] == "reject" else "reject"


@pytest.fixture
def exported(researcher, endpoint, idle_tasks, tmp_path):
    return export_to(make(researcher, idle_tasks), tmp_path)


def rewritten(path, changed_name, change):
    """Return a copy of an export with one file's rows changed."""
    copy = path.with_name("changed.zip")
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(copy, "w") as after:
        for name in before.namelist():
            text = before.read(name).decode()
            if name == changed_name:
                rows = table(path, name)
                columns = list(rows[0])
                change(rows)
                out = io.StringIO()
                writer = csv.DictWriter(out, columns)
                writer.writeheader()
                writer.writerows(rows)
                text = out.getvalue()
            after.writestr(name, text)
    return copy


def test_replay_finds_a_changed_record(exported, capsys):
    for what, (name, change) in TAMPERINGS.items():
        with pytest.raises(CommandError, match="difference") as refusal:
            call_command("replay", str(rewritten(exported, name, change)))
        assert refusal.value.returncode == 1, what
        assert "DIFFERENT" in capsys.readouterr().out, what


def test_a_rating_that_nobody_can_have_given_is_refused(exported):
    for cells, reason in [
        ({"rating": "11"}, "must be 1 to 10, not “11”"),
        ({"rating": "٣"}, "must be 1 to 10"),
        ({"slot": "3"}, "is not possible"),
        ({"judge": "2"}, "is not possible"),
        ({"state": "99"}, "is not possible"),
        ({"slot": "1"}, "occurs twice"),
    ]:
        changed = rewritten(exported, "ratings.csv", lambda rows, cells=cells: rows[0].update(cells))
        with pytest.raises(CommandError, match=reason) as refusal:
            call_command("replay", str(changed))
        assert refusal.value.returncode == 2


def test_a_vote_among_ratings_is_found(exported):
    record = sampler.read_record(exported)
    vote = {
        "chain": "0", "step": "1", "number": "1", "judge": "0", "question": TWO[0][0], "annotator": "1",
        "proposal_side": "left", "chosen_side": "left", "for_proposal": "1",
    }  # fmt: skip
    found = sampler.replay(record.recipe, record.states, record.steps, [vote], record.samples, record.ratings)
    assert [difference.recomputed for difference in found.differences] == ["none: ratings decide"]


def test_other_campaigns_export_no_rating_and_replay_without_the_file(campaign, tmp_path):
    path = export_to(campaign, tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert archive.read("ratings.csv").decode().splitlines() == [
            "state,judge,slot,rating,asks,endpoint,rated_at,identity"
        ]
        names = [name for name in archive.namelist() if name != "ratings.csv"]
        with zipfile.ZipFile(tmp_path / "old.zip", "w") as old:
            for name in names:
                old.writestr(name, archive.read(name))
    assert_replay_passes(tmp_path / "old.zip")
    record = sampler.read_record(path)
    rating = {"state": "0", "judge": "0", "slot": "0", "rating": "3"}
    with pytest.raises(sampler.RecordError, match="where votes decide"):
        sampler.replay(record.recipe, record.states, record.steps, record.votes, record.samples, [rating])


def test_ratings_given_while_an_export_streams_do_not_tear_it(researcher, endpoint, script, idle_tasks, tmp_path):
    script.faults.extend([status(500)] * 200)
    recipe = rated_recipe(space={"kind": "texts", "scenarios": [3]}, kernel={"kind": "suffix"})
    campaign = drafts.create(owner=researcher, is_seed_typed=True, name="Made", recipe=recipe)
    lifecycle.start(campaign)
    idle_tasks()
    chunks = export.archive(campaign)
    parts = [next(chunks)]
    script.faults.clear()
    Turn.objects.all().delete()
    Endpoint.objects.update(open_until=None, failures=0)
    finish(campaign, idle_tasks)
    path = tmp_path / "torn.zip"
    path.write_bytes(b"".join([*parts, *chunks]))
    assert "verdicts recomputed" in assert_replay_passes(path)
    assert not table(path, "ratings.csv")
    assert Rating.objects.exists()


def test_nobody_is_asked_to_vote_where_models_rate(researcher, endpoint, idle_tasks, client):
    campaign = make(researcher, idle_tasks)
    # It is finished, so nobody can join it.
    assert client.get(reverse("annotate:welcome", args=[campaign.invitations.get().token])).status_code == 403
    assert not Vote.objects.exists()
