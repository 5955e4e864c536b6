"""A record of a warm-up: replay counts its votes again, makes its choice again, and walks the rest by that."""

import copy
import random

import pytest

import sampler
from sampler import Record, RecordError, Verdict, WarmUpStep, ended_early, parse_config, tuned
from sampler.record.record import step_key
from tests.support.sampling import CONFIG, changes_not_found, make_record

W, BURN_IN = 16, 3
WARM_UP = {"steps": W, "grid": [1, 3, 9], "properties": ["words", "readability"], "burn_in": BURN_IN}
WALK = {"kind": "walk", "kernel": CONFIG["kernel"], "length": 5, "warm_up": WARM_UP}
CHANGES = {"kernel": WALK, "burn_in": 2, "chains": 6}


def warm_up_steps(record: Record) -> list[WarmUpStep]:
    contents = {row["state_index"]: (row["content"], "") for row in record["states"]}
    return [
        WarmUpStep(
            *step_key(row),
            sum(step_key(vote) == step_key(row) for vote in record["votes"]),
            sum(step_key(vote) == step_key(row) and vote["for_proposal"] == "1" for vote in record["votes"]),
            contents[row["current_state"]],
            contents[row["proposal_state"]],
            row["verdict"] == Verdict.ACCEPT.value,
        )
        for row in record["steps"]
        if int(row["step"]) <= W
    ]


# What the steps after the warm-up do has no part in the choice.
CONFIG_OF_IT = parse_config(make_record(walk_length=1, **CHANGES).config)
TUNING = tuned(CONFIG_OF_IT, warm_up_steps(make_record(walk_length=1, **CHANGES)))
HONEST = make_record(walk_length=TUNING["length"], **CHANGES)


@pytest.fixture
def record() -> Record:
    return copy.deepcopy(HONEST)


@pytest.fixture
def tuning() -> dict:
    return copy.deepcopy(TUNING)


def told(record: Record, tuning: object) -> list[str]:
    documents = record.documents | ({} if tuning is None else {"tuning.json": tuning})
    return [str(each) for each in sampler.replay(Record(documents, record.tables)).differences]


def test_the_honest_record_replays_and_has_chosen(record, tuning):
    assert told(record, tuning) == []
    assert tuning["because"] == "chosen by the rule"
    assert sum(trial["votes"] for trial in tuning["trials"]) >= 100


def test_another_choice_is_told_once(record, tuning):
    honest = tuning["length"]
    tuning["length"] = next(each for each in WARM_UP["grid"] if each != honest)
    assert told(record, tuning) == [f"tuning.json: length: the export has {tuning['length']}, expected {honest}"]


def test_a_record_that_walked_otherwise_than_chosen_is_found(tuning):
    other = next(each for each in WARM_UP["grid"] if each != tuning["length"])
    found = told(make_record(walk_length=other, **CHANGES), tuning)
    assert found
    assert all(line.startswith("chain") for line in found)


@pytest.mark.parametrize("count", ["steps", "votes", "votes_for", "esjd_per_vote", "share_won", "reach"])
def test_another_count_is_found(record, tuning, count):
    trial = tuning["trials"][1]
    trial[count] += 1
    (found,) = told(record, tuning)
    assert found.startswith(f"tuning.json: trials.1.{count}: the export has {trial[count]}, expected ")


@pytest.mark.parametrize(
    ("name", "value"), [("grid", [1, 3]), ("properties", ["words"]), ("steps", W - 1), ("rule", "by feeling")]
)
def test_another_declaration_is_found(record, tuning, name, value):
    tuning[name] = value
    (found,) = told(record, tuning)
    assert found.startswith(f"tuning.json: {name}")


def test_a_vote_of_the_warm_up_that_is_left_out_is_found_in_its_step_and_in_the_counts(record, tuning):
    vote = next(vote for vote in record["votes"] if int(vote["step"]) <= W)
    record["votes"].remove(vote)
    found = told(record, tuning)
    assert any("votes" in line and line.startswith("tuning.json") for line in found)
    assert any("vote 2" in line and line.startswith(f"chain {vote['chain_index']}") for line in found)


def test_any_one_changed_cell_is_found(record, tuning):
    record.documents["tuning.json"] = tuning
    assert changes_not_found(record, random.Random(1)) == []


def test_steps_after_the_warm_up_need_its_choice(record):
    found = told(record, None)
    assert f"chain 0, step {W + 1}: the step: the export has one, expected none: the last step is {W} until" in found[0]


def cut(record: Record, last: int, *chains: str) -> None:
    """Let chains, or all of them, end with this step."""
    for rows in (record["steps"], record["votes"], record["samples"]):
        rows[:] = [row for row in rows if (chains and row["chain_index"] not in chains) or int(row["step"]) <= last]


def test_a_record_from_the_middle_of_the_warm_up_replays_without_a_choice(record):
    cut(record, W)
    cut(record, W - 4, "1")
    assert told(record, None) == []


def test_a_choice_before_every_chain_has_ended_the_warm_up_is_found(record, tuning):
    cut(record, W)
    cut(record, W - 4, "1")
    (found,) = told(record, tuning)
    assert found.endswith("none: 4 steps are not decided")


def test_a_warm_up_that_was_ended_early_goes_on_with_the_configs_length():
    record = make_record(walk_length=5, **CHANGES)
    cut(record, 4, "1")
    ended = ended_early(CONFIG_OF_IT, "2026-11-23T04:00:00.000+00:00")
    assert told(record, ended) == []
    assert told(record, ended | {"length": 9}) == ["tuning.json: length: the export has 9, expected 5"]


def test_tuning_without_a_warm_up_is_found():
    assert told(make_record(), TUNING) == [
        "tuning.json: the file: the export has one, expected none: the config has no warm-up"
    ]


ENDED = TUNING | {"because": "the warm-up was ended early"}


@pytest.mark.parametrize("tuning", [[], {}, ENDED, ENDED | {"ended_at": None}, TUNING | {"rule_version": 2}])
def test_a_file_that_is_none_is_refused(record, tuning):
    with pytest.raises(RecordError, match="cannot be read"):
        told(record, tuning)
