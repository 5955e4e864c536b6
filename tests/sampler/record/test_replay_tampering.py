"""Each way to tamper with one step of a record is found, and found at that step."""

from __future__ import annotations

import copy

import pytest

from sampler import replay
from tests.support.sampling import make_record

HONEST = make_record()
OTHER_VERDICT = {"accept": "reject", "reject": "accept"}


@pytest.fixture
def record():
    return copy.deepcopy(HONEST)


def of_step(rows, step):
    return [row for row in rows if (row["chain"], row["step"]) == (step["chain"], step["step"])]


def voted_step(record, votes=2):
    """Return a step in the middle of a chain that took at least so many votes."""
    return next(step for step in record.steps if len(of_step(record.votes, step)) >= votes and int(step["step"]) > 4)


def differences(record):
    return replay(*record.tables()).differences


def flip(vote):
    """Answer the other way, consistently in both columns."""
    sides = {"left": "right", "right": "left"}
    vote["chosen_side"] = sides[vote["chosen_side"]]
    vote["for_proposal"] = str(1 - int(vote["for_proposal"]))


def flip_the_last_vote(record, step):
    flip(of_step(record.votes, step)[-1])


def contradict_a_vote(record, step):
    vote = of_step(record.votes, step)[0]
    vote["for_proposal"] = str(1 - int(vote["for_proposal"]))


def change_the_verdict(record, step):
    step["verdict"] = OTHER_VERDICT[step["verdict"]]


def forget_the_verdict(record, step):
    step["verdict"] = ""


def change_the_uniform(record, step):
    step["uniform"] = str(float(step["uniform"]) * (1 - 1e-15) + 1e-16)


def change_the_base_ratio(record, step):
    step["log_r0"] = str(float(step["log_r0"]) + 1e-9)


def change_the_budgets(record, step):
    step["budgets"] = "3 3"


def raise_the_votes_cast(record, step):
    first, second = step["votes_cast"].split()
    step["votes_cast"] = f"{int(first) + 1} {second}"


def give_a_vote_to_the_other_judge(record, step):
    first, second = step["votes_cast"].split()
    step["votes_cast"] = f"{int(first) - 1} {int(second) + 1}"


def forget_the_votes_cast(record, step):
    step["votes_cast"] = ""


def raise_the_votes_for(record, step):
    first, second = step["votes_for"].split()
    step["votes_for"] = f"{int(first) + 1} {second}"


def name_one_judges_votes_for_only(record, step):
    step["votes_for"] = step["votes_for"].split()[0]


def ask_another_question(record, step):
    of_step(record.votes, step)[0]["question"] = "Which one is more Gothic?"


def ask_the_other_judges_question(record, step):
    first, second = (next(v for v in of_step(record.votes, step) if v["judge"] == judge) for judge in "01")
    first["question"] = second["question"]


def answer_the_other_judge(record, step):
    vote = of_step(record.votes, step)[0]
    vote["judge"] = str(1 - int(vote["judge"]))


def change_the_samples_content(record, step):
    of_step(record.samples, step)[0]["content"] += " "


def change_the_sample_and_its_content(record, step):
    (sample,) = of_step(record.samples, step)
    other = record.states[(int(sample["state"]) + 1) % 5]
    sample.update(state=other["state"], content=other["content"])


def drop_the_last_vote(record, step):
    record.votes.remove(of_step(record.votes, step)[-1])


def drop_the_first_vote(record, step):
    record.votes.remove(of_step(record.votes, step)[0])


def drop_all_votes(record, step):
    for vote in of_step(record.votes, step):
        record.votes.remove(vote)


def swap_the_proposal(record, step):
    step["proposal"] = next(row["state"] for row in record.states if row["state"] not in step["proposal"])


def swap_current_and_proposal(record, step):
    step["current"], step["proposal"] = step["proposal"], step["current"]


def remove_the_step(record, step):
    record.steps.remove(step)


def repeat_the_step(record, step):
    record.steps.append(dict(step))


def add_a_vote_after_the_verdict(record, step):
    votes = of_step(record.votes, step)
    record.votes.append(votes[-1] | {"number": str(len(votes) + 1), "annotator": "late"})


def add_many_votes_after_the_verdict(record, step):
    for extra in range(9):
        add_a_vote_after_the_verdict(record, step)
        record.votes[-1]["annotator"] = f"late {extra}"


def let_one_person_vote_twice(record, step):
    votes = [vote for vote in of_step(record.votes, step) if vote["judge"] == "0"]
    votes[1]["annotator"] = votes[0]["annotator"]


def change_the_sample(record, step):
    (sample,) = of_step(record.samples, step)
    sample["state"] = str((int(sample["state"]) + 1) % 5)


def remove_the_sample(record, step):
    record.samples.remove(of_step(record.samples, step)[0])


def add_a_second_sample(record, step):
    record.samples.insert(0, of_step(record.samples, step)[0] | {"state": "0"})


@pytest.mark.parametrize(
    "tamper",
    [
        flip_the_last_vote,
        contradict_a_vote,
        change_the_verdict,
        forget_the_verdict,
        change_the_uniform,
        change_the_base_ratio,
        change_the_budgets,
        raise_the_votes_cast,
        give_a_vote_to_the_other_judge,
        forget_the_votes_cast,
        raise_the_votes_for,
        name_one_judges_votes_for_only,
        ask_another_question,
        ask_the_other_judges_question,
        answer_the_other_judge,
        drop_the_last_vote,
        drop_the_first_vote,
        drop_all_votes,
        swap_the_proposal,
        swap_current_and_proposal,
        remove_the_step,
        repeat_the_step,
        add_a_vote_after_the_verdict,
        add_many_votes_after_the_verdict,
        let_one_person_vote_twice,
        change_the_sample,
        change_the_samples_content,
        change_the_sample_and_its_content,
        remove_the_sample,
        add_a_second_sample,
    ],
)
def test_tampering_with_one_step_is_reported_at_that_step(record, tamper):
    step = voted_step(record, votes=3)
    place = int(step["chain"]), int(step["step"])
    tamper(record, step)
    found = differences(record)
    assert found
    # A step that is gone shows at the next one.
    nearby = {place, (place[0], place[1] + 1)} if tamper is remove_the_step else {place}
    assert (found[0].chain, found[0].step) in nearby
    assert f"step {found[0].step}" in str(found[0])
