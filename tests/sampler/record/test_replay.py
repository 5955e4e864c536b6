"""An honest record replays without a word; one that is not whole or not readable is refused.

Texts that only a model can write are taken as recorded.
"""

import copy
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import sampler
from sampler import ConfigError, Record, RecordError, parse_config, read_record, replay, tables
from sampler.record.record import step_key
from sampler.record.replay import CHECKS
from sampler.record.tables import JSON, MEASURE, MOMENT
from sampler.record.verify import checked
from tests.sampler.test_command_line import as_files
from tests.support.enumerated import Grammar
from tests.support.examples import EXAMPLES, example_record
from tests.support.sampling import CONFIG, Voters, changes_not_found, make_record, mixture, row_of, run_campaign
from tests.support.uploads import archive

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


@pytest.mark.parametrize(
    ("table", "changes", "told"),
    [
        ("votes", {"number": "", "voter": "99"}, []),
        ("votes", {"number": "", "step": "26"}, ["chain 1, step 26 none: steps.csv has no such step"]),
        ("samples", {"step": "26"}, ["chain 1, step 26 none: the chain does not reach this step"]),
        ("steps", {"chain_index": "7"}, ["chain 7, step 25 none: there are 2 chains"]),
        ("votes", {"chain_index": "7"}, ["chain 7, step 25 none: steps.csv has no such step"]),
        ("samples", {"chain_index": "7"}, ["chain 7, step 25 none: the chain does not reach this step"]),
    ],
)
def test_a_late_vote_is_left_aside_and_a_row_of_no_step_is_reported(record, table, changes, told):
    record[table].append(record[table][-1] | changes)
    assert [f"{each.where} {each.recomputed}" for each in differences(record)] == told


@pytest.mark.parametrize("changes", [{}, {"kernel": walking(SEVERAL)}, {"burn_in": 3}])
def test_any_one_changed_cell_is_found(changes):
    assert changes_not_found(make_record(open_votes=1, **changes), random.Random(1)) == []


def test_a_record_saved_by_a_spreadsheet_is_read(tmp_path, record):
    path = tmp_path / "export.zip"
    path.write_bytes(archive({name: b"\xef\xbb\xbf" + content for name, content in as_files(record).items()}))
    assert replay(read_record(path)).differences == ()


def test_an_open_step_beyond_the_configs_is_reported():
    record = make_record(open_votes=1)
    record.config["steps"] = 25
    found = [each for each in differences(record) if each.what == "the step"]
    assert [(each.step, each.recomputed) for each in found] == [((1, 26), "none: the last step is 25")]


def test_votes_beyond_a_budget_are_reported():
    record = make_record(open_votes=1)
    last = record["votes"][-1]
    # For the proposal, so that the other judge still has the last word.
    vote = last | {"judge_index": "0", "chosen_side": last["proposal_side"], "for_proposal": "1"}
    record["votes"].extend([vote | {"number": str(number), "voter": str(number + 50)} for number in range(2, 9)])
    assert "not counted: judge 0 has given all its votes" in {each.recomputed for each in differences(record)}


@pytest.mark.parametrize(
    ("table", "column", "cell"),
    [
        ("states", "weight", "-1"),
        ("states", "neighbours", "0 0"),
        ("steps", "uniform", ""),
        ("votes", "proposal_side", "Left"),
        ("votes", "voter", "0"),
        ("votes", "elapsed_ms", "-5"),
        ("votes", "cast_at", "2026-13-45T99:99:99.000+00:00"),
        ("votes", "lease", "the first"),
        ("votes", "preference", "1.25"),
    ],
)
def test_a_cell_that_cannot_be_read_is_refused(record, table, column, cell):
    record[table][0][column] = cell
    with pytest.raises(RecordError, match="cannot be read"):
        replay(record)


def test_a_table_with_other_marks_between_its_cells_is_refused_with_what_to_do(record):
    joined = [{";".join(row): ";".join(row.values())} for row in record["votes"]]
    with pytest.raises(RecordError, match=r"votes\.csv: .*save the table with commas"):
        replay(record.but(votes=joined))


def test_a_config_that_does_not_parse_is_refused(record):
    with pytest.raises(ConfigError, match="chains"):
        replay(Record({"campaign.json": record.config | {"chains": 0}}, record.tables))


def test_a_record_of_another_version_is_refused_with_what_reads_it(record):
    with pytest.raises(
        RecordError, match=r"campaign\.json is of version 2, not 1: read it with the prefmh that wrote it"
    ):
        replay(Record({"campaign.json": record.config | {"version": 2}}, record.tables))


# Change any one cell of a record and hash it again, so that no hash can tell: its content does, if the tables say so.
# A column that is excused says why in its declaration; the list of these is here, so that it grows only on purpose.


EXCUSED = {
    "votes": "voter elapsed_ms cast_at preference attempts lease hidden_ms layout translated",
    "steps": "opened_at decided_at",
    "states": "weight content",
    "ratings": "attempts rated_at",
    "scores": "score",
    "events": "at kind by voter data",
    "checks": "voter after_votes chain_index step judge_index elapsed_ms shown_at answered_at",
}
WHOLLY = {"reasons", "calls", "voters", "leases", "preferences", "codebook", "properties", "results"}


def test_what_is_excused_is_listed_here() -> None:
    excused = {
        table.name: " ".join(column.name for column in table.columns if column.excused)
        for table in tables.EVERY
        if not table.excused and any(column.excused for column in table.columns)
    }
    assert excused == EXCUSED
    assert {table.name for table in tables.EVERY if table.excused} == WHOLLY
    assert {MOMENT, JSON, MEASURE}.isdisjoint(
        column.kind for table in tables.CHECKED for column in table.columns if not column.excused
    )


def test_every_table_is_checked_or_excused() -> None:
    on_the_way = {"evidence.csv"}
    assert {table.file for table in tables.EVERY if not table.excused} <= CHECKS.keys() | on_the_way
    assert {table.file for table in tables.CHECKED} <= CHECKS.keys() | on_the_way


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_any_one_changed_cell_of_an_example_is_found(name: str) -> None:
    record = sampler.read_record(example_record(name))
    assert checked(record)[1] == ()
    assert changes_not_found(record, random.Random(name)) == []


# Records of small campaigns, changed in more than one cell: each difference is told in full, and nothing else is.


Change = Callable[[Record], list[str]]


def example(name: str) -> Record:
    return copy.deepcopy(read_record(example_record(name)))


def told(record: Record) -> list[str]:
    return [str(difference) for difference in differences(record)]


def where(row: dict[str, str]) -> str:
    return f"chain {row['chain_index']}, step {row['step']}"


def moved(record: Record) -> dict[str, Any]:
    """Return the first step that asked somebody."""
    return next(step for step in record["steps"] if step["current_state"] != step["proposal_state"])


def by_model(record: Record) -> dict[str, str]:
    """Return the first vote of a model."""
    return next(row for row in record["votes"] if not row["voter"])


# Ratings.


def a_vote_where_ratings_decide(record: Record) -> list[str]:
    step = moved(record)
    vote = example("people-and-model")["votes"][0]
    record["votes"].append(vote | {"chain_index": step["chain_index"], "step": step["step"], "voter": "1"})
    return [
        f"{where(step)}: a vote: the export has one, expected none: ratings decide",
        f"{where(step)}: vote {vote['number']}'s reply: the export has “{vote['identity']}”, expected one that counted",
    ]


def numbers_of_no_step(record: Record) -> list[str]:
    record["evidence"].append(record["evidence"][0] | {"step": "99"})
    chain = record["evidence"][0]["chain_index"]
    return [f"chain {chain}, step 99: the numbers: the export has a row, expected none: there is no such step"]


# Judges.


def model_of(record: Record) -> tuple[int, dict[str, Any]]:
    judges = enumerate(record.documents["judges.json"])
    return next((index, judge) for index, judge in judges if judge["source"] == "model")


def told_of(index: int, what: str, recorded: object, expected: object) -> str:
    return f"judge {index} in judges.json: {what}: the export has “{recorded}”, expected “{expected}”"


def every_field_of_a_model(record: Record) -> list[str]:
    index, judge = model_of(record)
    expected = record.config["judges"][index]
    lines = [
        told_of(index, "the number", 7, index),
        told_of(index, "the question", "Which?", expected["question"]),
        told_of(index, "the source", "people", "model"),
        told_of(index, "the endpoint", "Another", expected["source"]["endpoint"]),
        told_of(index, "the temperature", 0.123, expected["source"]["temperature"]),
        told_of(index, "the requested model", "other", judge["model"]),
        told_of(index, "the number of objects shown", 1, 2),
        told_of(index, "the question in the prompt", "Which?", expected["question"]),
    ]
    judge |= {"judge_index": 7, "question": "Which?", "source": "people", "endpoint": "Another"}
    judge["request"] |= {"temperature": 0.123, "model": "other"}
    judge["prompt"] |= {"objects": 1, "question": "Which?"}
    return lines


def replies_that_were_not_accepted(record: Record) -> list[str]:
    index, judge = model_of(record)
    for identity in judge["identities"]:
        identity["accepted_at"] = None
    return [
        f"{where(vote)}: vote {vote['number']}'s reply: the export has “{vote['identity']}”, expected one that counted"
        for vote in record["votes"]
        if vote["judge_index"] == str(index)
    ]


def a_preference_of_a_judge_whose_votes_are_sampled(record: Record) -> list[str]:
    vote = by_model(record)
    vote["preference"] = "1.0" if vote["for_proposal"] == "1" else "0.0"
    return [
        f"{where(vote)}: vote {vote['number']}'s preference: the export has {vote['preference']}, expected none: this "
        "judge's votes are sampled"
    ]


# Votes and draws.


def a_late_vote_of_another_reply(record: Record) -> list[str]:
    vote = by_model(record)
    record["votes"].append(vote | {"number": "", "identity": "99"})
    return [f"{where(vote)}: a late vote's reply: the export has “99”, expected one that counted"]


def a_person_in_the_place_of_a_model(record: Record) -> list[str]:
    vote = by_model(record)
    vote["voter"], name = "1", f"{where(vote)}: vote {vote['number']}"
    return [f"{name}'s voter: the export has “1”, expected “”"]


CASES: list[tuple[str, Change]] = [
    ("ratings-separate", a_vote_where_ratings_decide),
    ("ratings-separate", numbers_of_no_step),
    ("people-and-model", every_field_of_a_model),
    ("people-and-model", replies_that_were_not_accepted),
    ("people-and-model", a_preference_of_a_judge_whose_votes_are_sampled),
    ("people-and-model", a_late_vote_of_another_reply),
    ("people-and-model", a_person_in_the_place_of_a_model),
]


@pytest.mark.parametrize(("name", "change"), CASES, ids=[f"{name}-{change.__name__}" for name, change in CASES])
def test_a_change_is_told_in_full(name: str, change: Change) -> None:
    record = example(name)
    expected = change(record)
    assert told(record) == expected


def test_a_step_that_is_open_although_its_last_rating_is_there_is_no_difference() -> None:
    # Another chain may bring it while the record is written.
    record = example("ratings-separate")
    [last] = [step for step in record["steps"] if where(step) == f"chain 0, step {record.config['steps']}"]
    assert last["current_state"] != last["proposal_state"]
    last |= {"verdict": "", "uniform": "", "decided_at": ""}
    record["evidence"][:] = [row for row in record["evidence"] if where(row) != where(last)]
    record["samples"][:] = [sample for sample in record["samples"] if where(sample) != where(last)]
    assert told(record) == []


def test_a_start_that_was_not_drawn_and_a_code_that_cannot_be_read_are_told_where_they_are() -> None:
    record = example("texts")
    record["states"][0]["code"] = record["states"][1]["code"]
    assert differences(record)[0].step == (0, 0)
    record["states"][0]["code"] = "no text"
    first = differences(record)[0]
    assert (first.step, first.recorded) == ((0, 0), "“no text”")


def test_ratings_have_no_place_where_votes_decide() -> None:
    record = example("people-and-model")
    record["ratings"].append(example("ratings-separate")["ratings"][0])
    with pytest.raises(RecordError, match=r"ratings\.csv must be empty where votes decide"):
        told(record)


# Texts that only a model can write: a replay takes them as recorded, and checks what it can without the model.


MODEL = Grammar({"story": ["[a|b][c|d][e|f][g|h]", "[i|j][k|l]", "m"]})
SUFFIX = {"kind": "suffix"}
MIXED = mixture((0.2, "independent"), (0.8, SUFFIX))
BY_LENGTH = {"kind": "suffix", "cut": "length"}
LENGTHS = [{"weight": 0.5, "length": 1}, {"weight": 0.5, "length": 3}]
KERNELS = {
    "limit": SUFFIX,
    "length": BY_LENGTH,
    "mixture": MIXED,
    "walk": {"kind": "walk", "kernel": SUFFIX, "length": 3},
    "walk of a mixture": {"kind": "walk", "kernel": MIXED, "length": 2},
    "walks of several lengths": {"kind": "walk", "kernel": SUFFIX, "length": LENGTHS},
}


def record_of(kernel) -> Record:
    """Return 80 steps of two chains whose texts a grammar writes in the place of a served model."""
    config = parse_config(
        {
            "space": {"kind": "model-texts", "model": "grammar", "prompts": ["one", "two"], "limit": MODEL.limit},
            "kernel": kernel,
            "judges": [{"question": "Which one?", "votes": 1}],
            "chains": 2,
            "steps": 40,
            "seed": 5,
        }
    )
    longer = Voters(lambda state: len(state.tokens) / 4)
    return run_campaign(config, [longer], plan=config.build(model=MODEL))


RECORDS = {name: record_of(kernel) for name, kernel in KERNELS.items()}
every_walk = pytest.mark.parametrize("name", KERNELS)


@every_walk
def test_an_honest_record_of_texts_replays(name):
    assert differences(RECORDS[name]) == ()


def tokens_of(record, number):
    return next(json.loads(row["code"])["tokens"] for row in record["states"] if row["state_index"] == number)


def rewrite(record, number, tokens):
    """Put another whole text in the place of a state, content and all."""
    row = next(row for row in record["states"] if row["state_index"] == number)
    code = json.loads(row["code"]) | {"tokens": tokens, "text": MODEL.text("one", tuple(tokens))}
    row |= {"code": json.dumps(code), "content": code["text"]}


def rejected(record):
    """Return the rejected steps whose proposals have as many tokens as the text before."""
    return [
        step
        for step in record["steps"]
        if step["verdict"] == "reject"
        and step["current_state"] != step["proposal_state"]
        and len(tokens_of(record, step["current_state"])) == len(tokens_of(record, step["proposal_state"]))
    ]


@pytest.mark.parametrize("name", ["limit", "length", "walk", "walks of several lengths"])
def test_a_text_that_does_not_begin_as_the_cut_says_is_found(name):
    found = []
    for step in rejected(RECORDS[name]):
        record, before = copy.deepcopy(RECORDS[name]), tokens_of(RECORDS[name], step["current_state"])
        longest = [tokens for tokens in MODEL.derivations("one") if len(tokens) == len(before)]
        other = next((tokens for tokens in longest if tokens[1:2] != tuple(before[1:2])), None)
        if other:
            rewrite(record, step["proposal_state"], list(other))
            found += [
                each for each in differences(record) if (each.step, each.what) == (step_key(step), "proposal_state")
            ]
    assert found
    assert {each.recorded for each in found} == {"another beginning"}
    assert all("the same first" in each.recomputed for each in found)


def test_a_new_text_where_the_cut_lies_behind_the_end_is_found():
    record = copy.deepcopy(RECORDS["limit"])
    step = next(step for step in reversed(record["steps"]) if step["current_state"] == step["proposal_state"])
    chain, number = int(step["chain_index"]), int(step["step"])
    made = str(number * 2 + chain)
    # The step as it would stand if it had proposed a text of its own, and that had been rejected; what follows is cut.
    step |= {"proposal_state": made, "verdict": "reject"}
    vote = {"chain_index": chain, "step": number, "number": 1, "judge_index": 0, "question": "Which one?", "voter": 1}
    states = {"first_state": made, "second_state": step["current_state"], "chosen_state": step["current_state"]}
    sides = {"for_proposal": 0, "proposal_side": "first", "chosen_side": "second"}
    record["votes"].append(row_of(tables.VOTES, **vote, **states, **sides))
    old = next(row for row in record["states"] if row["state_index"] == step["current_state"])
    record["states"].append(dict(old, state_index=made))
    before = tokens_of(record, step["current_state"])
    rewrite(record, made, next(tokens for tokens in map(list, MODEL.derivations("one")) if tokens != before))
    assert any(found.recomputed.startswith("the same text") for found in differences(record))


@pytest.mark.parametrize(("name", "said"), [("length", "0.25"), ("mixture", "0.6931471805599453"), ("walk", "0.5")])
def test_another_base_ratio_than_that_of_the_move_is_found(name, said):
    record = copy.deepcopy(RECORDS[name])
    step = rejected(record)[-1]
    step["log_r0"] = said
    found = differences(record)[0]
    assert (found.step, found.what) == (step_key(step), "log_r0")
