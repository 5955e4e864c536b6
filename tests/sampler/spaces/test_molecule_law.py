"""p0 on molecules: sizes, filters, the frozen weights, the pilot that finds such; and what a chemist reads off."""

import itertools
import math

import numpy as np
import pytest
from rdkit import Chem

from sampler import Purpose, stream
from sampler.kernels.fragments import FragmentMoves
from sampler.kernels.size_pilot import drug_like_sizes, pilot
from sampler.objects.molecules import describe_molecule
from sampler.spaces.molecules.graph import canonical_state, heavy_atoms
from sampler.spaces.molecules.space import MoleculeLaw, default_size_log_weights
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary

THREE = (0.0, -1.0, -3.0)


def log_p0(law, smiles):
    return law.log_p0(Chem.MolFromSmiles(smiles))


def sizes_visited(kernel, rng, steps, start):
    """Yield the number of heavy atoms after each step of a chain without judges, which accepts with min(1, r0)."""
    state, size = start, heavy_atoms(start)
    for _ in range(steps):
        proposal = kernel.propose(rng, state)
        if proposal.state != state and rng.random() < math.exp(min(0.0, proposal.log_r0)):
            state, size = proposal.state, heavy_atoms(proposal.state)
        yield size


def test_sizes_have_their_weight_and_no_other_does():
    law = MoleculeLaw(THREE)
    assert [log_p0(law, smiles) for smiles in ("C", "CO", "CCO", "CCCO")] == [0.0, -1.0, -3.0, -math.inf]
    assert law.largest == 3
    assert log_p0(MoleculeLaw((-math.inf, 0.0)), "C") == -math.inf


@pytest.mark.parametrize(
    ("filters", "inside", "outside"),
    [
        ({"elements": frozenset({"C", "O"})}, "CCO", "CCN"), ({"ring_sizes": frozenset({5, 6})}, "C1CCCC1", "C1CC1"),
        ({"ring_sizes": frozenset()}, "CC", "C1CCCC1"), ({"alerts": ("BRENK",)}, "CCO", "CCCCl"),
        ({"alerts": ("PAINS",)}, "c1ccccc1", "O=C1NC(=S)SC1=Cc1ccccc1"),
    ],
)  # fmt: skip
def test_a_filter_takes_molecules_out_of_the_target(filters, inside, outside):
    law = MoleculeLaw((0.0,) * 20, **filters)
    assert log_p0(law, inside) == 0.0
    assert log_p0(law, outside) == -math.inf


def test_the_frozen_weights_keep_a_chain_without_judges_at_drug_like_sizes():
    # A chain forgets its size within thousands of steps, so the chains start at drugs; without weights they leave.
    weights = default_size_log_weights()
    assert len(weights) == 40
    assert 15 < mean_size(weights) < 32
    assert mean_size((0.0,) * 40) > 35


def mean_size(weights):
    """Return the mean size along chains that start at diazepam, sildenafil and atenolol (20, 33, 19 heavy atoms)."""
    kernel = FragmentMoves(default_vocabulary(), MoleculeLaw(weights))
    drugs = (
        "CN1C(=O)CN=C(c2ccccc2)c2cc(Cl)ccc21",
        "CCCc1nn(C)c2c(=O)nc(-c3cc(S(=O)(=O)N4CCN(C)CC4)ccc3OCC)[nH]c12",
        "CC(C)NCC(O)COc1ccc(CC(N)=O)cc1",
    )
    chains = [
        sizes_visited(kernel, stream(seed, 0, 0, Purpose.PROPOSAL), 1_500, canonical_state(drug))
        for seed, drug in enumerate(drugs)
    ]
    return np.mean([list(itertools.islice(chain, 500, None)) for chain in chains])


def test_the_pilot_counts_molecules():
    # Alkanes of 1 to 6 carbons: 1, 1, 1, 2, 3, 5 molecules.
    law = MoleculeLaw((0.0,) * 6)
    found = pilot(Vocabulary([("*C", 1.0)]), law, stream(2, 0, 0, Purpose.PROPOSAL), 12_000)
    expected = drug_like_sizes(6) - np.log([1, 1, 1, 2, 3, 5])
    assert found - found.mean() == pytest.approx(expected - expected.mean(), abs=0.3)


def test_aspirin_is_described_as_it_is_known():
    aspirin = describe_molecule("CC(=O)Oc1ccccc1C(=O)O")
    assert aspirin.qed == pytest.approx(0.550, abs=0.002)
    assert aspirin.synthetic_accessibility == pytest.approx(1.58, abs=0.02)
    assert aspirin.weight == pytest.approx(180.16, abs=0.01)
    assert aspirin.log_p == pytest.approx(1.31, abs=0.01)
    assert aspirin.tpsa == pytest.approx(63.6, abs=0.1)
    assert (aspirin.donors, aspirin.acceptors, aspirin.rotatable_bonds, aspirin.rings) == (1, 3, 2, 1)
    assert aspirin.heavy_atoms == 13
    assert aspirin.alerts == ("phenol_ester",)
