"""Ask, tell and advance: what they return, and what they refuse without changing anything.

Exact analysis against what is known in closed form, and against simulation.
"""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats

import sampler
from tests.support.sampling import (
    LOPSIDED,
    independent_distribution,
    mixture,
    neighbours_distribution,
    two_scores,
    visits_p_value,
)

KERNELS = {
    "independent": sampler.Independent(LOPSIDED),
    "neighbours": sampler.Neighbours(LOPSIDED),
    "mixture": sampler.Mixture([0.5, 0.5], [sampler.Independent(LOPSIDED), sampler.Neighbours(LOPSIDED)]),
}


class Stay:
    """A kernel that always proposes the current state."""

    def propose(self, rng, state):
        return sampler.Proposal(state, 0.0)


def plan(kernel=KERNELS["neighbours"], seed=8, max_votes=(3, 2)):
    return sampler.Plan(seed, LOPSIDED, kernel, max_votes)


@pytest.fixture
def position():
    return sampler.begin(plan(), chain=1)


@pytest.fixture
def comparison(position):
    return sampler.ask(plan(), position)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_asking_again_in_any_order_gives_the_same_comparison(kernel):
    positions = [sampler.Position(chain, step, 2) for chain in range(3) for step in range(5)]
    first = [sampler.ask(plan(kernel), position) for position in positions]
    assert first == [sampler.ask(plan(kernel), position) for position in reversed(positions)][::-1]


def test_the_uniform_does_not_depend_on_the_state_or_the_kernel():
    expected = sampler.stream(8, 1, 5, sampler.Purpose.UNIFORM).random()
    for kernel in KERNELS.values():
        for state in range(len(LOPSIDED)):
            assert sampler.ask(plan(kernel), sampler.Position(1, 4, state)).uniform == expected


def test_a_proposal_equal_to_the_state_is_accepted_without_a_vote(position):
    identity = sampler.ask(plan(Stay()), position)
    assert identity.is_identity
    assert sampler.tell(identity, sampler.Tally.empty(2)) is sampler.Verdict.ACCEPT
    assert sampler.advance(position, identity, sampler.Verdict.ACCEPT) == sampler.Position(1, 1, position.state)


def test_advance_takes_the_proposal_or_keeps_the_state(position, comparison):
    assert sampler.advance(position, comparison, sampler.Verdict.ACCEPT) == sampler.Position(1, 1, comparison.proposal)
    assert sampler.advance(position, comparison, sampler.Verdict.REJECT) == sampler.Position(1, 1, position.state)


def test_advance_refuses_what_does_not_settle_the_next_step_and_changes_nothing(position, comparison):
    before = dataclasses.replace(position)
    with pytest.raises(ValueError, match="verdict must be settled"):
        sampler.advance(position, comparison, sampler.Verdict.UNDECIDED)
    for change in ({"chain": 2}, {"step": 2}, {"step": 0}, {"current": -1}):
        with pytest.raises(ValueError, match="comparison must be the next step"):
            sampler.advance(position, dataclasses.replace(comparison, **change), sampler.Verdict.ACCEPT)
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
    many = sampler.parse_config(config).build()
    starts = sampler.begin_many(many, range(5))
    assert starts == [sampler.begin(many, chain) for chain in range(5)]
    # Nor need they begin with the first one, or follow each other.
    assert sampler.begin_many(many, [4, 1]) == [starts[4], starts[1]]
    # Chains need not be at the same step.
    positions = [sampler.Position(each.chain, step, each.state) for step, each in enumerate(starts)]
    assert sampler.ask_many(many, positions) == [sampler.ask(many, position) for position in positions]
    assert sampler.begin_many(many, []) == sampler.ask_many(many, []) == []


SCORES = two_scores(LOPSIDED)
PI = sampler.target(LOPSIDED.log_p0, SCORES)
Q = independent_distribution(LOPSIDED)
RULE = sampler.NVote((3, 2))


def test_more_votes_mix_faster_and_cost_more():
    times, costs, gaps = [], [], []
    for max_votes in [(1, 1), (2, 2), (4, 4), (8, 8)]:
        transitions = sampler.transition_matrix(LOPSIDED.log_p0, Q, SCORES, sampler.NVote(max_votes))
        times.append(sampler.autocorrelation_time(transitions, PI, np.arange(5.0)))
        gaps.append(sampler.spectral_gap(transitions))
        costs.append(sampler.votes_per_step(LOPSIDED.log_p0, Q, SCORES, sampler.NVote(max_votes)))
    assert times == sorted(times, reverse=True)
    assert gaps == sorted(gaps)
    assert costs == sorted(costs)


def test_without_early_stopping_every_comparison_costs_its_max_votes():
    moves = 1 - PI @ np.diag(Q)
    full = sampler.votes_per_step(LOPSIDED.log_p0, Q, SCORES, RULE, early_stopping=False)
    assert full == pytest.approx(5 * moves, rel=1e-12)
    assert sampler.votes_per_step(LOPSIDED.log_p0, Q, SCORES, RULE) < 0.9 * full


def test_a_constant_function_has_no_autocorrelation_time():
    with pytest.raises(ValueError, match="constant"):
        sampler.autocorrelation_time(np.tile(PI, (5, 1)), PI, np.full(5, 2.0))


# Random streams are functions of (seed, chain, step, purpose).


def test_every_part_of_the_key_changes_the_numbers():
    keys = itertools.product((0, 1, 2**32, 2**53 - 1), (0, 1, 2), (0, 1, 2), sampler.Purpose)
    firsts = [sampler.stream(*key).random() for key in keys]
    assert len(set(firsts)) == len(firsts)


@pytest.mark.parametrize("purpose", sampler.Purpose)
def test_a_uniform_is_the_top_53_bits_of_the_raw_output(purpose):
    raw = np.random.PCG64(np.random.SeedSequence(99, spawn_key=(2, 8, int(purpose)))).random_raw(100)
    expected = (raw >> np.uint64(11)).astype(np.float64) / 2.0**53
    assert sampler.stream(99, 2, 8, purpose).random(100).tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["seed", "chain", "step"])
def test_negative_keys_are_refused_by_name(name):
    with pytest.raises(ValueError, match=f"{name} must not be negative"):
        sampler.stream(**{"seed": 0, "chain": 0, "step": 0, name: -1}, purpose=sampler.Purpose.START)


# Simulated chains visit states as the exact chain says, and a majority vote is found out. And the test on visit
# counts that the statistical tests share: it holds its level and finds a wrong distribution.


JUDGES = [sampler.BradleyTerry(scores.__getitem__) for scores in SCORES]
CHAINS, STEPS = 4, 1_500


class Majority:
    """A wrong judge: a single vote, for whom more than half of another judge's votes are."""

    def __init__(self, judge, votes):
        self._judge, self._votes = judge, votes

    def vote(self, rng, current, proposal):
        return 2 * sum(self._judge.vote(rng, current, proposal) for _ in range(self._votes)) > self._votes


def p_value(kernel, distribution, max_votes=RULE.max_votes, judges=JUDGES):
    """Return the p-value of CHAINS * STEPS steps against the exact chain."""
    visits = np.zeros((CHAINS, len(LOPSIDED)))
    for chain in range(CHAINS):
        for position in sampler.simulate(plan(kernel(LOPSIDED), 5, max_votes), judges, STEPS, chain):
            visits[chain, position.state] += position.step > 0
    assert visits.sum() == CHAINS * STEPS
    return visits_p_value(visits, sampler.transition_matrix(LOPSIDED.log_p0, distribution(LOPSIDED), SCORES, RULE), PI)


def test_a_simulated_campaign_samples_the_target():
    # One time in a thousand a right chain would fall below; the seed is fixed.
    assert p_value(sampler.Independent, independent_distribution) > 1e-3
    assert p_value(sampler.Neighbours, neighbours_distribution) > 1e-3


def test_a_campaign_decided_by_majority_does_not():
    majorities = [Majority(judge, votes) for judge, votes in zip(JUDGES, RULE.max_votes, strict=True)]
    assert p_value(sampler.Independent, independent_distribution, (1, 1), majorities) < 1e-6


def test_a_simulated_campaign_is_a_function_of_its_seed():
    first, again, other = (
        [position.state for position in sampler.simulate(plan(sampler.Independent(LOPSIDED), seed), JUDGES, 60)]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_positions_count_the_steps_and_start_at_the_drawn_state():
    positions = list(sampler.simulate(plan(sampler.Neighbours(LOPSIDED), 5), JUDGES, 20, chain=3))
    assert [(position.chain, position.step) for position in positions] == [(3, step) for step in range(21)]
    assert positions[0] == sampler.begin(plan(sampler.Neighbours(LOPSIDED), 5), 3)
    moves = {(a.state, b.state) for a, b in itertools.pairwise(positions) if a.state != b.state}
    assert all(after in LOPSIDED.neighbours[before] for before, after in moves)


def test_every_budget_needs_its_judge():
    with pytest.raises(ValueError, match="judges must be 2"):
        next(sampler.simulate(plan(sampler.Independent(LOPSIDED), 5), JUDGES[:1], 1))


def test_a_judge_whose_scores_lie_far_apart_is_certain_and_overflows_nowhere():
    judge = sampler.BradleyTerry({"worst": -900.0, "best": 900.0}.__getitem__)
    assert (judge.preference("worst", "best"), judge.preference("best", "worst")) == (1.0, 0.0)


TRANSITIONS = sampler.transition_matrix(
    LOPSIDED.log_p0, neighbours_distribution(LOPSIDED), SCORES, sampler.NVote((2, 3))
)


def visit_counts(chains, steps, seed):
    """Return visit counts of chains run side by side from the stationary distribution, shape (chains, n)."""
    rng = np.random.default_rng(seed)
    cumulative = TRANSITIONS.cumsum(axis=1)
    state = rng.choice(len(PI), size=chains, p=PI)
    counts = np.zeros((chains, len(PI)))
    for _ in range(steps):
        state = np.minimum((rng.random(chains)[:, None] > cumulative[state]).sum(axis=1), len(PI) - 1)
        counts[np.arange(chains), state] += 1
    return counts


def test_p_values_of_a_right_chain_are_uniform_and_of_a_wrong_distribution_tiny():
    each = visit_counts(400, 2_000, seed=2)
    values = [visits_p_value(counts, TRANSITIONS, PI) for counts in each]
    assert stats.kstest(values, "uniform").pvalue > 1e-3
    wrong = 0.9 * PI + 0.1 / len(PI)
    assert visits_p_value(each, TRANSITIONS, PI) > 1e-3
    assert visits_p_value(each, TRANSITIONS, wrong) < 1e-6
