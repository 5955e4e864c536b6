"""Vocabularies: cutting, counting and ranking arms, their files, and the package's own list."""

import numpy as np
import pytest

from sampler import Purpose, stream
from sampler.spaces.molecules.graph import read_arm
from sampler.spaces.molecules.vocabulary import (
    ARM_ELEMENTS,
    MAX_ARM_ATOMS,
    Vocabulary,
    default_vocabulary,
    derive_vocabulary,
    format_arms,
    load_vocabulary,
    parse_arms,
)


def test_arms_are_cut_at_rings_and_functional_atoms_counted_and_ranked():
    # Toluene gives both its halves; in butanone only the bonds at the carbonyl are cut.
    assert derive_vocabulary(["Cc1ccccc1"]) == [("*C", 1), ("*c1ccccc1", 1)]
    assert derive_vocabulary(["CCCC", "CCC(C)=O"]) == [("*C", 1), ("*C(=O)CC", 1), ("*C(C)=O", 1), ("*CC", 1)]
    assert derive_vocabulary(["CC(C)=O"]) == [("*C", 2), ("*C(C)=O", 2)]


def test_a_molecule_counts_once_by_its_largest_part_and_whatever_its_stereochemistry():
    same = ["C[C@H](O)c1ccccc1", "C[C@@H](O)c1ccccc1", "OC(C)c1ccccc1.Cl"]
    assert derive_vocabulary(same) == derive_vocabulary(same[:1])


def test_arms_that_are_charged_too_large_or_of_rare_elements_are_left_out():
    arms = dict(derive_vocabulary(["c1ccccc1[N+](=O)[O-]", "c1ccccc1[O-]", "c1ccccc1[SeH]", "Oc1ccc2cc3ccccc3cc2c1"]))
    assert set(arms) == {"*[N+](=O)[O-]", "*c1ccccc1", "*O"}


def test_entries_that_are_one_arm_add_their_weights():
    vocabulary = Vocabulary([("*CO", 1), ("OC*", 2), ("*C", 1), ("C[*]", 4)])
    assert vocabulary.weights == {"*CO": 3 / 8, "*C": 5 / 8}
    assert len(vocabulary) == 2
    assert vocabulary.largest == 2
    assert "*CO" in vocabulary
    assert "OC*" not in vocabulary


def test_arms_are_drawn_by_weight():
    vocabulary = Vocabulary([("*C", 1), ("*O", 3)])
    rng = stream(1, 0, 0, Purpose.PROPOSAL)
    drawn = [vocabulary.draw(rng).smiles for _ in range(4_000)]
    assert np.mean([arm == "*O" for arm in drawn]) == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([], "at least one arm"), ([("*C", 0.0)], "positive"), ([("*C", float("nan"))], "positive"),
        ([("CC", 1.0)], "one dummy"), ([("*" + "C" * 11, 1.0)], "11 heavy atoms"),
    ],
)  # fmt: skip
def test_what_is_no_vocabulary_is_refused(arms, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary(arms)


def test_a_file_of_arms_can_be_written_and_read_back(tmp_path):
    arms, path = [("*C", 12), ("*O", 3), ("*C", 1)], tmp_path / "arms.tsv"
    path.write_text(format_arms(arms, "made here\nfor a test"), encoding="utf-8")
    assert path.read_text(encoding="utf-8").startswith("# made here\n# for a test\n*C\t12\n")
    assert parse_arms(path.read_text(encoding="utf-8")) == arms
    assert load_vocabulary(path).weights == pytest.approx({"*C": 2 / 3, "*O": 1 / 3})


def test_the_default_vocabulary_has_a_thousand_usable_arms():
    vocabulary = default_vocabulary()
    assert len(vocabulary) == 1_000
    assert set(vocabulary.weights.values()) == {1 / 1_000}
    for arm in vocabulary:
        assert 1 <= arm.size <= MAX_ARM_ATOMS
        assert all(atom.GetSymbol() in ARM_ELEMENTS for atom in arm.molecule.GetAtoms())
        assert read_arm(arm.smiles).smiles == arm.smiles
