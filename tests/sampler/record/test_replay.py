"""An honest record replays without a word; one that is not whole or not readable is refused."""

from __future__ import annotations

import copy
import json
from collections import Counter

import pytest

from sampler import ConfigError, RecordError, read_record, replay
from tests.support.campaigns import archive
from tests.support.campaigns import spreadsheet as table
from tests.support.sampling import CONFIG, make_record

HONEST = make_record()


@pytest.fixture
def record():
    return copy.deepcopy(HONEST)


def differences(record):
    return replay(*record.tables()).differences


def test_an_honest_record_replays_without_a_difference(record):
    found = replay(*record.tables())
    assert found.differences == ()
    assert found.verdicts == len(record.steps) == 50
    assert found.votes == len(record.votes) > 50


def test_the_honest_record_holds_every_kind_of_step(record):
    votes = Counter((vote["chain"], vote["step"]) for vote in record.votes)
    assert {step["verdict"] for step in record.steps} == {"accept", "reject"}
    assert any(step["current"] == step["proposal"] for step in record.steps)
    assert {votes[step["chain"], step["step"]] for step in record.steps} >= {0, 2, 3, 4, 5}


def test_rows_may_come_in_any_order(record):
    for rows in (record.states, record.steps, record.votes, record.samples):
        rows.reverse()
    assert differences(record) == ()


@pytest.mark.parametrize("votes", [0, 1])
def test_a_campaign_stopped_in_the_middle_of_a_step_replays(votes):
    record = make_record(open_votes=votes)
    assert [step["verdict"] for step in record.steps].count("") == 1
    found = replay(*record.tables())
    assert found.differences == ()
    assert found.verdicts == 50


SEVERAL = [{"weight": 0.25, "length": 1}, {"weight": 0.75, "length": 16}]


def walking(length):
    return {"kind": "walk", "kernel": CONFIG["kernel"], "length": length}


@pytest.mark.parametrize("length", [1, 16, SEVERAL])
def test_a_record_of_walks_replays(length):
    record = make_record(kernel=walking(length))
    found = replay(*record.tables())
    assert (found.differences, found.verdicts) == ((), 50)
    assert {step["log_r0"] for step in record.steps} == {"0.0"}


OTHER_LENGTH = [SEVERAL[0], SEVERAL[1] | {"length": 17}]
OTHER_WEIGHTS = [each | {"weight": 1 - each["weight"]} for each in SEVERAL]


@pytest.mark.parametrize(
    ("length", "said", "what"),
    [
        (16, 15, "proposal"),
        (SEVERAL, 16, "proposal"),
        (SEVERAL, OTHER_LENGTH, "proposal"),
        (SEVERAL, OTHER_WEIGHTS, "part"),
    ],
)
def test_a_record_that_names_another_length_does_not(length, said, what):
    record = make_record(kernel=walking(length))
    record.config["kernel"]["length"] = said
    assert any(difference.what == what for difference in differences(record))


def test_a_step_that_names_another_length_than_it_drew_is_found():
    record = make_record(kernel=walking(SEVERAL))
    step = record.steps[-1]
    step["part"] = str(1 - int(step["part"]))
    found = differences(record)[0]
    assert (found.step, found.what) == (int(step["step"]), "part")


def test_a_record_that_lacks_the_lengths_drawn_is_refused():
    record = make_record(kernel=walking(SEVERAL))
    for step in record.steps:
        del step["part"]
    with pytest.raises(RecordError, match="part"):
        differences(record)


def test_late_votes_that_were_not_counted_are_left_aside(record):
    record.votes.append(record.votes[-1] | {"number": "", "annotator": "late"})
    assert differences(record) == ()


@pytest.mark.parametrize(
    ("tampered", "what"),
    [({"question": "Which?"}, "a late vote's question"), ({"for_proposal": "2"}, "a late vote's for_proposal")],
    ids=["question", "for_proposal"],
)
def test_a_late_vote_that_contradicts_itself_is_reported(record, tampered, what):
    record.votes.append(record.votes[-1] | {"number": "", "annotator": "late"} | tampered)
    assert [each.what for each in differences(record)] == [what]


def test_a_late_vote_of_no_step_is_reported(record):
    record.votes.append(record.votes[-1] | {"number": "", "step": "26"})
    assert [(each.step, each.recomputed) for each in differences(record)] == [(26, "none: steps.csv has no such step")]


@pytest.mark.parametrize("judge", ["2", "-1"])
def test_a_late_vote_of_no_judge_is_refused(record, judge):
    record.votes.append(record.votes[-1] | {"number": "", "judge": judge})
    with pytest.raises(RecordError, match=f"judge must be 0 to 1, not {judge}"):
        differences(record)


def test_a_sample_beyond_the_last_step_is_reported(record):
    record.samples.append(record.samples[-1] | {"chain": "1", "step": "26"})
    assert [(each.chain, each.step, each.recomputed) for each in differences(record)] == [
        (1, 26, "none: the chain does not reach this step")
    ]


def test_a_record_saved_by_a_spreadsheet_is_read(tmp_path, record):
    path = tmp_path / "export.zip"
    tables = {name: getattr(record, name) for name in READ}
    files = {f"{name}.csv": table([list(rows[0]), *(row.values() for row in rows)]) for name, rows in tables.items()}
    files["campaign.json"] = json.dumps(record.config).encode()
    path.write_bytes(archive({name: b"\xef\xbb\xbf" + content for name, content in files.items()}))
    found = read_record(path)
    assert replay(found.config, found.states, found.steps, found.votes, found.samples).differences == ()


def test_an_open_step_beyond_the_configs_is_reported():
    record = make_record(open_votes=1)
    record.config["steps"] = 25
    found = [each for each in differences(record) if each.what == "the step"]
    assert [(each.chain, each.step, each.recomputed) for each in found] == [(1, 26, "none: the last step is 25")]


@pytest.mark.parametrize("table", ["steps", "votes", "samples"])
def test_rows_of_a_chain_that_the_config_does_not_have_are_reported(record, table):
    rows = getattr(record, table)
    rows.append(rows[-1] | {"chain": "7"})
    assert [each.chain for each in differences(record)] == [7]


def test_votes_beyond_a_budget_are_reported():
    record = make_record(open_votes=1)
    # For the proposal, so that the other judge still has the last word.
    vote = record.votes[-1] | {"judge": "0", "chosen_side": record.votes[-1]["proposal_side"], "for_proposal": "1"}
    record.votes += [vote | {"number": str(number), "annotator": f"more {number}"} for number in range(2, 9)]
    assert "not counted: judge 0 has used its budget" in {each.recomputed for each in differences(record)}


# All that the export writes, but for the times.
READ = {table: list(getattr(HONEST, table)[0]) for table in ("states", "steps", "votes", "samples")}


@pytest.mark.parametrize(("table", "column"), [(table, column) for table in READ for column in READ[table]])
def test_a_missing_column_is_named(record, table, column):
    for row in getattr(record, table):
        del row[column]
    with pytest.raises(RecordError, match=f"no column '{column}'"):
        replay(*record.tables())


@pytest.mark.parametrize(("table", "column"), [(table, column) for table in READ for column in READ[table]])
def test_a_row_that_is_cut_short_is_refused(record, table, column):
    # What csv.DictReader gives for the cells that a short row lacks.
    getattr(record, table)[3][column] = None
    with pytest.raises(RecordError, match=rf"row 5 of {table}\.csv has fewer cells"):
        replay(*record.tables())


@pytest.mark.parametrize(
    ("table", "column", "cell"),
    [
        ("states", "state", "9"),
        ("states", "weight", "-1"),
        ("states", "neighbours", "0 0"),
        ("steps", "step", "one"),
        ("steps", "uniform", ""),
        ("steps", "budgets", "3,2"),
        ("steps", "votes_cast", "3;2"),
        ("steps", "votes_for", "1 one"),
        ("steps", "votes_for", "1 1_0"),
        ("votes", "judge", "5"),
        ("votes", "judge", "-1"),
        ("votes", "proposal_side", "Left"),
        ("votes", "chosen_side", "both"),
        ("votes", "number", "1st"),
        ("samples", "state", "0.5"),
    ],
)
def test_a_cell_that_cannot_be_read_is_refused(record, table, column, cell):
    getattr(record, table)[0][column] = cell
    with pytest.raises(RecordError, match="cannot be read"):
        replay(*record.tables())


def test_a_config_that_does_not_parse_is_refused(record):
    with pytest.raises(ConfigError, match="chains"):
        replay(record.config | {"chains": 0}, *record.tables()[1:])
