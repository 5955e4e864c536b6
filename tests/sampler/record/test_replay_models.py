"""Replay draws a model's votes again: the side each was shown on, and the answer that its probability gives."""

import copy

import pytest

from sampler import (
    Purpose,
    Tally,
    Verdict,
    advance,
    ask,
    begin,
    draws_of,
    parse_recipe,
    presentations_of,
    replay,
    stream,
    tell,
)
from tests.support.catalogs import LOPSIDED
from tests.support.records import RECIPE, Record, sample_row, state_rows, text_row

MODEL = {"kind": "model", "endpoint": "judge", "votes": "log-probabilities"}
JUDGES = [{"question": "Which one is more gothic?", "budget": 3, "source": MODEL}]


def make_record() -> Record:
    """Run two chains whose only judge is a model that gives probabilities."""
    recipe = parse_recipe(RECIPE | {"judges": JUDGES})
    plan = recipe.build(LOPSIDED)
    record = Record(recipe.model_dump(mode="json"), state_rows(LOPSIDED), [], [], [])
    for chain in range(recipe.chains):
        position = begin(plan, chain)
        record.samples.append(sample_row(recipe, position))
        for _ in range(recipe.steps):
            comparison = ask(plan, position)
            step = (plan.seed, chain, comparison.step, plan.budgets, 0)
            first, numbers = presentations_of(*step, "random"), draws_of(*step)
            p = float(stream(5, chain, comparison.step, Purpose.JUDGES).random())
            tally, slot = Tally.empty(1), 0
            while (verdict := tell(comparison, tally)) is Verdict.UNDECIDED:
                for_proposal = numbers[slot] < p
                tally = tally.add(0, for_proposal)
                record.votes.append(_vote(comparison, recipe, slot, first[slot], for_proposal, p))
                slot += 1
            record.steps.append(_step(comparison, tally, verdict))
            position = advance(position, comparison, verdict)
            record.samples.append(sample_row(recipe, position))
    return record


def _vote(comparison, recipe, slot, proposal_first, for_proposal, p):
    side, other = ("left", "right") if proposal_first else ("right", "left")
    return text_row(
        chain=comparison.chain,
        step=comparison.step,
        number=slot + 1,
        judge=0,
        question=recipe.judges[0].question,
        annotator="",
        proposal_side=side,
        chosen_side=side if for_proposal else other,
        for_proposal=int(for_proposal),
        endpoint="judge",
        slot=slot,
        preference=repr(p),
        asks=1,
    )


def _step(comparison, tally, verdict):
    return text_row(
        chain=comparison.chain,
        step=comparison.step,
        current=comparison.current,
        proposal=comparison.proposal,
        log_r0=comparison.log_r0,
        uniform=comparison.uniform,
        budgets="3",
        votes_cast=tally.votes_cast[0],
        votes_for=tally.votes_for[0],
        verdict=verdict.value,
    )


@pytest.fixture(scope="module")
def honest() -> Record:
    return make_record()


def test_a_true_record_of_a_model_passes(honest):
    found = replay(*honest.tables())
    assert found.differences == ()
    assert found.votes > 20


def test_an_answer_that_its_probability_does_not_give_is_found(honest):
    record = copy.deepcopy(honest)
    vote = record.votes[3]
    vote["preference"] = repr(1.0 - float(vote["for_proposal"]))
    (found,) = replay(*record.tables()).differences
    assert (found.chain, found.step) == (int(vote["chain"]), int(vote["step"]))
    assert "answer" in found.what


def test_a_side_that_was_not_drawn_is_found(honest):
    record = copy.deepcopy(honest)
    vote = record.votes[3]
    swapped = {"left": "right", "right": "left"}
    vote["proposal_side"], vote["chosen_side"] = swapped[vote["proposal_side"]], swapped[vote["chosen_side"]]
    (found,) = replay(*record.tables()).differences
    assert "proposal_side" in found.what
