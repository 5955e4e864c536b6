"""Reading molecules, comparing and drawing them."""

import itertools

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator

from sampler import OBJECT_KINDS, Item
from sampler.objects.molecules import diversity
from tests.support.uploads import read
from tests.support.uploads import spreadsheet as table


def column(*smiles):
    return table([["smiles"], ["C"], ["N"], *([each] for each in smiles)])


def refusals(data):
    return {refusal.source: refusal.reason for refusal in read("molecules", data).refusals}


def test_ways_to_write_one_molecule_become_one_item():
    data = table([["smiles", "weight"], ["OCC", 1], ["CCO", 2], ["C(O)C", 4], ["c1ccccc1", 1], ["C1=CC=CC=C1", 1]])
    reading = read("molecules", data)
    assert [(item.source, item.content, item.weight) for item in reading.items] == [
        ("row 2", "CCO", 7.0),
        ("row 5", "c1ccccc1", 2.0),
    ]
    assert [refusal.source for refusal in reading.refusals] == ["row 3", "row 4", "row 6"]


def test_mirror_images_stay_two_molecules_and_false_stereo_marks_vanish():
    contents = [item.content for item in read("molecules", column("C[C@H](F)Cl", "C[C@@H](F)Cl", "C[C@H](C)O")).items]
    assert len(contents) == 5
    assert contents[-1] == "CC(C)O"
    assert read("molecules", column("CCO ethanol")).items[-1].content == "CCO"


@pytest.mark.parametrize(
    ("smiles", "reason"),
    [
        ("CN(C)(C)(C)C", "valence"), ("C1CC", "is not a SMILES"), ("hello", "is not a SMILES"),
        ("[Xx]", "is not a SMILES"), ("c1cccc1", "kekulize"), ("[H][H]", "0 heavy atoms"),
        ("C" * 151, "151 atoms to draw"), ("C" + "*" * 150, "151 atoms to draw"),
        ("C1=[Al]C(=NC2=C1NC=N2)C=O", "RDKit writes the molecule as “O=C[c]1nc2nc[nH]c2[cH][Al]1” and cannot read"),
        ("C[C@H](F)Cl |&1:1|", "CXSMILES"), ("CC(F)Cl |wU:1.0|", "CXSMILES"),
        ("C[Pt@SP1](F)(Cl)Br", "stereochemistry that no drawing shows"), ("C" * 1_001, "1,001 characters"),
        (" ", "empty"),
    ],
)  # fmt: skip
def test_what_is_no_molecule_is_refused_with_its_row_in_silence(smiles, reason, capfd):
    found = refusals(table([["smiles", "weight"], ["C", 1], ["N", 1], [smiles, 1]]))
    assert set(found) == {"row 4"}
    assert reason in found["row 4"]
    assert capfd.readouterr() == ("", "")


def test_similar_molecules_are_neighbours():
    alcohols, rings = ["CCCO", "CCCCO", "CCCCCO"], ["c1ccccc1C", "c1ccccc1CC", "c1ccccc1CCC"]
    graph = OBJECT_KINDS["molecules"].neighbours([Item("", smiles) for smiles in alcohols + rings], 1)
    for item, row in enumerate(graph):
        assert row
        assert all((other < 3) == (item < 3) for other in row)


# Sets of molecules: how varied.


SMILES = ["CC", "CCO", "c1ccccc1", "CC(=O)Nc1ccc(O)cc1", "CCO", "CC(=O)Oc1ccccc1C(=O)O"]


def test_diversity_is_that_of_mars_one_minus_the_mean_similarity_of_all_pairs():
    morgan = rdFingerprintGenerator.GetMorganGenerator(radius=3, fpSize=2048)
    prints = [morgan.GetFingerprint(Chem.MolFromSmiles(each)) for each in SMILES]
    pairs = [DataStructs.TanimotoSimilarity(*pair) for pair in itertools.combinations(prints, 2)]
    assert diversity(SMILES) == pytest.approx(1 - np.mean(pairs), abs=1e-12)


def test_too_few_molecules_are_refused():
    with pytest.raises(ValueError, match="needs at least"):
        diversity(["CC"])
