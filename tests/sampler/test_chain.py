"""Ask, tell and advance: what they return, and what they refuse without changing anything."""

import dataclasses

import pytest

from sampler import (
    Independent,
    Mixture,
    Neighbours,
    Plan,
    Position,
    Proposal,
    Purpose,
    Tally,
    Verdict,
    advance,
    ask,
    ask_many,
    begin,
    begin_many,
    parse_config,
    stream,
    tell,
)
from tests.support.sampling import LOPSIDED, mixture

KERNELS = {
    "independent": Independent(LOPSIDED),
    "neighbours": Neighbours(LOPSIDED),
    "mixture": Mixture([0.5, 0.5], [Independent(LOPSIDED), Neighbours(LOPSIDED)]),
}


class Stay:
    """A kernel that always proposes the current state."""

    def propose(self, rng, state):
        return Proposal(state, 0.0)


def plan(kernel=KERNELS["neighbours"], seed=8):
    return Plan(seed, LOPSIDED, kernel, (3, 2))


@pytest.fixture
def position():
    return begin(plan(), chain=1)


@pytest.fixture
def comparison(position):
    return ask(plan(), position)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_asking_again_gives_the_same_comparison(kernel):
    first = [ask(plan(kernel), Position(chain, step, 2)) for chain in range(3) for step in range(5)]
    again = [ask(plan(kernel), Position(chain, step, 2)) for chain in range(3) for step in range(5)]
    assert first == again
    assert first == [ask(plan(kernel), Position(each.chain, each.step - 1, 2)) for each in reversed(first)][::-1]


def test_the_uniform_does_not_depend_on_the_state_or_the_kernel():
    expected = stream(8, 1, 5, Purpose.UNIFORM).random()
    for kernel in KERNELS.values():
        for state in range(len(LOPSIDED)):
            assert ask(plan(kernel), Position(1, 4, state)).uniform == expected


def test_a_comparison_carries_all_that_a_verdict_needs(position, comparison):
    assert (comparison.chain, comparison.step, comparison.current) == (1, 1, position.state)
    assert comparison.budgets == (3, 2)
    assert comparison.proposal in LOPSIDED.neighbours[position.state]


def test_tell_follows_the_votes(comparison):
    open_one = dataclasses.replace(comparison, log_r0=0.0, uniform=0.5)
    assert tell(open_one, Tally.empty(2)) is Verdict.UNDECIDED
    assert tell(open_one, Tally((3, 2), (3, 2))) is Verdict.ACCEPT
    assert tell(open_one, Tally((0, 0), (3, 0))) is Verdict.REJECT


def test_a_proposal_equal_to_the_state_is_accepted_without_a_vote(position):
    identity = ask(plan(Stay()), position)
    assert identity.is_identity
    assert tell(identity, Tally.empty(2)) is Verdict.ACCEPT
    assert advance(position, identity, Verdict.ACCEPT) == Position(1, 1, position.state)


def test_advance_takes_the_proposal_or_keeps_the_state(position, comparison):
    assert advance(position, comparison, Verdict.ACCEPT) == Position(1, 1, comparison.proposal)
    assert advance(position, comparison, Verdict.REJECT) == Position(1, 1, position.state)


def test_advance_refuses_an_open_comparison_and_changes_nothing(position, comparison):
    before = dataclasses.replace(position)
    with pytest.raises(ValueError, match="verdict must be settled"):
        advance(position, comparison, Verdict.UNDECIDED)
    assert position == before


@pytest.mark.parametrize("change", [{"chain": 2}, {"step": 2}, {"step": 0}, {"current": -1}])
def test_advance_refuses_the_comparison_of_another_position(position, comparison, change):
    before = dataclasses.replace(position)
    with pytest.raises(ValueError, match="comparison must be the next step"):
        advance(position, dataclasses.replace(comparison, **change), Verdict.ACCEPT)
    assert position == before


@pytest.mark.parametrize("judge", [-1, 3])
def test_a_tally_refuses_an_unknown_judge(judge):
    with pytest.raises(ValueError, match="judge must be 0 to 2"):
        Tally.empty(3).add(judge, True)


MANY = {
    "drawn one by one": ({"kind": "images"}, {"kind": "crank-nicolson", "beta": 0.3}),
    "drawn together": ({"kind": "texts", "scenarios": [0, 3]}, {"kind": "suffix", "cut": "length"}),
    "drawn by several kernels": ({"kind": "texts"}, mixture((0.4, "independent"), (0.6, "suffix"))),
}


@pytest.mark.parametrize(("space", "kernel"), MANY.values(), ids=MANY)
def test_many_chains_at_once_are_the_chains_one_by_one(space, kernel):
    judges = [{"question": "Which is darker?", "votes": 2}]
    config = {"space": space, "kernel": kernel, "judges": judges, "chains": 5, "steps": 9, "seed": 11}
    many = parse_config(config).build()
    starts = begin_many(many, range(5))
    assert [(each.chain, each.step) for each in starts] == [(chain, 0) for chain in range(5)]
    for chain, found in enumerate(starts):
        assert same(many.space, found.state, begin(many, chain).state)
    # Nor need they begin with the first one, or follow each other.
    for late in begin_many(many, [4, 1]):
        assert same(many.space, late.state, starts[late.chain].state)
    # Chains need not be at the same step.
    positions = [Position(each.chain, step, each.state) for step, each in enumerate(starts)]
    for position, found in zip(positions, ask_many(many, positions), strict=True):
        alone = ask(many, position)
        assert (found.chain, found.step, found.budgets) == (alone.chain, alone.step, alone.budgets)
        assert (found.log_r0, found.uniform) == (alone.log_r0, alone.uniform)
        assert same(many.space, found.current, position.state)
        assert same(many.space, found.proposal, alone.proposal)


def test_no_chain_has_no_start_and_no_comparison():
    assert begin_many(plan(), []) == ask_many(plan(), []) == []


def same(space, one, other):
    return space.encode(one) == space.encode(other)
