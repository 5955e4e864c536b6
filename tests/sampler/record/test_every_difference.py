"""Records of small campaigns, changed in one cell: each difference is told in full, and nothing else is."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from sampler import Difference, Record, RecordError, read_record, replay
from tests.support.campaigns import EXAMPLES, example_record

Change = Callable[[Record], list[str]]


def record_of(name: str) -> Record:
    return copy.deepcopy(read_record(example_record(name)))


def told(record: Record) -> list[str]:
    return [str(difference) for difference in found_in(record)]


def found_in(record: Record) -> tuple[Difference, ...]:
    tables = record.states, record.steps, record.votes, record.samples, record.ratings
    return replay(record.config, *tables, record.judges).differences


def where(row: dict[str, str]) -> str:
    return f"chain {row['chain']}, step {row['step']}"


def moved(record: Record) -> dict[str, Any]:
    """Return the first step that asked somebody."""
    return next(step for step in record.steps if step["current"] != step["proposal"])


# Ratings.


def another_mean(record: Record) -> list[str]:
    step = moved(record)
    honest = step["proposal_ratings"]
    step["proposal_ratings"] = step["current_ratings"] = "9.75 1.0"
    [current] = {each["current_ratings"] for each in record_of("ratings-separate").steps[:1]}
    return [
        f"{where(step)}: current_ratings: the export has “9.75 1.0”, expected “{current}”",
        f"{where(step)}: proposal_ratings: the export has “9.75 1.0”, expected “{honest}”",
    ]


def a_missing_rating(record: Record) -> list[str]:
    # Of an object that one step only is about, the last of its chain.
    ends = [step for step in record.steps if step["step"] == str(record.config["steps"])]
    seen = [state for step in record.steps for state in {step["current"], step["proposal"]}]
    step = next(step for step in ends if step["current"] != step["proposal"] and seen.count(step["proposal"]) == 1)
    lost = next(row for row in record.ratings if row["state"] == step["proposal"])
    record.ratings.remove(lost)
    counts = "1 1" if lost["judge"] == "0" else "2 0"
    return [
        f"{where(step)}: the number of ratings of state {lost['state']}: the export has {counts}, expected 2 1",
        f"{where(step)}: current_ratings: the export has “{step['current_ratings']}”, expected “”",
        f"{where(step)}: proposal_ratings: the export has “{step['proposal_ratings']}”, expected “”",
        f"{where(step)}: the verdict: the export has {step['verdict']}, expected undecided",
        *_sample_of(record, step),
    ]


def _sample_of(record: Record, step: dict[str, str]) -> list[str]:
    [sample] = [row for row in record.samples if where(row) == where(step)]
    return [
        f"{where(step)}: the sample: the export has {sample['state']}, expected none: the chain does not reach this "
        "step",
    ]


def a_vote_where_ratings_decide(record: Record) -> list[str]:
    step = moved(record)
    record.votes.append(record_of("people-and-model").votes[0] | {"chain": step["chain"], "step": step["step"]})
    record.votes[-1]["annotator"] = "somebody"
    return [f"{where(step)}: a vote: the export has one, expected none: ratings decide"]


def another_verdict(record: Record) -> list[str]:
    step = moved(record)
    honest = step["verdict"]
    step["verdict"] = {"accept": "reject", "reject": "accept"}[honest]
    return [f"{where(step)}: the verdict: the export has {step['verdict']}, expected {honest}"]


def votes_counted_where_ratings_decide(record: Record) -> list[str]:
    step = moved(record)
    step["votes_cast"] = "1 0"
    return [f"{where(step)}: votes_cast: the export has “1 0”, expected “0 0”"]


def a_rating_of_another_reply(record: Record) -> list[str]:
    row = record.ratings[0]
    row["identity"] = "99"
    return [
        f"judge {row['judge']}: the reply for the rating of state {row['state']} in slot {row['slot']} is “99” in "
        "judges.json, one that counted in the record"
    ]


# Judges.


def model_of(record: Record) -> tuple[int, dict[str, Any]]:
    assert record.judges is not None
    return next((place, judge) for place, judge in enumerate(record.judges) if judge["source"] == "model")


def told_of(place: int, what: str, recorded: object, expected: object) -> str:
    return f"judge {place}: {what} is “{recorded}” in judges.json, “{expected}” in the record"


def every_field_of_a_model(record: Record) -> list[str]:
    place, judge = model_of(record)
    expected = record.config["judges"][place]
    lines = [
        told_of(place, "the number", 7, place),
        told_of(place, "the question", "Which?", expected["question"]),
        told_of(place, "the source", "people", "model"),
        told_of(place, "the endpoint", "Another", expected["source"]["endpoint"]),
        told_of(place, "the temperature", 0.123, expected["source"]["temperature"]),
        told_of(place, "the requested model", "other", judge["model"]),
        told_of(place, "the number of objects shown", 3, 2),
        told_of(place, "the question in the prompt", "Which?", expected["question"]),
    ]
    judge |= {"judge": 7, "question": "Which?", "source": "people", "endpoint": "Another"}
    judge["request"] |= {"temperature": 0.123, "model": "other"}
    judge["prompt"] |= {"headings": ["A", "B", "C"], "opening": "Question: Which?"}
    return lines


def objects_shown_to_one_who_rates(record: Record) -> list[str]:
    _, judge = model_of(record)
    judge["prompt"]["headings"] = ["A", "B"]
    return [told_of(0, "the number of objects shown", 2, 1)]


def a_vote_of_another_reply(record: Record) -> list[str]:
    vote = next(row for row in record.votes if not row["annotator"])
    vote["identity"] = "99"
    return [f"{where(vote)}: vote {vote['number']}'s reply: the export has “99”, expected one that counted"]


def a_vote_of_no_reply(record: Record) -> list[str]:
    vote = next(row for row in record.votes if not row["annotator"])
    vote["identity"] = ""
    return [f"{where(vote)}: vote {vote['number']}'s reply: the export has “”, expected one of judges.json"]


def replies_that_were_not_accepted(record: Record) -> list[str]:
    place, judge = model_of(record)
    for identity in judge["identities"]:
        identity["accepted_at"] = None
    return [
        f"{where(vote)}: vote {vote['number']}'s reply: the export has “{vote['identity']}”, expected one that counted"
        for vote in record.votes
        if vote["judge"] == str(place)
    ]


def a_preference_of_a_judge_whose_votes_are_sampled(record: Record) -> list[str]:
    vote = next(row for row in record.votes if not row["annotator"])
    vote["preference"] = "1.0" if vote["for_proposal"] == "1" else "0.0"
    return [
        f"{where(vote)}: vote {vote['number']}'s preference: the export has {vote['preference']}, expected none: this "
        "judge's votes are sampled"
    ]


# Votes and draws.


def a_late_vote_of_another_reply(record: Record) -> list[str]:
    vote = next(row for row in record.votes if not row["annotator"])
    record.votes.append(vote | {"number": "", "identity": "99"})
    return [f"{where(vote)}: a late vote's reply: the export has “99”, expected one that counted"]


def another_side(record: Record) -> list[str]:
    vote = next(row for row in record.votes if not row["annotator"])
    honest = vote["proposal_side"]
    other = {"first": "second", "second": "first"}
    vote["proposal_side"], vote["chosen_side"] = other[honest], other[vote["chosen_side"]]
    vote["first_state"], vote["second_state"] = vote["second_state"], vote["first_state"]
    name = f"vote {vote['number']}"
    return [f"{where(vote)}: {name}'s proposal_side: the export has {other[honest]}, expected {honest}"]


def another_for_proposal(record: Record) -> list[str]:
    vote = record.votes[0]
    honest = vote["for_proposal"]
    vote["for_proposal"] = "2"
    return [f"{where(vote)}: vote {vote['number']}'s for_proposal: the export has 2, expected {honest}"]


def another_preference(record: Record) -> list[str]:
    vote = next(row for row in record.votes if row["preference"])
    answer = vote["for_proposal"]
    vote["preference"] = "0.0" if answer == "1" else "1.0"
    drawn = "0" if answer == "1" else "1"
    return [
        f"{where(vote)}: vote {vote['number']}'s answer: the export has {answer}, expected {drawn}, drawn from p",
    ]


def another_uniform(record: Record) -> list[str]:
    last = record.steps[-1]
    honest = last["uniform"]
    last["uniform"] = "0.5"
    return [
        f"{where(last)}: uniform: the export has 0.5, expected {honest}",
        *_sample_of(record, last),
    ]


def another_sample(record: Record) -> list[str]:
    last = record.samples[-1]
    honest = dict(last)
    other = next(row for row in record.states if row["state"] != last["state"])
    last["state"], last["content"] = other["state"], "x" * 70
    return [
        f"{where(last)}: the sample: the export has {other['state']}, expected {honest['state']}",
        f"{where(last)}: the sample's content: the export has “{'x' * 60}”, expected “{other['content'][:60]}”",
    ]


def a_sample_that_is_missing(record: Record) -> list[str]:
    last = record.samples.pop()
    return [f"{where(last)}: the sample: the export has missing, expected {last['state']}"]


def a_sample_of_no_state(record: Record) -> list[str]:
    last = record.samples[-1]
    honest, last["state"] = last["state"], "99"
    content = f"“{last['content'][:60]}”"
    return [
        f"{where(last)}: the sample: the export has 99, expected {honest}",
        f"{where(last)}: the sample's content: the export has {content}, expected none: states.csv has no such state",
    ]


def a_second_sample(record: Record) -> list[str]:
    last = record.samples[-1]
    record.samples.append(dict(last))
    return [f"{where(last)}: a second sample: the export has {last['state']}, expected one sample per step"]


def a_vote_too_many(record: Record) -> list[str]:
    step = next(step for step in record.steps if step["verdict"] and step["votes_cast"] != "0")
    last = [row for row in record.votes if where(row) == where(step) and row["number"]][-1]
    number = int(last["number"]) + 1
    record.votes.append(last | {"number": str(number), "annotator": "99", "slot": "", "identity": "", "preference": ""})
    settled = f"{step['verdict']} was settled before it"
    return [f"{where(step)}: vote {number}: the export has counted, expected not counted: {settled}"]


def a_step_of_no_chain(record: Record) -> list[str]:
    record.steps.append(record.steps[-1] | {"chain": "5"})
    return ["chain 5, step 4: the step: the export has one, expected none: there are 2 chains"]


# Texts that a model wrote, which nobody draws again.


def another_ratio_of_a_text(record: Record) -> list[str]:
    last = record.steps[-1]
    honest = last["log_r0"]
    last["log_r0"] = "3.25"
    return [
        f"{where(last)}: log_r0: the export has 3.25, expected {honest}",
        *_sample_of(record, last),
    ]


CASES: list[tuple[str, Change]] = [
    ("ratings-separate", another_mean),
    ("ratings-separate", a_missing_rating),
    ("ratings-separate", a_vote_where_ratings_decide),
    ("ratings-separate", another_verdict),
    ("ratings-separate", votes_counted_where_ratings_decide),
    ("ratings-separate", a_rating_of_another_reply),
    ("ratings-separate", objects_shown_to_one_who_rates),
    ("people-and-model", every_field_of_a_model),
    ("people-and-model", a_vote_of_another_reply),
    ("people-and-model", a_vote_of_no_reply),
    ("people-and-model", replies_that_were_not_accepted),
    ("people-and-model", a_preference_of_a_judge_whose_votes_are_sampled),
    ("people-and-model", a_late_vote_of_another_reply),
    ("people-and-model", another_side),
    ("people-and-model", another_for_proposal),
    ("model-asked-first", another_preference),
    ("people-and-model", another_uniform),
    ("people-and-model", another_sample),
    ("people-and-model", a_sample_that_is_missing),
    ("people-and-model", a_sample_of_no_state),
    ("people-and-model", a_second_sample),
    ("people-and-model", a_vote_too_many),
    ("people-and-model", a_step_of_no_chain),
    ("model-texts", another_ratio_of_a_text),
    ("model-texts", another_uniform),
]


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_a_record_replays_without_a_difference(name: str) -> None:
    assert told(record_of(name)) == []


@pytest.mark.parametrize(("name", "change"), CASES, ids=[f"{name}-{change.__name__}" for name, change in CASES])
def test_a_changed_cell_is_told_in_full(name: str, change: Change) -> None:
    record = record_of(name)
    expected = change(record)
    assert told(record) == expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            lambda record: record.ratings.append(dict(record.ratings[0])),
            "the rating of state . by judge 0 in slot 0 oc",
        ),
        (lambda record: record.ratings[0].update(rating="11"), "in slot 0 must be 1 to 10, not “11”"),
        (lambda record: record.ratings[0].update(slot="2"), "in slot 2 is not possible: there is no such judge, slot"),
        (lambda record: record.ratings[0].update(judge="2"), "by judge 2 in slot 0 is not possible"),
        (lambda record: record.ratings[0].update(state="99"), "the rating of state 99 by judge 0 in slot 0 is not"),
        (lambda record: record.judges.pop(), r"judges\.json must hold the 2 judges of the config"),
        (lambda record: record.judges.__setitem__(1, "x"), r"judges\.json must hold the 2 judges of the config"),
        (lambda record: record.judges[0].update(prompt="x"), r"prompt in judges\.json must be an object"),
        (lambda record: record.judges[0].pop("question"), "there is no column 'question'"),
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
    [last] = [step for step in record.steps if where(step) == f"chain 0, step {record.config['steps']}"]
    assert last["current"] != last["proposal"]
    last |= {"verdict": "", "uniform": "", "decided_at": "", "current_ratings": "", "proposal_ratings": ""}
    record.samples[:] = [sample for sample in record.samples if where(sample) != where(last)]
    assert told(record) == []


def test_a_start_that_was_not_drawn_and_a_code_that_cannot_be_read_are_told_where_they_are() -> None:
    record = record_of("texts")
    record.states[0]["code"] = record.states[1]["code"]
    first = found_in(record)[0]
    assert (first.chain, first.step) == (0, 0)
    record.states[0]["code"] = "no text"
    first = found_in(record)[0]
    assert (first.chain, first.step, first.recorded) == (0, 0, "“no text”")


def test_what_is_about_a_judge_is_about_no_step() -> None:
    record = record_of("people-and-model")
    every_field_of_a_model(record)
    assert {(difference.chain, difference.step) for difference in found_in(record)} == {(1, 0)}


def test_ratings_have_no_place_where_votes_decide() -> None:
    record = record_of("people-and-model")
    record.ratings.append(record_of("ratings-separate").ratings[0])
    with pytest.raises(RecordError, match=r"ratings\.csv must be empty where votes decide"):
        told(record)
