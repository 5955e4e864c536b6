"""Campaigns that ask nobody: independent draws, scores of molecules, QUEST's quality estimates; run by the real server,
exported and replayed.
"""

import time

import pytest
from django.db.models import F
from django.urls import reverse

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign, CampaignScorer, Comparison, Score, Vote
from sampler.cli import main
from tests.support.campaigns import assert_record_is_whole, assert_replay_passes, create_draft, export_to, table

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


def started(owner, config: dict, **fields) -> Campaign:
    config = {"version": 1, "judges": [], "chains": 2, "seed": 7} | config
    campaign = create_draft(owner=owner, config=config, **fields)
    lifecycle.start(campaign)
    return campaign


def finished(campaign: Campaign, seconds: float = 60) -> Campaign:
    until = time.monotonic() + seconds
    while campaign.status != Campaign.Status.FINISHED:
        assert time.monotonic() < until, f"{campaign.status} after {seconds} s"
        time.sleep(0.05)
        campaign.refresh_from_db()
    return campaign


@pytest.fixture
def quality(declare):
    declare(QUALITY, name="quality")
    return declare


@pytest.fixture
def made(request, researcher, live_site, quality):
    """Run a campaign of the config that the test asks for to its end."""
    return finished(started(researcher, request.param))


@pytest.mark.parametrize("made", [BASE], indirect=True)
def test_a_base_campaign_runs_to_its_end_without_a_vote(made, tmp_path, client):
    assert_record_is_whole(made)
    assert not Vote.objects.exists()
    path = export_to(made, tmp_path)
    assert "30 verdicts recomputed from 0 votes" in assert_replay_passes(path)
    assert {row["verdict"] for row in table(path, "steps.csv")} == {"accept"}
    assert {row["log_r0"] for row in table(path, "steps.csv")} == {"0.0"}
    # Nobody is asked, so there is no link to send.
    assert not made.invitations.exists()
    client.force_login(made.owner)
    assert "each state is an independent draw" in client.get(reverse("console:edit", args=[made.pk])).content.decode()
    assert "People online" not in client.get(made.get_absolute_url()).content.decode()


@pytest.mark.parametrize("made", [MARS], indirect=True)
def test_scores_of_molecules_decide_and_stand_in_the_record(made, tmp_path, client):
    assert_record_is_whole(made)
    path = export_to(made, tmp_path)
    assert f"30 verdicts recomputed from {Score.objects.count()} scores" in assert_replay_passes(path)
    moves = [row for row in table(path, "steps.csv") if row["current_state"] != row["proposal_state"]]
    assert {row["verdict"] for row in moves} == {"accept", "reject"}
    scored = {(row["state_index"], row["scorer"]) for row in table(path, "scores.csv")}
    assert {(row["proposal_state"], name) for row in moves for name in ("qed", "synthetic_accessibility")} <= scored
    client.force_login(made.owner)
    page = client.get(made.get_absolute_url()).content.decode()
    assert "<th>synthetic_accessibility</th>" in page
    assert "→" in page


@pytest.mark.parametrize("made", [QUEST], indirect=True)
def test_quality_estimates_of_a_program_decide_and_the_replay_needs_no_program(made, tmp_path, settings):
    assert_record_is_whole(made)
    path = export_to(made, tmp_path)
    settings.SCORERS = {}
    assert "30 verdicts recomputed from" in assert_replay_passes(path)
    moves = [row for row in table(path, "steps.csv") if row["current_state"] != row["proposal_state"]]
    assert {row["verdict"] for row in moves} == {"accept", "reject"}
    assert made.config.law.startswith("p0(x) * exp(r(x)/0.5)")


def test_a_scorer_that_fails_holds_up_the_steps_and_no_longer(researcher, live_site, quality, tmp_path, client):
    quality("sys.exit(1)", name="broken")
    campaign = started(researcher, QUEST | {"rule": {"kind": "quest", "scorer": "broken", "beta": 0.5}})
    scorer = CampaignScorer.objects.get()
    until = time.monotonic() + 30
    while not (scorer.stopped_because or Score.objects.exists()):
        assert time.monotonic() < until
        time.sleep(0.05)
        scorer.refresh_from_db()
    assert not Comparison.objects.filter(verdict__isnull=False).exclude(current=F("proposal")).exists()
    assert_replay_passes(export_to(campaign, tmp_path))
    client.force_login(researcher)
    assert "wait" in client.get(campaign.get_absolute_url()).content.decode()
    # The program is mended under its name, and somebody tries again.
    quality(QUALITY, name="broken")
    client.post(reverse("console:score-again", args=[campaign.pk]))
    finished(campaign)
    assert_replay_passes(export_to(campaign, tmp_path))


@pytest.mark.parametrize("made", [BASE, MARS, QUEST], ids=["base", "score", "quest"], indirect=True)
def test_a_record_without_judges_has_a_report(made, tmp_path, capsys):
    assert main(["diagnose", str(export_to(made, tmp_path))]) == 0
    told = capsys.readouterr().out
    assert "effective sample size" in told
    assert "nan" not in told
