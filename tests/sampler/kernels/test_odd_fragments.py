"""Fragments that RDKit's clean-up rewrites once they have grown: a move that cannot be undone is no move."""

import numpy as np
import pytest

from sampler.exact import imbalance, transitions_of
from sampler.kernels.fragments import FragmentMoves
from sampler.spaces.molecules.graph import canonical_state, read_molecule
from tests.sampler.kernels.test_fragments import every_action
from tests.support.sampling import SmallSpace, check_balance, check_rows, plain, q_matrix, size_log_p0, target

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
ODD_ARMS = (
    *("*P(=C)=O", "*P(=O)(O)O", "*[PH4]", "*[PH2]=C", "*P=O", "*C=[PH3]", "*C(C)=P(C)C", "*N=P(C)C", "*[P+](C)(C)[O-]"),
    *("*S(=O)(=O)O", "*[SH](=O)=O", "*[S+]([O-])C", "*I(=O)=O", "*I(C)C", "*[Cl+3]([O-])([O-])[O-]", "*[NH+]([O-])C"),
    *("*[O-]", "*[OH+]C", "*[N-]C", "*[N+]#N", "*[n+]1ccccc1", "*c1ccp[nH]1", "*[As](C)C", "*[AsH](=O)C", "*O[Na]"),
    *("*[Li]", "*[Fe]", "*N->B", "*[13CH3]", "*[BH3-]", "*[SeH]", "*C", "*C=O", "*N", "*C=C", "*[Al]C", "*[NH2]=O"),
)
ODD_STARTS = (
    "CC",
    "CO",
    "CN",
    "P",
    "C=P",
    "O=[PH3]",
    "C=[SH2]",
    "I",
    "N=P",
    "c1cc[nH]c1",
    "O=[SH2]",
    "[SH6]",
    "[BH4-]",
)
every_odd_space = pytest.mark.parametrize("name", ODD_SPACES)


def check_space(space: SmallSpace) -> None:
    """Check q, the claims of every action, and that the chain they make leaves p0 as it is."""
    kernel, states = space.kernel(), space.reachable()
    log_p0, q = size_log_p0(space.law(), states), q_matrix(kernel, states)
    assert [canonical_state(state) for state in states] == states
    check_rows(q)
    ratios, drawn = claims(space, kernel, states)
    np.testing.assert_allclose(drawn, q, rtol=0, atol=1e-12)
    check_balance(log_p0, q, ratios)
    law = target(log_p0, np.zeros((1, len(states))))
    chain = transitions_of(q, np.exp(np.minimum(0.0, ratios)))
    assert imbalance(law, chain) < 1e-14


def claims(space: SmallSpace, kernel: FragmentMoves, states: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return log r0 and the chance of each move, as the kernel's own actions give them, both of shape (n, n)."""
    place = {state: i for i, state in enumerate(states)}
    ratios, drawn = (np.full((len(states), len(states)), empty) for empty in (-np.inf, 0.0))
    for state in states:
        try:
            actions = list(every_action(space, kernel, state))
        except (StopIteration, RuntimeError) as error:
            pytest.fail(f"a step at {state} ended in {error!r}")
        for chance, proposal in actions:
            ratios[place[state], place[proposal.state]] = proposal.log_r0
            drawn[place[state], place[proposal.state]] += chance
            if proposal.state != state:
                assert kernel.log_r0(proposal.state, state) == pytest.approx(-proposal.log_r0, abs=1e-9)
    return ratios, drawn


@every_odd_space
def test_odd_fragments_move_both_ways_or_not_at_all(name):
    check_space(ODD_SPACES[name])


@pytest.mark.parametrize("seed", range(16))
def test_vocabularies_of_odd_arms_drawn_at_random_move_both_ways_or_not_at_all(seed):
    rng = np.random.default_rng([11, seed])
    start = canonical_state(str(rng.choice(ODD_STARTS)))
    arms = [str(arm) for arm in rng.choice(ODD_ARMS, size=3, replace=False)]
    check_space(SmallSpace(start, plain(*arms), max(read_molecule(start).size, 5)))
