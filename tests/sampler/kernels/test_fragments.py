"""Moves by fragments: q by two routes, the base ratio the kernel claims, and the balance that follows."""

import math
import os
from collections import Counter
from functools import cache

import numpy as np
import pytest
from rdkit import Chem
from scipy.sparse.csgraph import connected_components

import sampler
from sampler import Proposal, Purpose, stream
from sampler.config import ConfigError
from sampler.exact import target, transitions_of
from sampler.spaces.molecules.graph import attach, canonical_state, heavy_atoms, read_fragment, read_molecule
from sampler.spaces.molecules.space import MoleculeDistribution, core_problem, default_size_log_weights
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary
from tests.sampler.kernels.test_suffix import drawn_by
from tests.support import sampling
from tests.support.campaigns import make_config
from tests.support.enumerated import FragmentMoves, imbalance
from tests.support.sampling import SMALL_SPACES, SmallSpace, plain

every_space = pytest.mark.parametrize("name", SMALL_SPACES)
# Here no two actions lead to the same product, and a ratio of single paths is the exact one.
WITHOUT_SYMMETRY = ("imidazole", "pyridone")
# 100,000 in a release: MOLECULE_MOVES=100000 python -m pytest tests/sampler/kernels/test_fragments.py
FUZZ_MOVES = int(os.environ.get("MOLECULE_MOVES", "2500"))


class PathsOnly(FragmentMoves):
    """A deliberately wrong kernel: it counts the one action and the one cut it took, not all that do the same."""

    def _log_q(self, low, high, made, pieces):
        add = self._add * self._vocabulary.weights[pieces.fragment] / len(low.rooms)
        return math.log(add), math.log((1 - self._add) / len(high.cuts))


@cache
def solved(name):
    """Return the states of a small space, log p0 and q."""
    space = SMALL_SPACES[name]
    states = space.reachable()
    return states, sampling.size_log_p0(space.distribution(), states), sampling.q_matrix(space.kernel(), states)


def check_claims(name, kernel):
    """Check the kernel's own ratios of every move in a small space."""
    states, log_p0, q = solved(name)
    sampling.check_balance(log_p0, q, drawn_by(kernel, states)[1])


def check_visits(name, kernel):
    """Check a long chain of the kernel in a small space."""
    states, log_p0, q = solved(name)
    distribution = dict(zip(states, target(log_p0, np.zeros((1, len(states)))), strict=True))
    sampling.check_long_run(np.random.default_rng(5), kernel, SMALL_SPACES[name].start, distribution, q, steps=8_000)


@every_space
def test_the_ratio_of_the_paper_breaks_detailed_balance(name):
    with pytest.raises(AssertionError, match="log r0 is off"):
        check_claims(name, SMALL_SPACES[name].kernel("paper"))


@pytest.mark.parametrize("name", [name for name in SMALL_SPACES if name not in WITHOUT_SYMMETRY])
def test_a_ratio_of_single_paths_breaks_detailed_balance(name):
    space = SMALL_SPACES[name]
    with pytest.raises(AssertionError, match="log r0 is off"):
        check_claims(name, PathsOnly(Vocabulary(space.fragments), space.distribution(), space.add))


def test_filters_are_part_of_the_target():
    fragments = [("*C", 1.0), ("*F", 1.0), ("*C1CC1", 1.0), ("*Cl", 1.0), ("*c1ccccc1", 1.0)]
    distribution = MoleculeDistribution((0.0,) * 8, frozenset({"C", "Cl"}), frozenset({6}), ("BRENK",))
    kernel = FragmentMoves(Vocabulary(fragments), distribution)
    reached = kernel.distribution("CC")
    assert reached.keys() == {"C", "CC", "CCC", "CCc1ccccc1"}
    assert math.fsum(reached.values()) == pytest.approx(1, abs=1e-15)
    for state in ("CF", "C1CC1", "CCCl"):
        with pytest.raises(ValueError, match="support"):
            kernel.propose(np.random.default_rng(0), state)


def test_a_kernel_is_a_function_of_its_stream_and_state_alone():
    distribution = MoleculeDistribution((0.0,) * 40)
    fresh, used = (FragmentMoves(default_vocabulary(), distribution) for _ in range(2))
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
        FragmentMoves(Vocabulary([("*C", 1.0)]), MoleculeDistribution((0.0, 0.0)), add)


def elements(molecule):
    return Counter(atom.GetAtomicNum() for atom in molecule.GetAtoms())


def log_q(vocabulary, low, high):
    """Return log q of the addition and of the deletion between two molecules, less that of adding and of deleting, by
    trying every fragment of the right elements at every atom, and every directed cut; products are compared as SMILES.
    """
    small, large = read_molecule(low), read_molecule(high)
    added = elements(large.molecule) - elements(small.molecule)
    fragments = [
        (read_fragment(fragment.smiles), fragment.smiles)
        for fragment in vocabulary
        if elements(fragment.molecule) == added
    ]
    made = [(attach(small, atom, fragment), smiles) for fragment, smiles in fragments for atom in small.rooms]
    add = math.fsum(vocabulary.weights[fragment] for product, fragment in made if product and product.smiles == high)
    pieces = [large.pieces(cut) for cut in large.cuts]
    delete = sum(each.kept == low and each.fragment in vocabulary for each in pieces)
    return math.log(add / len(small.rooms)), math.log(delete / len(pieces))


def test_random_moves_stay_molecules_and_can_be_undone():
    vocabulary, distribution = default_vocabulary(), MoleculeDistribution(default_size_log_weights())
    kernel = FragmentMoves(vocabulary, distribution)
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
        assert (
            heavy_atoms(proposal.state) == Chem.MolFromSmiles(proposal.state).GetNumHeavyAtoms() <= distribution.largest
        )
        back = kernel.log_r0(proposal.state, state)
        assert back == pytest.approx(-proposal.log_r0, abs=1e-9)
        if moved % 25 == 0:
            low, high = sorted((state, proposal.state), key=heavy_atoms)
            added, deleted = log_q(vocabulary, low, high)
            gain = (
                distribution.size_log_weights[heavy_atoms(high) - 1]
                - distribution.size_log_weights[heavy_atoms(low) - 1]
            )
            ratio = gain + deleted - added
            assert proposal.log_r0 == pytest.approx(ratio if high == proposal.state else -ratio, abs=1e-9)
        if rng.random() < math.exp(min(0.0, proposal.log_r0)):
            state = proposal.state
    assert moved > FUZZ_MOVES / 10


# Fragments that RDKit's clean-up rewrites once they have grown: a move that cannot be undone is no move.


# Of these, clean-up rewrites phosphorus(V) beside a double bond and iodine(V); the others are odd in other ways.
ODD_SPACES = {
    "phosphorus(V)": SmallSpace("CN", plain("*P(=C)=O", "*C"), 6),
    "phosphorus(V) with one hydrogen": SmallSpace("C=P", plain("*P(=C)=O", "*O", "*C=[PH3]"), 6),
    "phosphine oxides": SmallSpace("CO", plain("*[PH2]=O", "*P(C)(C)=O", "*C=O"), 7),
    "phosphoranes": SmallSpace("P", plain("*P(F)(F)(F)F", "*C(C)=P(C)C", "*[P+](C)(C)C"), 7),
    "iodine(V)": SmallSpace("O", plain("*I(=O)=O", "*[NH2+][O-]", "*C"), 6),
    "iodine(III) and bromine(V)": SmallSpace("CI", plain("*I(C)C", "*Br", "*[Br+2]([O-])[O-]"), 6),
    "a charge on each side": SmallSpace("C=[SH2]", plain("*I(=O)=O", "*[OH+]C", "*P(=O)(O)O"), 7),
    "sulphur(VI)": SmallSpace("CS", plain("*S(C)(=O)=O", "*S(F)(F)(F)(F)F", "*[SH2]C"), 8),
    "nitrogen oxides": SmallSpace("CN", plain("*N(=O)=O", "*[N+](C)(C)[O-]", "*c1cccc[n+]1[O-]"), 9),
    "azides and ylides": SmallSpace("CC", plain("*N=[N+]=[N-]", "*C=[N+]=[N-]", "*C#[N+][O-]"), 6),
    "isotopes": SmallSpace("[13CH4]", plain("*[13CH3]", "*C", "*[15NH2]"), 4),
    "dative bonds": SmallSpace("CN", plain("*N->B", "*C", "*[NH2]->[Fe]"), 5),
    "metals": SmallSpace("O", plain("*[Mg]C", "*[Pt]Cl", "*P(=C)=O"), 6),
    "charged rings": SmallSpace("c1cc[nH]c1", plain("*[n+]1ccccc1", "*[nH+]1cccc1"), 12),
    "aromatic phosphorus": SmallSpace("c1cc[pH]c1", plain("*p1cccc1", "*C"), 7),
}
ODD_FRAGMENTS = (
    *("*P(=C)=O", "*P(=O)(O)O", "*[PH4]", "*[PH2]=C", "*P=O", "*C=[PH3]", "*C(C)=P(C)C", "*N=P(C)C", "*[P+](C)(C)[O-]"),
    *("*S(=O)(=O)O", "*[SH](=O)=O", "*[S+]([O-])C", "*I(=O)=O", "*I(C)C", "*[Cl+3]([O-])([O-])[O-]", "*[NH+]([O-])C"),
    *("*[O-]", "*[OH+]C", "*[N-]C", "*[N+]#N", "*[n+]1ccccc1", "*c1ccp[nH]1", "*[As](C)C", "*[AsH](=O)C", "*O[Na]"),
    *("*[Li]", "*[Fe]", "*N->B", "*[13CH3]", "*[BH3-]", "*[SeH]", "*C", "*C=O", "*N", "*C=C", "*[Al]C", "*[NH2]=O"),
)
ODD_STARTS = [
    "CC", "CO", "CN", "P", "C=P", "O=[PH3]", "C=[SH2]", "I", "N=P", "c1cc[nH]c1", "O=[SH2]", "[SH6]", "[BH4-]",
]  # fmt: skip


def check_space(space: SmallSpace) -> list[str]:
    """Check q, the claims of every action and their way back, and that the chain they make leaves p0 as it is.

    Returns:
        The states.
    """
    kernel, states = space.kernel(), space.reachable()
    log_p0, q = sampling.size_log_p0(space.distribution(), states), sampling.q_matrix(kernel, states)
    assert [canonical_state(state) for state in states] == states
    sampling.check_rows(q)
    drawn, ratios = drawn_by(kernel, states)
    np.testing.assert_allclose(drawn, q, rtol=0, atol=1e-12)
    sampling.check_balance(log_p0, q, ratios)
    for i, j in np.argwhere(q):
        assert i == j or kernel.log_r0(states[j], states[i]) == pytest.approx(-ratios[i, j], abs=1e-9)
    assert unbalanced(log_p0, q, ratios) < 1e-14
    return states


def unbalanced(log_p0: np.ndarray, q: np.ndarray, ratios: np.ndarray) -> float:
    """Return how far the chain without judges is from detailed balance with p0."""
    distribution = target(log_p0, np.zeros((1, len(log_p0))))
    return imbalance(distribution, transitions_of(q, np.exp(np.minimum(0.0, ratios))))


@pytest.mark.parametrize("space", (SMALL_SPACES | ODD_SPACES).values(), ids=SMALL_SPACES | ODD_SPACES)
def test_every_move_has_its_chance_its_way_back_and_its_ratio(space):
    check_space(space)


@pytest.mark.parametrize("seed", range(16))
def test_vocabularies_of_odd_fragments_drawn_at_random_move_both_ways_or_not_at_all(seed):
    rng = np.random.default_rng([11, seed])
    start = canonical_state(str(rng.choice(ODD_STARTS)))
    fragments = [str(fragment) for fragment in rng.choice(ODD_FRAGMENTS, size=3, replace=False)]
    check_space(SmallSpace(start, plain(*fragments), max(read_molecule(start).size, 5)))


# A core that stays: p0 is 0 without it, the moves do not change, and what they reach hangs together.


FRAGMENTS, LARGEST = plain("*C", "*O", "*N"), 5
CORES = ("C", "CC", "CO", "CN", "CCO", "NCO", "C(C)C", "[#6]~[#8]")


WITHOUT = SmallSpace("CC", FRAGMENTS, LARGEST)
EVERYTHING = WITHOUT.reachable()
Q_OF_EVERYTHING = {state: WITHOUT.kernel().distribution(state) for state in EVERYTHING}


def inside(core: str) -> list[str]:
    pattern = Chem.MolFromSmarts(core)
    return [state for state in EVERYTHING if Chem.MolFromSmiles(state).HasSubstructMatch(pattern)]


def classes(core: str) -> int:
    """Return into how many sets, between which no move goes, the molecules with a core fall."""
    states = inside(core)
    q = np.array([[Q_OF_EVERYTHING[state].get(other, 0.0) for other in states] for state in states])
    return int(connected_components(q > 0, directed=True, connection="strong")[0])


@pytest.mark.parametrize("core", CORES)
def test_what_an_allowed_core_leaves_is_one_class(core):
    assert core_problem(core) == ""
    assert len(inside(core)) < len(EVERYTHING) or core == "C"
    assert classes(core) == 1


@pytest.mark.parametrize(
    "core", ["[D3]", "N.O", "[CH3]", "[R]", "[!C]", "[C,N]", "[$(CO)]", "[N+]", "*C", "C" * 31, "C("]
)
def test_a_pattern_that_may_not_be_a_core_is_refused_with_its_field(core):
    with pytest.raises(ConfigError, match=r"^space\.core: "):
        sampler.parse_config(config_with(core=core))


def test_patterns_that_are_refused_would_leave_several_classes():
    assert (classes("[D3]"), classes("N.O")) == (20, 2)


def test_the_start_must_have_the_core():
    with pytest.raises(ConfigError, match="core"):
        sampler.parse_config(config_with(core="c1ccccc1", start="CCO"))
    assert sampler.parse_config(config_with(core="CO", start="CCO")).space.core == "CO"


def space_with(core: str) -> SmallSpace:
    return SmallSpace(inside(core)[0], FRAGMENTS, LARGEST, core=core)


@pytest.mark.parametrize("core", CORES)
def test_moves_with_a_core_are_in_detailed_balance_with_its_p0(core):
    assert check_space(space_with(core)) == inside(core)


@pytest.mark.parametrize("core", ["CO", "CCO"])
def test_a_kernel_that_draws_again_what_lies_outside_is_not(core):
    """The control: q renormalised over the molecules with the core, and the same ratios."""
    space, states = space_with(core), inside(core)
    q, ratios = drawn_by(space.kernel(), states)
    moves = q - np.diag(np.diag(q))
    again = moves / moves.sum(axis=1, keepdims=True)
    assert unbalanced(sampling.size_log_p0(space.distribution(), states), again, ratios) > 1e-3


def config_with(**space: object) -> dict[str, object]:
    return make_config(space={"kind": "molecules", **space}, kernel={"kind": "fragments"})
