"""scores.csv and scorers.json: only where there are scorers, checked by replay, and followed by the report."""

import json
import zipfile

import numpy as np
import pytest
from django.core.management import CommandError, call_command

import sampler
from prefmh_web.campaigns.models import Score
from sampler.diagnostics.report import diagnose
from tests.campaigns.record.test_export import rewrite
from tests.support.campaigns import (
    assert_replay_passes,
    export_to,
    make_campaign,
    make_config,
    sweep_everything,
    table,
    voted_to_the_end,
)


@pytest.fixture
def scored(researcher, idle_tasks, declare, tmp_path):
    """The export of a finished campaign with a measured scorer and a program."""
    declare("print('nan' if 'red dog' in told['content'] else len(told['content']) / 3, flush=True)")
    campaign = make_campaign(researcher, config=make_config(chains=2, steps=12), scorer_names="words length")
    voted_to_the_end(campaign)
    sweep_everything()
    idle_tasks()
    return export_to(campaign, tmp_path)


def test_a_record_has_every_score_to_its_last_digit_and_replays_without_a_scorer(scored, settings):
    settings.SCORERS = {}
    assert "24 verdicts" in assert_replay_passes(scored)
    contents = {row["state_index"]: row["content"] for row in table(scored, "states.csv")}
    rows = table(scored, "scores.csv")
    assert list(rows[0]) == ["state_index", "scorer", "score"]
    assert len(rows) == Score.objects.count()
    for row in rows:
        content = contents[row["state_index"]]
        if row["scorer"] == "words":
            assert float(row["score"]) == len(content.split())
        else:
            assert row["score"] == ("" if "red dog" in content else repr(len(content) / 3))
    with zipfile.ZipFile(scored) as archive:
        words, length = json.loads(archive.read("scorers.json"))
    assert words == {"name": "words", "kind": "measured"}
    assert (length["name"], length["kind"], len(length["command_sha256"])) == ("length", "command", 64)


def words_of(rows) -> dict[str, str]:
    return next(row for row in rows if row["scorer"] == "words")


CHANGES = [
    (lambda rows: rows[0].update(state_index="999"), "states.csv has no such state"),
    (lambda rows: rows[-1].update(scorer="nobody"), "scorers.json has no such scorer"),
    (lambda rows: rows.append(dict(rows[-1])), "expected one score"),
    (lambda rows: words_of(rows).update(score="5.01"), "the export has 5.01, expected 5"),
    (lambda rows: words_of(rows).update(score=""), "the export has none, expected 5"),
    (
        lambda rows: next(row for row in rows if row["scorer"] == "length" and row["score"]).update(score="inf"),
        "expected a finite number",
    ),
]


def test_replay_tells_where_scores_are_wrong(scored, capsys):
    for change, told in CHANGES:
        with pytest.raises(CommandError, match="1 difference"):
            call_command("replay", str(rewrite(scored, "scores.csv", change)))
        assert told in capsys.readouterr().out


def test_a_measure_within_the_tolerance_is_the_same(scored):
    assert_replay_passes(rewrite(scored, "scores.csv", lambda rows: words_of(rows).update(score="5.000001")))


def test_the_report_follows_scores_like_measures(scored):
    record = sampler.read_record(scored)
    whole = [{**row, "score": row["score"] or "1"} for row in record["scores"]]
    report = list(diagnose(record.but(scores=whole), np.random.default_rng(0)))
    assert any(line.startswith("Convergence of length: R-hat") for line in report)
    assert sum(line.startswith("Convergence of words:") for line in report) == 1
    # Where a state that was visited has none, it says so and invents nothing.
    last = record["samples"][-1]["state_index"]
    gone = [{**row, "score": "" if row["state_index"] == last else row["score"]} for row in record["scores"]]
    report = diagnose(record.but(scores=gone), np.random.default_rng(0))
    lines = [line for line in report if line.startswith("Convergence of length:")]
    assert "have no number there" in lines[0]
