"""An honest record replays without a word; one that is not whole or not readable is refused."""

import copy
import json
import random
from collections import Counter

import pytest

from sampler import ConfigError, Record, RecordError, read_record, replay, tables
from tests.support.campaigns import archive, spreadsheet
from tests.support.sampling import CONFIG, changes_not_found, make_record

HONEST = make_record()


@pytest.fixture
def record():
    return copy.deepcopy(HONEST)


def differences(record):
    return replay(record).differences


def test_an_honest_record_replays_without_a_difference(record):
    found = replay(record)
    assert found.differences == ()
    assert found.verdicts == len(record["steps"]) == 50
    assert found.votes == len(record["votes"]) > 50


def test_the_honest_record_holds_every_kind_of_step(record):
    votes = Counter((vote["chain_index"], vote["step"]) for vote in record["votes"])
    assert {step["verdict"] for step in record["steps"]} == {"accept", "reject"}
    assert any(step["current_state"] == step["proposal_state"] for step in record["steps"])
    assert {votes[step["chain_index"], step["step"]] for step in record["steps"]} >= {0, 2, 3, 4, 5}


def test_rows_may_come_in_any_order(record):
    for rows in (record["states"], record["steps"], record["votes"], record["samples"]):
        rows.reverse()
    assert differences(record) == ()


@pytest.mark.parametrize("votes", [0, 1])
def test_a_campaign_stopped_in_the_middle_of_a_step_replays(votes):
    record = make_record(open_votes=votes)
    assert [step["verdict"] for step in record["steps"]].count("") == 1
    found = replay(record)
    assert found.differences == ()
    assert found.verdicts == 50


SEVERAL = [{"weight": 0.25, "length": 1}, {"weight": 0.75, "length": 16}]


def walking(length):
    return {"kind": "walk", "kernel": CONFIG["kernel"], "length": length}


@pytest.mark.parametrize("length", [1, 16, SEVERAL])
def test_a_record_of_walks_replays(length):
    record = make_record(kernel=walking(length))
    found = replay(record)
    assert (found.differences, found.verdicts) == ((), 50)
    assert {step["log_r0"] for step in record["steps"]} == {"0.0"}


OTHER_LENGTH = [SEVERAL[0], SEVERAL[1] | {"length": 17}]
OTHER_WEIGHTS = [each | {"weight": 1 - each["weight"]} for each in SEVERAL]


@pytest.mark.parametrize(
    ("length", "said", "what"),
    [
        (16, 15, "proposal_state"),
        (SEVERAL, 16, "proposal_state"),
        (SEVERAL, OTHER_LENGTH, "proposal_state"),
        (SEVERAL, OTHER_WEIGHTS, "part_index"),
    ],
)
def test_a_record_that_names_another_length_does_not(length, said, what):
    record = make_record(kernel=walking(length))
    record.config["kernel"]["length"] = said
    assert any(difference.what == what for difference in differences(record))


def test_late_votes_that_were_not_counted_are_left_aside(record):
    record["votes"].append(record["votes"][-1] | {"number": "", "voter": "99"})
    assert differences(record) == ()


def test_a_late_vote_of_no_step_is_reported(record):
    record["votes"].append(record["votes"][-1] | {"number": "", "step": "26"})
    assert [(each.step[1], each.recomputed) for each in differences(record)] == [
        (26, "none: steps.csv has no such step")
    ]


def test_a_sample_beyond_the_last_step_is_reported(record):
    record["samples"].append(record["samples"][-1] | {"chain_index": "1", "step": "26"})
    assert [(each.step, each.recomputed) for each in differences(record)] == [
        ((1, 26), "none: the chain does not reach this step")
    ]


@pytest.mark.parametrize("changes", [{}, {"kernel": walking(SEVERAL)}, {"burn_in": 3}])
def test_any_one_changed_cell_is_found(changes):
    assert changes_not_found(make_record(open_votes=1, **changes), random.Random(1)) == []


def test_a_record_saved_by_a_spreadsheet_is_read(tmp_path, record):
    path = tmp_path / "export.zip"
    files = {"campaign.json": json.dumps(record.config).encode()}
    for each in (table for table in tables.CHECKED if table is not tables.CHECKS):
        rows = record[each.name]
        files[each.file] = spreadsheet([list(rows[0]) if rows else each.header, *(row.values() for row in rows)])
    path.write_bytes(archive({name: b"\xef\xbb\xbf" + content for name, content in files.items()}))
    assert replay(read_record(path)).differences == ()


def test_an_open_step_beyond_the_configs_is_reported():
    record = make_record(open_votes=1)
    record.config["steps"] = 25
    found = [each for each in differences(record) if each.what == "the step"]
    assert [(each.step, each.recomputed) for each in found] == [((1, 26), "none: the last step is 25")]


@pytest.mark.parametrize("table", ["steps", "votes", "samples"])
def test_rows_of_a_chain_that_the_config_does_not_have_are_reported(record, table):
    rows = record[table]
    rows.append(rows[-1] | {"chain_index": "7"})
    assert [each.step[0] for each in differences(record)] == [7]


def test_votes_beyond_a_budget_are_reported():
    record = make_record(open_votes=1)
    # For the proposal, so that the other judge still has the last word.
    vote = record["votes"][-1] | {
        "judge_index": "0",
        "chosen_side": record["votes"][-1]["proposal_side"],
        "for_proposal": "1",
    }
    record["votes"].extend([vote | {"number": str(number), "voter": str(number + 50)} for number in range(2, 9)])
    assert "not counted: judge 0 has given all its votes" in {each.recomputed for each in differences(record)}


@pytest.mark.parametrize("name", ["states", "steps", "votes", "samples"])
def test_a_missing_column_is_named(record, name):
    column = next(iter(record[name][0]))
    for row in record[name]:
        del row[column]
    with pytest.raises(RecordError, match=f"{name}.csv: there is no column “{column}”"):
        replay(record)


@pytest.mark.parametrize("name", ["states", "steps", "votes", "samples"])
def test_a_row_that_is_cut_short_is_refused(record, name):
    # What csv.DictReader gives for the cells that a short row lacks.
    record[name][3][next(iter(record[name][0]))] = None
    with pytest.raises(RecordError, match=rf"row 5 of {name}\.csv: it does not have as many cells"):
        replay(record)


@pytest.mark.parametrize(
    ("table", "column", "cell"),
    [
        ("states", "weight", "-1"),
        ("states", "neighbours", "0 0"),
        ("steps", "uniform", ""),
        ("votes", "proposal_side", "Left"),
    ],
)
def test_a_cell_that_cannot_be_read_is_refused(record, table, column, cell):
    record[table][0][column] = cell
    with pytest.raises(RecordError, match="cannot be read"):
        replay(record)


def test_a_config_that_does_not_parse_is_refused(record):
    with pytest.raises(ConfigError, match="chains"):
        replay(Record({"campaign.json": record.config | {"chains": 0}}, record.tables))
