"""The learned proposal: q by two routes, detailed balance with all ways summed, and the wrong ratios that break it."""

import os
from functools import cache

import numpy as np
import pytest

from sampler import NVote, Purpose, stream
from sampler.exact import log_base_ratio, preferences, stationary, target, total_variation, transitions_of
from sampler.kernels.fragments import FragmentMoves
from sampler.kernels.learned_fragments import EditorChangedError
from sampler.spaces.molecules.edits import Addition, Deletion, Edits
from sampler.spaces.molecules.space import MoleculeDistribution
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary
from tests.support import sampling
from tests.support.enumerated import every_edit, imbalance
from tests.support.outcomes import every_outcome
from tests.support.sampling import SMALL_SPACES

every_space = pytest.mark.parametrize("name", SMALL_SPACES)
# Section 4 of the experiments' notes names these two; equivalent atoms and fragments abound in both.
with_ways = pytest.mark.parametrize("name", ["symmetric", "duplicates"])
MIN_IMBALANCE = 1e-5


@cache
def solved(name):
    """Return the states of a small space, log p0 and the learned q."""
    space = SMALL_SPACES[name]
    states = space.reachable()
    return (
        states,
        sampling.size_log_p0(space.distribution(), states),
        sampling.q_matrix(sampling.learned(space), states),
    )


def kernel_of(name, editor=None, convention="exact"):
    return sampling.learned(SMALL_SPACES[name], editor, convention)


def chain_of(name, log_r0):
    """Return distribution and chain of four votes of one made-up judge, with this claimed ratio."""
    _, log_p0, q = solved(name)
    scores = np.random.default_rng(7).normal(size=(1, len(log_p0)))
    chain = transitions_of(q, NVote((4,)).mean_acceptance(log_r0, preferences(scores)))
    return target(log_p0, scores), chain


@every_space
def test_the_sum_over_ways_is_what_trying_every_action_gives(name):
    states, log_p0, q = solved(name)
    sampling.check_rows(q)
    sampling.check_balance(log_p0, q, sampling.claimed_ratios(kernel_of(name), states, q))


@every_space
def test_an_editor_that_says_nothing_gives_the_plain_proposal(name):
    space = SMALL_SPACES[name]
    kernel, plain = kernel_of(name, sampling.FixedEditor(len(Vocabulary(space.fragments)), spread=0.0)), space.kernel()
    states, _, _ = solved(name)
    for state in states[:: max(1, len(states) // 15)]:
        ours = {reached: chance for reached, chance in kernel.distribution(state).items() if chance}
        assert ours == pytest.approx(
            {each: chance for each, chance in plain.distribution(state).items() if chance}, abs=1e-14
        )


@with_ways
def test_votes_and_the_ratio_over_all_ways_keep_detailed_balance(name):
    states, _, q = solved(name)
    distribution, chain = chain_of(name, sampling.claimed_ratios(kernel_of(name), states, q))
    assert imbalance(distribution, chain) < sampling.TOLERANCE
    assert total_variation(stationary(chain), distribution) < 1e-9


def one(name):
    return np.zeros_like(solved(name)[2])


def forward_by_backward(name):
    """The optional correction of the released program."""
    _, log_p0, q = solved(name)
    with np.errstate(divide="ignore"):
        return log_p0[None, :] - log_p0[:, None] + np.log(q) + np.log(q.T)


def updated_in_between(name):
    """The editor learns between the forward and the backward probability."""
    states, log_p0, q = solved(name)
    updated = sampling.q_matrix(
        kernel_of(name, sampling.FixedEditor(len(Vocabulary(SMALL_SPACES[name].fragments)), seed=1)), states
    )
    wrong = log_base_ratio(log_p0, q)
    moves = q > 0
    wrong[moves] += np.log(updated.T[moves]) - np.log(q.T[moves])
    return wrong


@with_ways
@pytest.mark.parametrize(("wrong", "distance"), [(one, 0.05), (forward_by_backward, 0), (updated_in_between, 0)])
def test_a_wrong_ratio_breaks_it(name, wrong, distance):
    distribution, chain = chain_of(name, wrong(name))
    assert imbalance(distribution, chain) > MIN_IMBALANCE
    assert total_variation(stationary(chain), distribution) > distance


@with_ways
def test_a_ratio_of_single_paths_breaks_it(name):
    states, log_p0, _ = solved(name)
    chain = sampling.single_path_chain(kernel_of(name), states, log_p0)
    assert imbalance(target(log_p0, np.zeros((1, len(states)))), chain) > MIN_IMBALANCE


@with_ways
def test_every_draw_has_its_chance_and_carries_the_probabilities_that_the_distribution_gives(name):
    states, log_p0, q = solved(name)
    kernel, exact = kernel_of(name), log_base_ratio(log_p0, q)
    index, found = {state: i for i, state in enumerate(states)}, np.zeros_like(q)
    for i, state in enumerate(states):
        for chance, drawn in every_outcome(lambda rng, at=state: kernel.propose(rng, at)):
            j = index[drawn.state]
            found[i, j] += chance
            if i == j:
                assert (drawn.log_r0, drawn.log_forward, drawn.log_backward) == (0.0, None, None)
                continue
            assert np.exp([drawn.log_forward, drawn.log_backward]) == pytest.approx([q[i, j], q[j, i]], abs=1e-12)
            assert drawn.log_r0 == pytest.approx(exact[i, j], abs=1e-12)
    np.testing.assert_allclose(found, q, rtol=0, atol=1e-12)
    # The control: the plain proposal has another distribution.
    assert np.abs(found - sampling.q_matrix(SMALL_SPACES[name].kernel(), states)).max() > 0.01


def test_a_long_chain_visits_what_the_distribution_says():
    states, log_p0, q = solved("duplicates")
    distribution = dict(zip(states, target(log_p0, np.zeros((1, len(states)))), strict=True))
    kernel = kernel_of("duplicates")
    sampling.check_long_run(np.random.default_rng(5), kernel, "CC", distribution, q, steps=5_000)
    paper = kernel_of("duplicates", convention="paper")
    with pytest.raises(AssertionError, match="do not follow the distribution"):
        sampling.check_long_run(np.random.default_rng(5), paper, "CC", distribution, q, steps=5_000)


def test_a_batch_draws_what_single_calls_draw():
    states, _, _ = solved("duplicates")
    rngs = [[stream(3, chain, 1, Purpose.PROPOSAL) for chain in range(len(states))] for _ in range(2)]
    kernel = kernel_of("duplicates")
    together = kernel.propose_batch(rngs[0], states)
    assert together == [kernel.propose(rng, state) for rng, state in zip(rngs[1], states, strict=True)]


def test_an_update_on_the_way_is_an_error():
    kernel = kernel_of("symmetric", sampling.RestlessEditor(2))
    with pytest.raises(EditorChangedError, match="forward and backward"):
        kernel.propose(stream(4, 0, 0, Purpose.PROPOSAL), "c1ccccc1")
    with pytest.raises(EditorChangedError, match="forward and backward"):
        kernel.log_r0("c1ccccc1", "Cc1ccccc1")


def test_impossible_moves_have_no_probability():
    kernel = kernel_of("symmetric")
    assert kernel.log_q("c1ccccc1", "Cc1ccccc1C") == -np.inf
    assert kernel.log_r0("c1ccccc1", "Cc1ccccc1C") == -np.inf
    with pytest.raises(ValueError, match="another state"):
        kernel.log_q("c1ccccc1", "c1ccccc1")
    with pytest.raises(ValueError, match="support"):
        kernel.propose(stream(0, 0, 0, Purpose.PROPOSAL), "CCCCCCCCCCCC")


# Edits by their numbers: all ways between two molecules, against trying every atom, fragment and cut.


# More in a release: EDIT_MOVES=5000 python -m pytest tests/sampler/kernels/test_learned_fragments.py
FUZZ_MOVES = int(os.environ.get("EDIT_MOVES", "60"))
DISTRIBUTION = MoleculeDistribution((0.0,) * 40)


def tried(edits: Edits, low: str, high: str):
    """Return every addition and every deletion between two molecules, by trying all that have the right size."""
    small, large = edits.read(low), edits.read(high)
    sizes = [fragment.size for fragment in edits.vocabulary]
    additions = [
        edit
        for edit in every_edit(edits, small)
        if isinstance(edit, Addition)
        and sizes[edit.fragment] == large.size - small.size
        and edits.made(small, edit) == high
    ]
    deletions = [
        edit for edit in every_edit(edits, large) if isinstance(edit, Deletion) and edits.made(large, edit) == low
    ]
    return tuple(sorted(additions)), tuple(sorted(deletions))


def test_all_ways_are_found_between_molecules_of_the_default_vocabulary():
    vocabulary = default_vocabulary()
    edits, kernel = Edits(vocabulary, DISTRIBUTION), FragmentMoves(vocabulary, DISTRIBUTION)
    state, moves, several = "CC", 0, 0
    for step in range(FUZZ_MOVES):
        proposal = kernel.propose(stream(11, 0, step, Purpose.PROPOSAL), state)
        if proposal.state == state:
            continue
        low, high = sorted((state, proposal.state), key=lambda each: edits.read(each).size)
        ways = edits.ways(low, high)
        assert (ways.additions, ways.deletions) == tried(edits, low, high)
        moves += 1
        several += len(ways.additions) > 1 or len(ways.deletions) > 1
        state = proposal.state
    assert moves > FUZZ_MOVES / 6
    assert several > 0


@pytest.mark.parametrize(
    ("low", "high", "additions", "deletions"),
    [
        ("c1ccccc1", "Cc1ccccc1", 6, 1), ("Cc1ccccc1", "Cc1ccc(C)cc1", 1, 2), ("CC", "CCO", 2, 1),
        ("CC", "CCCO", 0, 0),
    ],
)  # fmt: skip
def test_ways_can_be_counted_by_hand(low, high, additions, deletions):
    ways = Edits(Vocabulary([("*C", 1.0), ("*O", 1.0)]), DISTRIBUTION).ways(low, high)
    assert (len(ways.additions), len(ways.deletions)) == (additions, deletions)
