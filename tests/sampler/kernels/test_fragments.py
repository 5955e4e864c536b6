"""Moves by fragments: q by three routes, the base ratio the kernel claims, the balance and the law that follow."""

import math
import os
from collections import Counter
from functools import cache

import numpy as np
import pytest
from rdkit import Chem

from sampler import Proposal, Purpose, stream
from sampler.kernels.fragments import FragmentMoves
from sampler.spaces.molecules.graph import canonical_state, heavy_atoms, read_molecule
from sampler.spaces.molecules.space import MoleculeLaw, default_size_log_weights
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary
from tests.support.sampling import (
    SMALL_SPACES,
    check_balance,
    check_long_run,
    check_rows,
    log_base_ratio,
    q_matrix,
    size_log_p0,
    target,
    tried_add,
    tried_delete,
    written_out_law,
)

every_space = pytest.mark.parametrize("name", SMALL_SPACES)
# Here no two actions lead to the same product, and a ratio of single paths is the exact one.
WITHOUT_SYMMETRY = ("imidazole", "pyridone")
# Those whose chain mixes within thousands of steps.
WALKED = ("alkanes", "symmetric", "duplicates", "nitro", "imidazole")
# 100,000 in a release: MOLECULE_MOVES=100000 python -m pytest tests/sampler/kernels/test_fragments.py
FUZZ_MOVES = int(os.environ.get("MOLECULE_MOVES", "2500"))


class Scripted:
    """A generator whose numbers are given."""

    def __init__(self, *numbers: float) -> None:
        self._numbers = iter(numbers)

    def random(self) -> float:
        return next(self._numbers)


class PathsOnly(FragmentMoves):
    """A deliberately wrong kernel: it counts the one action and the one cut it took, not all that do the same."""

    def _log_q(self, low, high, made, pieces):
        add = self._add * self._vocabulary.weights[pieces.arm] / len(low.rooms)
        return math.log(add), math.log((1 - self._add) / len(high.cuts))


@cache
def solved(name):
    """Return the states of a small space, log p0 and q."""
    space = SMALL_SPACES[name]
    states = space.reachable()
    return states, size_log_p0(space.law(), states), q_matrix(space.kernel(), states)


def every_action(space, kernel, state):
    """Yield (probability, proposal) for every action the kernel can take, driven by the numbers it draws."""
    graph, vocabulary = read_molecule(state), Vocabulary(space.arms)
    before = 0.0
    for arm in vocabulary:
        weight = vocabulary.weights[arm.smiles]
        for place in range(max(len(graph.rooms), 1)):
            share = 1 / max(len(graph.rooms), 1)
            drawn = Scripted(space.add / 2, before + weight / 2, (place + 0.5) * share)
            yield space.add * weight * share, kernel.propose(drawn, state)
        before += weight
    for place in range(max(len(graph.cuts), 1)):
        share = 1 / max(len(graph.cuts), 1)
        yield (1 - space.add) * share, kernel.propose(Scripted((1 + space.add) / 2, (place + 0.5) * share), state)


def claimed(name, kernel):
    """Return the log base ratios that the kernel claims for every move it can make, shape (n, n)."""
    states, _, q = solved(name)
    place = {state: i for i, state in enumerate(states)}
    ratios = np.full(q.shape, -np.inf)
    for state in states:
        for _, proposal in every_action(SMALL_SPACES[name], kernel, state):
            ratios[place[state], place[proposal.state]] = proposal.log_r0
    return ratios


def check_claims(name, kernel):
    """Check the kernel's own ratios of every move in a small space."""
    _, log_p0, q = solved(name)
    check_balance(log_p0, q, claimed(name, kernel))


def check_visits(name, kernel):
    """Check a long chain of the kernel in a small space."""
    states, log_p0, q = solved(name)
    law = dict(zip(states, target(log_p0, np.zeros((1, len(states)))), strict=True))
    check_long_run(np.random.default_rng(5), kernel, SMALL_SPACES[name].start, law, q, steps=8_000)


@every_space
def test_q_sums_to_one_and_a_move_is_possible_both_ways_or_neither(name):
    _, _, q = solved(name)
    check_rows(q)


@every_space
def test_q_is_what_moving_hydrogens_by_hand_gives(name):
    states, _, _ = solved(name)
    kernel = SMALL_SPACES[name].kernel()
    for state in states[:: max(1, len(states) // 40)]:
        ours = {reached: chance for reached, chance in kernel.law(state).items() if chance}
        theirs = {reached: chance for reached, chance in written_out_law(SMALL_SPACES[name], state).items() if chance}
        assert ours == pytest.approx(theirs, abs=1e-14)


@every_space
def test_proposals_follow_q(name):
    space = SMALL_SPACES[name]
    states, _, _ = solved(name)
    kernel = space.kernel()
    for state in states[:: max(1, len(states) // 40)]:
        drawn = Counter()
        for chance, proposal in every_action(space, kernel, state):
            drawn[proposal.state] += chance
        law = kernel.law(state)
        assert {reached: drawn[reached] for reached in law | drawn} == pytest.approx(law, abs=1e-14)


@every_space
def test_the_claimed_base_ratios_give_detailed_balance(name):
    check_claims(name, SMALL_SPACES[name].kernel())


@every_space
def test_the_ratio_of_the_paper_breaks_detailed_balance(name):
    with pytest.raises(AssertionError, match="log r0 is off"):
        check_claims(name, SMALL_SPACES[name].kernel("paper"))


@pytest.mark.parametrize("name", [name for name in SMALL_SPACES if name not in WITHOUT_SYMMETRY])
def test_a_ratio_of_single_paths_breaks_detailed_balance(name):
    space = SMALL_SPACES[name]
    with pytest.raises(AssertionError, match="log r0 is off"):
        check_claims(name, PathsOnly(Vocabulary(space.arms), space.law(), space.add))


@pytest.mark.parametrize("name", WALKED)
def test_a_long_chain_visits_what_the_law_says(name):
    check_visits(name, SMALL_SPACES[name].kernel())


@pytest.mark.parametrize("name", WALKED)
def test_a_long_chain_with_the_ratio_of_the_paper_does_not(name):
    with pytest.raises(AssertionError, match="do not follow the law"):
        check_visits(name, SMALL_SPACES[name].kernel("paper"))


@pytest.mark.parametrize("name", ["symmetric", "duplicates"])
def test_the_ratio_can_be_worked_out_from_two_molecules(name):
    states, log_p0, q = solved(name)
    kernel, exact = SMALL_SPACES[name].kernel(), log_base_ratio(log_p0, q)
    for i, state in enumerate(states):
        for j, other in enumerate(states):
            expected = 0.0 if i == j else exact[i, j]
            assert kernel.log_r0(state, other) == pytest.approx(expected, abs=1e-12)


def test_filters_are_part_of_the_target():
    arms = [("*C", 1.0), ("*F", 1.0), ("*C1CC1", 1.0), ("*Cl", 1.0), ("*c1ccccc1", 1.0)]
    law = MoleculeLaw((0.0,) * 8, frozenset({"C", "Cl"}), frozenset({6}), ("BRENK",))
    kernel = FragmentMoves(Vocabulary(arms), law)
    reached = kernel.law("CC")
    assert reached.keys() == {"C", "CC", "CCC", "CCc1ccccc1"}
    assert math.fsum(reached.values()) == pytest.approx(1, abs=1e-15)
    for state in ("CF", "C1CC1", "CCCl"):
        with pytest.raises(ValueError, match="support"):
            kernel.propose(Scripted(), state)


def test_a_kernel_is_a_function_of_its_stream_and_state_alone():
    law = MoleculeLaw((0.0,) * 40)
    fresh, used = (FragmentMoves(default_vocabulary(), law) for _ in range(2))
    state = "CC(=O)Nc1ccc(O)cc1"
    for step in range(200):
        used.propose(stream(1, 1, step, Purpose.PROPOSAL), state)
    for step in range(30):
        assert fresh.propose(stream(1, 2, step, Purpose.PROPOSAL), state) == used.propose(
            stream(1, 2, step, Purpose.PROPOSAL), state
        )


@pytest.mark.parametrize("add", [0.0, 1.0, -0.1, math.nan])
def test_additions_and_deletions_must_both_be_possible(add):
    with pytest.raises(ValueError, match="add"):
        FragmentMoves(Vocabulary([("*C", 1.0)]), MoleculeLaw((0.0, 0.0)), add)


def test_random_moves_stay_molecules_and_can_be_undone():
    vocabulary, law = default_vocabulary(), MoleculeLaw(default_size_log_weights())
    kernel = FragmentMoves(vocabulary, law)
    moved = 0
    state = "CC"
    for step in range(FUZZ_MOVES):
        rng = stream(8, 0, step, Purpose.PROPOSAL)
        proposal = kernel.propose(rng, state)
        assert math.isfinite(proposal.log_r0)
        if proposal.state == state:
            assert proposal == Proposal(state, 0.0)
            continue
        moved += 1
        assert canonical_state(proposal.state) == proposal.state
        assert heavy_atoms(proposal.state) == Chem.MolFromSmiles(proposal.state).GetNumHeavyAtoms() <= law.largest
        back = kernel.log_r0(proposal.state, state)
        assert back == pytest.approx(-proposal.log_r0, abs=1e-9)
        if moved % 25 == 0:
            low, high = sorted((state, proposal.state), key=heavy_atoms)
            ways = math.log(tried_delete(vocabulary, high, low)) - math.log(tried_add(vocabulary, low, high))
            ways += law.size_log_weights[heavy_atoms(high) - 1] - law.size_log_weights[heavy_atoms(low) - 1]
            assert proposal.log_r0 == pytest.approx(ways if high == proposal.state else -ways, abs=1e-9)
        if rng.random() < math.exp(min(0.0, proposal.log_r0)):
            state = proposal.state
    assert moved > FUZZ_MOVES / 10
