"""Campaigns that ask nobody: independent draws and scores of molecules; run to their end, exported and replayed."""

from pathlib import Path

import pytest
from django.db.models import F
from django.urls import reverse

from prefmh_web.campaigns.models import Campaign, CampaignScorer, Comparison, Score, Vote
from sampler.__main__ import main
from tests.support.campaigns import create_draft, live_page, started_now, swept
from tests.support.records import assert_record_is_whole, assert_replay_passes, checked_export, export_to, table

TEXTS = {"kind": "texts", "scenarios": [0, 3], "temperature": 1.0}
BASE = {"space": TEXTS, "kernel": {"kind": "independent"}, "rule": {"kind": "base"}, "steps": 15}
MARS = {
    "space": {"kind": "molecules"},
    "kernel": {"kind": "fragments"},
    "rule": {"kind": "score", "form": "mars", "beta": 4},
    "steps": 15,
}
QUEST = {
    "space": TEXTS,
    "kernel": {"kind": "suffix", "cut": "length"},
    "rule": {"kind": "quest", "scorer": "quality", "beta": 0.5},
    "steps": 15,
}
# A stand-in for a quality estimate: a number between 0 and 1 that depends on the text alone.
QUALITY = "print(0.05 + 0.9 * (sum(map(ord, told['content'])) % 101) / 100, flush=True)"


def started(owner, config: dict) -> Campaign:
    config = {"version": 1, "judges": [], "chains": 2, "seed": 7} | config
    return swept(started_now(create_draft(owner=owner, config=config)))


@pytest.fixture
def quality(declare):
    declare(QUALITY, name="quality")
    return declare


@pytest.fixture
def finished(researcher, idle_tasks, quality, tmp_path, capsys):
    """Return what runs a campaign to its end; its record, checked, with its replay's words; all have a report."""

    def run(config: dict) -> tuple[Campaign, Path, str]:
        campaign = started(researcher, config)
        assert campaign.status == Campaign.Status.FINISHED
        assert_record_is_whole(campaign)
        path = export_to(campaign, tmp_path)
        assert main(["diagnose", str(path)]) == 0
        told = capsys.readouterr().out
        assert "effective sample size" in told
        assert "nan" not in told
        return campaign, path, assert_replay_passes(path)

    return run


def verdicts_of_moves(path: Path) -> tuple[list[dict[str, str]], set[str]]:
    moves = [row for row in table(path, "steps.csv") if row["current_state"] != row["proposal_state"]]
    return moves, {row["verdict"] for row in moves}


def test_a_base_campaign_runs_to_its_end_without_a_vote(finished, client):
    made, path, replayed = finished(BASE)
    assert not Vote.objects.exists()
    assert "30 verdicts recomputed from 0 votes" in replayed
    assert {(row["verdict"], row["log_r0"]) for row in table(path, "steps.csv")} == {("accept", "0.0")}
    # Nobody is asked, so there is no link to send.
    assert not made.invitations.exists()
    client.force_login(made.owner)
    assert "each state is an independent draw" in client.get(reverse("console:edit", args=[made.pk])).content.decode()
    assert "People online" not in live_page(client, made)


def test_scores_of_molecules_decide_and_stand_in_the_record(finished, client, capsys):
    made, path, replayed = finished(MARS)
    assert f"30 verdicts recomputed from {Score.objects.count()} scores" in replayed
    assert main(["verify", str(path)]) == 0
    assert f"follow from the {Score.objects.count()} scores" in capsys.readouterr().out
    moves, verdicts = verdicts_of_moves(path)
    assert verdicts == {"accept", "reject"}
    scored = {(row["state_index"], row["scorer"]) for row in table(path, "scores.csv")}
    assert {(row["proposal_state"], name) for row in moves for name in ("qed", "synthetic_accessibility")} <= scored
    client.force_login(made.owner)
    page = live_page(client, made)
    assert "<th>synthetic_accessibility</th>" in page
    assert "→" in page


def test_a_scorer_that_fails_holds_up_the_steps_and_no_longer(researcher, idle_tasks, quality, tmp_path, client):
    quality("sys.exit(1)", name="broken")
    campaign = started(researcher, QUEST | {"rule": {"kind": "quest", "scorer": "broken", "beta": 0.5}})
    assert CampaignScorer.objects.get().stopped_because
    assert not Comparison.objects.filter(verdict__isnull=False).exclude(current=F("proposal")).exists()
    checked_export(campaign, tmp_path)
    client.force_login(researcher)
    assert "A scorer needs you." in live_page(client, campaign)
    # The program is fixed under its name, and somebody tries again.
    quality(QUALITY, name="broken")
    client.post(reverse("console:score-again", args=[campaign.pk]))
    idle_tasks()
    assert swept(campaign).status == Campaign.Status.FINISHED
    checked_export(campaign, tmp_path)
