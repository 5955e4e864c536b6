"""An honest record replays without a word; one that is not whole or not readable is refused."""

from __future__ import annotations

import copy
import csv
import io
from collections import Counter

import pytest

from sampler import RecipeError, RecordError, replay
from tests.support.records import make_record

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


def test_a_record_survives_csv_files(record):
    def through_csv(rows):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
        return list(csv.DictReader(io.StringIO(text.getvalue(), newline="")))

    recipe, *tables = record.tables()
    assert replay(recipe, *map(through_csv, tables)).differences == ()


@pytest.mark.parametrize("votes", [0, 1])
def test_a_campaign_stopped_in_the_middle_of_a_step_replays(votes):
    record = make_record(open_votes=votes)
    assert [step["verdict"] for step in record.steps].count("") == 1
    found = replay(*record.tables())
    assert found.differences == ()
    assert found.verdicts == 50


def test_late_votes_that_were_not_counted_are_left_aside(record):
    record.votes.append(record.votes[-1] | {"number": "", "annotator": "late"})
    assert differences(record) == ()


def test_a_sample_beyond_the_last_step_is_reported(record):
    record.samples.append({"chain": "1", "step": "26", "state": "0"})
    assert [(each.chain, each.step, each.recomputed) for each in differences(record)] == [(1, 26, "not reached")]


@pytest.mark.parametrize("open_votes", [None, 1], ids=["decided", "open"])
def test_steps_beyond_the_recipes_are_reported(open_votes):
    record = make_record(open_votes)
    record.recipe["steps"] = record.recipe["steps"] - 1
    last = record.recipe["steps"] + 1
    expected = [(chain, last, f"beyond the last, {last - 1}") for chain in ((0, 1) if open_votes is None else (1,))]
    found = [each for each in differences(record) if each.what == "the step"]
    assert [(each.chain, each.step, each.recomputed) for each in found] == expected


@pytest.mark.parametrize("table", ["steps", "votes", "samples"])
def test_rows_of_a_chain_that_the_recipe_does_not_have_are_reported(record, table):
    rows = getattr(record, table)
    rows.append(rows[-1] | {"chain": "7"})
    assert [each.chain for each in differences(record)] == [7]


def test_votes_beyond_a_budget_are_reported():
    record = make_record(open_votes=1)
    # For the proposal, so that the other judge still has the last word.
    vote = record.votes[-1] | {"judge": "0", "chosen_side": record.votes[-1]["proposal_side"], "for_proposal": "1"}
    record.votes += [vote | {"number": str(number), "annotator": f"more {number}"} for number in range(2, 9)]
    assert "beyond judge 0's budget" in {each.recomputed for each in differences(record)}


def test_another_weight_is_noticed(record):
    record.states[3]["weight"] = "2.5"
    assert differences(record)


def test_another_link_of_the_graph_is_noticed(record):
    record.states[1]["neighbours"] = "0 2 3"
    record.states[3]["neighbours"] = "0 1"
    assert differences(record)


def test_another_seed_is_noticed(record):
    assert differences(record.__class__(record.recipe | {"seed": 2027}, *record.tables()[1:]))


READ = {
    "states": ["state", "weight", "neighbours"],
    "steps": ["chain", "step", "current", "proposal", "log_r0", "uniform", "budgets", "verdict"],
    "votes": ["chain", "step", "number", "judge", "annotator", "proposal_side", "chosen_side", "for_proposal"],
    "samples": ["chain", "step", "state"],
}


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
        ("votes", "judge", "5"),
        ("votes", "number", "1st"),
        ("samples", "state", "0.5"),
    ],
)
def test_a_cell_that_cannot_be_read_is_refused(record, table, column, cell):
    getattr(record, table)[0][column] = cell
    with pytest.raises(RecordError, match="cannot be read"):
        replay(*record.tables())


def test_a_recipe_that_does_not_parse_is_refused(record):
    with pytest.raises(RecipeError, match="chains"):
        replay(record.recipe | {"chains": 0}, *record.tables()[1:])
