"""Sets of molecules: how varied."""

import itertools

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

from sampler.objects.molecules import diversity

SMILES = ["CC", "CCO", "c1ccccc1", "CC(=O)Nc1ccc(O)cc1", "CCO", "CC(=O)Oc1ccccc1C(=O)O"]


def test_diversity_is_that_of_mars_one_minus_the_mean_similarity_of_all_pairs():
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=3, fpSize=2048)
    prints = [morgan.GetFingerprint(Chem.MolFromSmiles(each)) for each in SMILES]
    pairs = [DataStructs.TanimotoSimilarity(*pair) for pair in itertools.combinations(prints, 2)]
    assert diversity(SMILES) == pytest.approx(1 - np.mean(pairs), abs=1e-12)


def test_a_molecule_again_and_again_has_no_diversity():
    assert diversity(["CCO"] * 5) == 0


def test_too_few_molecules_are_refused():
    with pytest.raises(ValueError, match="needs at least"):
        diversity(["CC"])


def test_what_is_no_molecule_has_no_fingerprint():
    with pytest.raises(ValueError, match="“C1CC” is not a molecule"):
        diversity(["CC", "C1CC"])
