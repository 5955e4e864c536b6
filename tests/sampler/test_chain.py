"""Ask, tell and advance: what they return, and what they refuse without changing anything.

Exact analysis against what is known in closed form, and against simulation.
"""

import dataclasses
import itertools

import numpy as np
import pytest

from sampler import (
    Independent,
    Mixture,
    Neighbours,
    NVote,
    Plan,
    Position,
    Proposal,
    Purpose,
    Tally,
    Verdict,
    advance,
    ask,
    ask_many,
    autocorrelation_time,
    begin,
    begin_many,
    parse_config,
    spectral_gap,
    stream,
    target,
    tell,
    transition_matrix,
    votes_per_step,
)
from tests.support.sampling import LOPSIDED, independent_law, mixture, two_scores

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
    assert starts == [begin(many, chain) for chain in range(5)]
    # Nor need they begin with the first one, or follow each other.
    assert begin_many(many, [4, 1]) == [starts[4], starts[1]]
    # Chains need not be at the same step.
    positions = [Position(each.chain, step, each.state) for step, each in enumerate(starts)]
    assert ask_many(many, positions) == [ask(many, position) for position in positions]
    assert begin_many(many, []) == ask_many(many, []) == []


SCORES = two_scores(LOPSIDED)
PI = target(LOPSIDED.log_p0, SCORES)
Q = independent_law(LOPSIDED)
RULE = NVote((3, 2))


def test_more_votes_mix_faster_and_cost_more():
    times, costs, gaps = [], [], []
    for budgets in [(1, 1), (2, 2), (4, 4), (8, 8)]:
        transitions = transition_matrix(LOPSIDED.log_p0, Q, SCORES, NVote(budgets))
        times.append(autocorrelation_time(transitions, PI, np.arange(5.0)))
        gaps.append(spectral_gap(transitions))
        costs.append(votes_per_step(LOPSIDED.log_p0, Q, SCORES, NVote(budgets)))
    assert times == sorted(times, reverse=True)
    assert gaps == sorted(gaps)
    assert costs == sorted(costs)


def test_without_early_stopping_every_comparison_costs_its_budgets():
    moves = 1 - PI @ np.diag(Q)
    full = votes_per_step(LOPSIDED.log_p0, Q, SCORES, RULE, early_stopping=False)
    assert full == pytest.approx(5 * moves, rel=1e-12)
    assert votes_per_step(LOPSIDED.log_p0, Q, SCORES, RULE) < 0.9 * full


def test_a_constant_function_has_no_autocorrelation_time():
    with pytest.raises(ValueError, match="constant"):
        autocorrelation_time(np.tile(PI, (5, 1)), PI, np.full(5, 2.0))


# Random streams are functions of (seed, chain, step, purpose).


def test_every_part_of_the_key_changes_the_numbers():
    keys = itertools.product((0, 1, 2**32, 2**53 - 1), (0, 1, 2), (0, 1, 2), Purpose)
    firsts = [stream(*key).random() for key in keys]
    assert len(set(firsts)) == len(firsts)


@pytest.mark.parametrize("purpose", Purpose)
def test_a_uniform_is_the_top_53_bits_of_the_raw_output(purpose):
    raw = np.random.PCG64(np.random.SeedSequence(99, spawn_key=(2, 8, int(purpose)))).random_raw(100)
    expected = (raw >> np.uint64(11)).astype(np.float64) / 2.0**53
    assert stream(99, 2, 8, purpose).random(100).tolist() == expected.tolist()


@pytest.mark.parametrize("key", [(-1, 0, 0), (0, -1, 0), (0, 0, -1)])
def test_negative_keys_are_refused_by_name(key):
    name = ("seed", "chain", "step")[key.index(-1)]
    with pytest.raises(ValueError, match=f"{name} must not be negative"):
        stream(*key, Purpose.START)
