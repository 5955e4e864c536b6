"""A record whose warm-up has fitted scores: replay fits them again, and finds whatever was changed."""

from __future__ import annotations

import copy

import pytest

import sampler
from sampler import ended_early, learned, parse_recipe, read_chosen, tuned
from tests.sampler.record.test_replay_warm_up import CHANGES, WALK, WARM_UP, W, cut, warm_up_steps
from tests.support.records import Record, make_record

LEARNING = CHANGES | {"kernel": WALK | {"warm_up": WARM_UP | {"learned": {}}}}
STEPS = warm_up_steps(make_record(chosen=sampler.Chosen(1), **LEARNING))
RECIPE_OF_IT = parse_recipe(make_record(chosen=sampler.Chosen(1), **LEARNING).recipe)
TUNING, SURROGATES = tuned(RECIPE_OF_IT, STEPS), learned(RECIPE_OF_IT, STEPS)
HONEST = make_record(chosen=read_chosen(TUNING, SURROGATES), **LEARNING)


@pytest.fixture
def record() -> Record:
    return copy.deepcopy(HONEST)


@pytest.fixture
def surrogates() -> dict:
    return copy.deepcopy(SURROGATES)


def told(record: Record, surrogates: object, tuning: object = TUNING) -> list[str]:
    found = sampler.replay(*record.tables(), tuning=tuning, surrogates=surrogates)
    return [str(each) for each in found.differences]


def test_the_honest_record_replays_and_some_scores_are_used(record, surrogates):
    assert told(record, surrogates) == []
    assert len(surrogates["groups"]) == 5
    assert any(group["is_on"] for group in surrogates["groups"])
    parts = {row["part"] for row in record.steps if int(row["step"]) > W}
    assert parts == {"0", "1", "2"}
    pulled = [row for row in record.steps if int(row["step"]) > W and row["part"] != "0"]
    assert any(float(row["log_r0"]) for row in pulled)
    for row in pulled:
        assert float(row["log_r0"]) == (int(row["tilt_current"]) - int(row["tilt_proposal"])) * 2.0**-20
    assert {row["tilt_current"] for row in record.steps if row not in pulled} == {""}


def test_another_machine_may_have_rounded_the_fit_otherwise(record, surrogates):
    for group in surrogates["groups"]:
        group["log_loss"] *= 1 + 1e-12
    assert told(record, surrogates) == []


@pytest.mark.parametrize("name", ["weights", "means", "scales", "centres"])
def test_another_score_is_told_by_its_number(record, surrogates, name):
    surrogates["groups"][1][name][1] += 0.5
    (found,) = told(record, surrogates)
    assert found.startswith(f"surrogates.json: groups.1.{name}.1: the export has")


@pytest.mark.parametrize(
    ("name", "value"), [("walk_share", 0.2), ("taus", [1.0]), ("unit", 0.5), ("band", 9.0), ("version", 2)]
)
def test_another_declaration_is_found(record, surrogates, name, value):
    surrogates[name] = value
    assert any(line.startswith(f"surrogates.json: {name}") for line in told(record, surrogates))


def test_a_score_switched_on_or_off_is_found(record, surrogates):
    group = surrogates["groups"][0]
    group["is_on"] = not group["is_on"]
    assert told(record, surrogates) == [
        f"surrogates.json: groups.0.is_on: the export has {group['is_on']}, expected {not group['is_on']}"
    ]


@pytest.mark.parametrize("column", ["tilt_current", "tilt_proposal"])
def test_another_tilt_is_found(record, surrogates, column):
    row = next(row for row in record.steps if row[column])
    honest, row[column] = row[column], str(int(row[column]) + 1)
    assert told(record, surrogates) == [
        f"chain {row['chain']}, step {row['step']}: {column}: the export has “{row[column]}”, expected “{honest}”"
    ]


def test_a_base_ratio_without_the_tilt_is_found(record, surrogates):
    row = next(row for row in record.steps if float(row["log_r0"]))
    row["log_r0"] = "0.0"
    assert any(
        line.startswith(f"chain {row['chain']}, step {row['step']}: log_r0") for line in told(record, surrogates)
    )


def test_a_record_that_lacks_its_scores_is_found(record):
    assert told(record, None)[0] == "surrogates.json: the file: the export has none, expected one"


def test_a_warm_up_that_was_ended_early_has_no_scores(surrogates):
    record = make_record(chosen=sampler.Chosen(5), **LEARNING)
    cut(record, 4, "1")
    ended = ended_early(RECIPE_OF_IT, "2026-11-23T05:00:00.000+00:00")
    assert told(record, None, ended) == []
    assert told(record, surrogates, ended) == ["surrogates.json: the file: the export has one, expected none"]


@pytest.mark.parametrize("change", [{"groups": [{}]}, {"groups": None}, {"groups": []}])
def test_scores_that_are_none_are_told(record, surrogates, change):
    assert all(line.startswith("surrogates.json: groups") for line in told(record, surrogates | change))
    assert told(record, surrogates | change)


def test_with_fewer_than_four_chains_there_is_no_score():
    few = LEARNING | {"chains": 3}
    steps = warm_up_steps(make_record(chosen=sampler.Chosen(1), **few))
    recipe = parse_recipe(make_record(chosen=sampler.Chosen(1), **few).recipe)
    tuning, fitted = tuned(recipe, steps), learned(recipe, steps)
    assert fitted["groups"] == []
    assert told(make_record(chosen=read_chosen(tuning, fitted), **few), fitted, tuning) == []


def test_scores_without_a_choice_are_found(record, surrogates):
    assert "surrogates.json: the file: the export has one, expected none without tuning.json" in told(
        record, surrogates, None
    )


@pytest.mark.parametrize("features", [0, 2, None])
def test_features_that_nobody_knows_are_refused(record, surrogates, features):
    with pytest.raises(sampler.RecordError, match="which this version does not know"):
        told(record, surrogates | {"features": features})


@pytest.mark.parametrize("loss", [10**400, -(10**400), float("nan")])
def test_a_number_that_is_none_is_told(record, surrogates, loss):
    surrogates["groups"][2]["log_loss"] = loss
    (found,) = told(record, surrogates)
    assert found.startswith("surrogates.json: groups.2.log_loss")


def test_a_scale_of_nothing_is_refused(record, surrogates):
    group = surrogates["groups"][0]
    group["scales"][group["scales"].index(1.0)] = 1e-7
    assert told(record, surrogates)
    small = sampler.read_chosen(TUNING, surrogates)
    assert small.surrogates
    group["scales"][0] = 0.0
    with pytest.raises(ValueError, match="positive"):
        sampler.read_chosen(TUNING, surrogates)


def test_a_step_of_no_chain_and_one_to_no_object_are_told_of(record, surrogates):
    record.steps[-1]["chain"], record.steps[-2]["proposal"] = "-1", "999"
    found = told(record, surrogates)
    assert any(line.startswith("chain -1") for line in found)
    assert any("999" in line for line in found)
