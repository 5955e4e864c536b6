"""Records compared: which states meet, and what the report makes of votes of known strengths."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from sampler import ComparedRecords, OptionError, comparison_document, outputs, read_compared, settings_text
from sampler.commands import main
from sampler.commands.report.comparison import result_of
from sampler.commands.report.run_files import RunFiles
from sampler.commands.report.strengths import cast_votes, strengths
from sampler.diagnostics import Choices
from tests.support.compared_records import write_list, write_texts
from tests.support.experiment_folders import write_rows

RELEASED = Path(__file__).parents[2] / "released" / "0.2.0"
PROMPTS = [f"Write about {number}." for number in range(40)]


def records(folder: Path, *names: str, prompts=PROMPTS, **options) -> list:
    return [
        read_compared(write_texts(folder / f"{name}.zip", lambda chain, step: f"{chain} {step}", prompts, **options))
        for name in names
    ]


def tournament(folder: Path, met: ComparedRecords, strength: dict[str, float], rng, lean=0.0, spread=0.0) -> RunFiles:
    """Write a folder with votes drawn from strengths that each prompt moves by chance."""
    folder.mkdir()
    document = comparison_document(met, "Which is better?", {}, "judge: m")
    (folder / "settings.json").write_text(settings_text(document))
    pairs = []
    for match in met.met():
        ends = {}
        for end, state in (("one", match.one_state), ("other", match.other_state)):
            ends |= {end: getattr(match, end), f"{end}_chain": state.chain, f"{end}_step": state.step}
        pairs.append(
            {"pair": match.key, "direction": "", "seed": 0, "prompt": match.prompt, "match": match.number} | ends
        )
    moved = [{each: value + spread * rng.standard_normal() for each, value in strength.items()} for _ in met.prompts]
    votes = []
    for slot in met.schedule():
        here = moved[slot.match.prompt]
        gap = here[slot.match.one] - here[slot.match.other] + (lean if slot.one_first else -lean)
        key = {"pair": slot.match.key, "property": slot.about, "one_first": slot.one_first, "number": 0}
        votes.append({**key, "chose_one": bool(rng.random() < expit(gap)), "voter": "planted", "asks": 1})
    write_rows(folder, outputs.PAIRS, pairs)
    write_rows(folder, outputs.VOTES, votes)
    return RunFiles(folder)


def test_evenly_spaced_states_of_the_later_half_meet_under_each_prompt(tmp_path):
    one, other = records(tmp_path, "one", "other", prompts=PROMPTS[:2], steps=8)
    met = ComparedRecords.of([one, other], 2).met()
    steps = {(match.prompt, match.number): (match.one_state.step, match.other_state.step) for match in met}
    # Of steps 5 to 8 the second and the last.
    assert steps == {(prompt, number): (6 + 2 * number,) * 2 for prompt in range(2) for number in range(2)}


def test_what_a_record_leaves_out_does_not_meet(tmp_path):
    (one,) = records(tmp_path, "one", prompts=PROMPTS[:1], steps=8, burn_in=4)
    assert [state.step for state in one.chains[0]] == [7, 8]


def test_prompts_are_matched_by_their_words_whatever_their_order(tmp_path):
    (one,) = records(tmp_path, "one", prompts=PROMPTS[:3])
    (other,) = records(tmp_path, "other", prompts=[PROMPTS[3], PROMPTS[2], PROMPTS[0]])
    met = ComparedRecords.of([one, other], 1)
    assert met.prompts == (PROMPTS[0], PROMPTS[2])
    assert set(met.left_out) == {PROMPTS[1], PROMPTS[3]}
    chains = [(match.one_state.chain, match.other_state.chain) for match in met.met()]
    assert chains == [(0, 2), (2, 1)]


def test_both_orders_of_every_match_follow_each_other(tmp_path):
    schedule = ComparedRecords.of(records(tmp_path, "one", "two", "three"), 3).schedule()
    assert [slot.one_first for slot in schedule] == [True, False] * (len(schedule) // 2)
    assert [slot.match for slot in schedule[::2]] == [slot.match for slot in schedule[1::2]]
    assert len({slot.key for slot in schedule}) == len(schedule) == 3 * 40 * 3 * 2


@pytest.mark.parametrize("name", sorted(path.stem for path in RELEASED.glob("*.zip")))
def test_records_of_the_release_can_be_compared(name):
    record = read_compared(RELEASED / f"{name}.zip")
    other = type(record)(**{**vars(record), "name": "other"})
    assert ComparedRecords.of([record, other]).planned()["all"] > 0


def test_what_cannot_be_compared_is_refused_with_the_mend(tmp_path):
    one, other = records(tmp_path, "one", "other")
    molecules = read_compared(RELEASED / "molecules.zip")
    foreign = records(tmp_path, "foreign", prompts=["Something else."])[0]
    for wrong, told in (
        ([one], "two or more"),
        ([one, one], "rename one"),
        ([one, molecules], "one kind"),
        ([one, foreign], "same prompts"),
    ):
        with pytest.raises(OptionError, match=told):
            ComparedRecords.of(wrong)
    with pytest.raises(OptionError, match="--matches must be 1 to 4"):
        ComparedRecords.of([one, other], 5)
    unmoved = write_list(tmp_path / "unmoved.zip", "texts", lambda chain, step: "x", chains=1, steps=0)
    with pytest.raises(OptionError, match="no state of chain 0"):
        read_compared(unmoved)


def test_intervals_cover_planted_strengths(tmp_path):
    """100 tournaments, three intervals at 95 % in each, of which two are free: 200 of them have noise of ±3 %.

    Strengths are the same on all prompts here, so that the truth is what was planted; prompts that move them are in
    test_known_truths.py.
    """
    met = ComparedRecords.of(records(tmp_path, "one", "two", "three"), 3)
    strength, lean = {"r1": 0.6, "r2": 0.0, "r3": -0.6}, 0.4
    rng, covered, swapped, leans = np.random.default_rng(18), [], [], []
    for number in range(100):
        result = result_of(tournament(tmp_path / str(number), met, strength, rng, lean))
        ends = {each: (found.low, found.high) for each, found in result.strength.items()}
        covered += [ends[each][0] <= value <= ends[each][1] for each, value in strength.items()]
        # The control: records that have changed places.
        swapped += [ends[each][0] <= -value <= ends[each][1] for each, value in strength.items() if value]
        leans.append(result.lean.value)
    assert 0.91 <= np.mean(covered) <= 0.99, np.mean(covered)
    assert np.mean(swapped) < 0.05
    # The lean of one tournament has a standard error of about .08.
    assert np.mean(leans) == pytest.approx(lean, abs=0.03)


def test_votes_of_one_prompt_are_taken_together(tmp_path):
    """Where prompts move strengths by 1, 18 votes a prompt say less than 18 alone would: the interval is wider."""
    met = ComparedRecords.of(records(tmp_path, "one", "two", "three"), 3)
    run = tournament(tmp_path / "out", met, dict.fromkeys(met.ids, 0.0), np.random.default_rng(2), spread=1.0)
    votes = cast_votes(run, ["question"], lambda pair: pair["prompt"])["question"]
    alone = strengths(Choices.of(votes).with_clusters(range(len(votes))), np.random.default_rng(0)).scores
    together = [found.high - found.low for found in result_of(run).strength.values()]
    assert np.mean(together) > 1.3 * np.mean(alone.high - alone.low)


def test_the_report_is_made_of_files_alone_and_the_same_each_time(tmp_path, capsys):
    met = ComparedRecords.of(records(tmp_path, "mine|a_b", "yours"), 3)
    folder = tmp_path / "out"
    tournament(folder, met, {"r1": 0.5, "r2": -0.5}, np.random.default_rng(1))
    main(["report", str(folder)])
    written = capsys.readouterr().out.split()
    names = {Path(path).name for path in written}
    assert names == {"table.csv", "table.md", "table.tex", "comparison.csv", "comparison.svg", "comparison.png"}
    first = {path: Path(path).read_bytes() for path in written}
    main(["report", str(folder)])
    assert first == {path: Path(path).read_bytes() for path in written}
    with (folder / "table.csv").open(newline="") as file:
        rows = {(row["record"], row["column"]): row for row in csv.DictReader(file)}
    assert set(rows) == {
        *((each, column) for each in ("r1", "r2") for column in ("strength", "share_of_wins")),
        ("r1", "strength_above_r2"),
        ("", "lean_to_first"),
    }
    assert float(rows["r1", "strength"]["value"]) + float(rows["r2", "strength"]["value"]) == pytest.approx(0)
    assert float(rows["r1", "strength"]["low"]) > 0
    assert float(rows["r1", "share_of_wins"]["value"]) > 0.5
    assert r"mine\|a_b" in (folder / "table.md").read_text()
    assert r"mine|a\_b" in (folder / "table.tex").read_text()


def test_votes_without_a_finite_fit_are_told_as_such(tmp_path):
    met = ComparedRecords.of(records(tmp_path, "one", "two"), 1)
    folder = tmp_path / "out"
    tournament(folder, met, {"r1": 50.0, "r2": -50.0}, np.random.default_rng(1))
    main(["report", str(folder)])
    assert "No strengths:" in (folder / "table.md").read_text()
    with (folder / "table.csv").open(newline="") as file:
        (row,) = [row for row in csv.DictReader(file) if (row["record"], row["column"]) == ("r1", "strength")]
    assert not row["value"]
    assert row["note"]


def test_too_few_prompts_give_no_intervals(tmp_path):
    met = ComparedRecords.of(records(tmp_path, "one", "two", prompts=PROMPTS[:14]), 4)
    result = result_of(tournament(tmp_path / "out", met, {"r1": 0.3, "r2": -0.3}, np.random.default_rng(3)))
    assert result.strength["r1"].value is not None
    assert result.strength["r1"].low is None


def test_settings_hold_hashes_and_nothing_that_differs_between_runs(tmp_path):
    met = ComparedRecords.of(records(tmp_path, "one", "two"), 1)
    document = comparison_document(met, "Which is better?", {"user": "x"}, "judge: m")
    assert json.loads(settings_text(document)) == document
    assert [len(each["sha256"]) for each in document["records"]] == [64, 64]
