"""A core that stays: p0 is 0 without it, the moves do not change, and what they reach hangs together."""

import numpy as np
import pytest
from rdkit import Chem
from scipy.sparse.csgraph import connected_components

import sampler
from sampler.config import ConfigError
from sampler.kernels.fragments import FragmentMoves
from sampler.spaces.molecules.space import MoleculeLaw, core_problem
from sampler.spaces.molecules.vocabulary import Vocabulary
from tests.support.sampling import FLAT, check_balance, imbalance, plain, q_matrix, reachable, size_log_p0, target
from tests.support.sampling import transitions_of as transitions

ARMS, LARGEST = plain("*C", "*O", "*N"), 5
CORES = ("C", "CC", "CO", "CN", "CCO", "NCO", "C(C)C", "[#6]~[#8]")


def law(core: str) -> MoleculeLaw:
    return MoleculeLaw(tuple(0.7 * FLAT[n % len(FLAT)] for n in range(LARGEST)), core=core)


def kernel(core: str) -> FragmentMoves:
    return FragmentMoves(Vocabulary(ARMS), law(core))


EVERYTHING = reachable(kernel(""), "CC")


Q_OF_EVERYTHING = {state: kernel("").law(state) for state in EVERYTHING}


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
        sampler.parse_config(config(core=core))


def test_patterns_that_are_refused_would_leave_several_classes():
    assert (classes("[D3]"), classes("N.O")) == (20, 2)


def test_the_start_must_have_the_core():
    with pytest.raises(ConfigError, match="core"):
        sampler.parse_config(config(core="c1ccccc1", start="CCO"))
    assert sampler.parse_config(config(core="CO", start="CCO")).space.core == "CO"


@pytest.mark.parametrize("core", CORES)
def test_moves_with_a_core_are_in_detailed_balance_with_its_p0(core):
    states, q, ratios = solved(core)
    log_p0 = size_log_p0(law(core), states)
    check_balance(log_p0, q, ratios)
    assert imbalance(p0(core), transitions(q, np.exp(np.minimum(0.0, ratios)))) < 1e-14


@pytest.mark.parametrize("core", ["CO", "CCO"])
def test_a_kernel_that_draws_again_what_lies_outside_is_not(core):
    """The control: q renormalised over the molecules with the core, and the same ratios."""
    _, q, ratios = solved(core)
    moves = q - np.diag(np.diag(q))
    again = moves / moves.sum(axis=1, keepdims=True)
    assert imbalance(p0(core), transitions(again, np.exp(np.minimum(0.0, ratios)))) > 1e-3


def p0(core: str) -> np.ndarray:
    states = inside(core)
    return target(size_log_p0(law(core), states), np.zeros((1, len(states))))


def solved(core: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Return the molecules with a core, q between them, and the kernel's log base ratios."""
    states, moves = inside(core), kernel(core)
    q = q_matrix(moves, states)
    ratios = np.array(
        [
            [moves.log_r0(state, other) if q[i, j] else -np.inf for j, other in enumerate(states)]
            for i, state in enumerate(states)
        ]
    )
    return states, q, ratios


def config(**space: object) -> dict[str, object]:
    return {
        "version": 1,
        "space": {"kind": "molecules", **space},
        "kernel": {"kind": "fragments"},
        "judges": [{"question": "Which is better?", "votes": 1}],
        "chains": 1,
        "steps": 2,
        "seed": 1,
    }
