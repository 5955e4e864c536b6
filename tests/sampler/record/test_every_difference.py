"""Records of small campaigns, changed in more than one cell: each difference is told in full, and nothing else is.

What one changed cell comes to is in `test_every_cell.py`.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from sampler import Difference, Record, RecordError, read_record, replay
from sampler.record.differences import step_key
from tests.support.campaigns import example_record

Change = Callable[[Record], list[str]]


def record_of(name: str) -> Record:
    return copy.deepcopy(read_record(example_record(name)))


def told(record: Record) -> list[str]:
    return [str(difference) for difference in found_in(record)]


def found_in(record: Record) -> tuple[Difference, ...]:
    return replay(record).differences


def where(row: dict[str, str]) -> str:
    return f"chain {row['chain_index']}, step {row['step']}"


def moved(record: Record) -> dict[str, Any]:
    """Return the first step that asked somebody."""
    return next(step for step in record["steps"] if step["current_state"] != step["proposal_state"])


def by_model(record: Record) -> dict[str, str]:
    """Return the first vote of a model."""
    return next(row for row in record["votes"] if not row["voter"])


# Ratings.


def a_missing_rating(record: Record) -> list[str]:
    # Of an object that one step only is about, the last of its chain.
    ends = [step for step in record["steps"] if step["step"] == str(record.config["steps"])]
    seen = [state for step in record["steps"] for state in {step["current_state"], step["proposal_state"]}]
    step = next(
        step
        for step in ends
        if step["current_state"] != step["proposal_state"] and seen.count(step["proposal_state"]) == 1
    )
    lost = next(row for row in record["ratings"] if row["state_index"] == step["proposal_state"])
    record["ratings"].remove(lost)
    counts = "[1, 1]" if lost["judge_index"] == "0" else "[2, 0]"
    numbers = [row for row in record["evidence"] if step_key(row) == step_key(step)]
    [sample] = [row for row in record["samples"] if where(row) == where(step)]
    reach = "none: the chain does not reach this step"
    return [
        f"{where(step)}: the numbers of ratings of state {lost['state_index']}: the export has {counts}, "
        "expected [2, 1]",
        *(
            f"{where(step)}: the numbers: the export has {row['current_number']} and {row['proposal_number']}, "
            "expected none"
            for row in numbers
        ),
        f"{where(step)}: the verdict: the export has {step['verdict']}, expected undecided",
        f"{where(step)}: the sample: the export has {sample['state_index']}, expected {reach}",
    ]


def a_vote_where_ratings_decide(record: Record) -> list[str]:
    step = moved(record)
    vote = record_of("people-and-model")["votes"][0]
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
        told_of(index, "the number of objects shown", 3, 2),
        told_of(index, "the question in the prompt", "Which?", expected["question"]),
    ]
    judge |= {"judge_index": 7, "question": "Which?", "source": "people", "endpoint": "Another"}
    judge["request"] |= {"temperature": 0.123, "model": "other"}
    judge["prompt"] |= {"headings": ["A", "B", "C"], "opening": "Question: Which?"}
    return lines


def objects_shown_to_one_who_rates(record: Record) -> list[str]:
    _, judge = model_of(record)
    judge["prompt"]["headings"] = ["A", "B"]
    return [told_of(0, "the number of objects shown", 2, 1)]


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


def a_vote_too_many(record: Record) -> list[str]:
    counted = [row for row in record["votes"] if row["number"] and row["voter"]]
    step = next(step for step in record["steps"] if step["verdict"] and step_key(step) in map(step_key, counted))
    number = sum(step_key(row) == step_key(step) and row["number"] != "" for row in record["votes"]) + 1
    vote = next(row for row in counted if step_key(row) == step_key(step))
    record["votes"].append(vote | {"number": str(number), "voter": "99"})
    settled = f"{step['verdict']} was settled before it"
    return [f"{where(step)}: vote {number}: the export has counted, expected not counted: {settled}"]


CASES: list[tuple[str, Change]] = [
    ("ratings-separate", a_missing_rating),
    ("ratings-separate", a_vote_where_ratings_decide),
    ("ratings-separate", numbers_of_no_step),
    ("ratings-separate", objects_shown_to_one_who_rates),
    ("people-and-model", every_field_of_a_model),
    ("people-and-model", replies_that_were_not_accepted),
    ("people-and-model", a_preference_of_a_judge_whose_votes_are_sampled),
    ("people-and-model", a_late_vote_of_another_reply),
    ("people-and-model", a_person_in_the_place_of_a_model),
    ("people-and-model", a_vote_too_many),
]


@pytest.mark.parametrize(("name", "change"), CASES, ids=[f"{name}-{change.__name__}" for name, change in CASES])
def test_a_change_is_told_in_full(name: str, change: Change) -> None:
    record = record_of(name)
    expected = change(record)
    assert told(record) == expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda record: record["ratings"].append(dict(record["ratings"][0])),
            "the rating of state . by judge 0 in slot 0 oc",
        ),
        (lambda record: record["ratings"][0].update(rating="11"), "in slot 0 must be 1 to 10, not “11”"),
        (
            lambda record: record["ratings"][0].update(slot="2"),
            "in slot 2 is not possible: there is no such judge, slot",
        ),
        (lambda record: record["ratings"][0].update(judge_index="2"), "by judge 2 in slot 0 is not possible"),
        (
            lambda record: record["ratings"][0].update(state_index="99"),
            "the rating of state 99 by judge 0 in slot 0 is not",
        ),
        (lambda record: record.documents["judges.json"].pop(), r"judges\.json must hold the 2 judges of the config"),
        (
            lambda record: record.documents["judges.json"].__setitem__(1, "x"),
            r"judges\.json must hold the 2 judges of the config",
        ),
        (
            lambda record: record.documents["judges.json"][0].update(prompt="x"),
            r"prompt in judges\.json must be an object",
        ),
        (lambda record: record.documents["judges.json"][0].pop("question"), "lacks 'question'"),
    ],
)
def test_what_cannot_be_in_a_record_of_ratings_is_refused(change: Callable[[Record], object], reason: str) -> None:
    record = record_of("ratings-separate")
    change(record)
    with pytest.raises(RecordError, match=reason):
        told(record)


def test_a_step_that_is_open_although_its_last_rating_is_there_is_no_difference() -> None:
    # Another chain may bring it while the record is written.
    record = record_of("ratings-separate")
    [last] = [step for step in record["steps"] if where(step) == f"chain 0, step {record.config['steps']}"]
    assert last["current_state"] != last["proposal_state"]
    last |= {"verdict": "", "uniform": "", "decided_at": ""}
    record["evidence"][:] = [row for row in record["evidence"] if where(row) != where(last)]
    record["samples"][:] = [sample for sample in record["samples"] if where(sample) != where(last)]
    assert told(record) == []


def test_a_start_that_was_not_drawn_and_a_code_that_cannot_be_read_are_told_where_they_are() -> None:
    record = record_of("texts")
    record["states"][0]["code"] = record["states"][1]["code"]
    first = found_in(record)[0]
    assert first.step == (0, 0)
    record["states"][0]["code"] = "no text"
    first = found_in(record)[0]
    assert (first.step, first.recorded) == ((0, 0), "“no text”")


def test_ratings_have_no_place_where_votes_decide() -> None:
    record = record_of("people-and-model")
    record["ratings"].append(record_of("ratings-separate")["ratings"][0])
    with pytest.raises(RecordError, match=r"ratings\.csv must be empty where votes decide"):
        told(record)
