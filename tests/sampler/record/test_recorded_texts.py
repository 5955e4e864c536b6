"""Texts that only a model can write: a replay takes them as recorded, and checks what it can without the model."""

import copy
import json

import pytest

from sampler import Record, parse_config, replay, tables
from sampler.record.record import step_key
from tests.support.enumerated import Grammar
from tests.support.sampling import Voters, mixture, row_of, run_campaign

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
every_kernel = pytest.mark.parametrize("name", KERNELS)


def differences(record):
    return replay(record).differences


@every_kernel
def test_an_honest_record_replays(name):
    assert differences(RECORDS[name]) == ()


def tokens_of(record, number):
    return next(json.loads(row["code"])["tokens"] for row in record["states"] if row["state_index"] == number)


def write(record, number, tokens):
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
            write(record, step["proposal_state"], list(other))
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
    write(
        record,
        made,
        list(next(t for t in MODEL.derivations("one") if list(t) != tokens_of(record, step["current_state"]))),
    )
    assert any(found.recomputed.startswith("the same text") for found in differences(record))


@pytest.mark.parametrize(("name", "said"), [("length", "0.25"), ("mixture", "0.6931471805599453"), ("walk", "0.5")])
def test_another_base_ratio_than_that_of_the_move_is_found(name, said):
    record = copy.deepcopy(RECORDS[name])
    step = rejected(record)[-1]
    step["log_r0"] = said
    found = differences(record)[0]
    assert (found.step, found.what) == (step_key(step), "log_r0")
