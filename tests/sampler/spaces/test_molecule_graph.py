"""Attaching and cutting: each undoes the other, also where RDKit's own count of hydrogens would not."""

import pytest

from sampler.spaces.molecules.graph import Cut, attach, canonical_state, heavy_atoms, read_arm, read_molecule

# State, arm, and the products of attaching it at every atom that has room.
GROWN = [
    ("c1cc[nH]c1", "*C", {"Cn1cccc1", "Cc1ccc[nH]1", "Cc1cc[nH]c1"}),
    ("C[NH3+]", "*C", {"CC[NH3+]", "C[NH2+]C"}),
    ("C[SH+]C", "*C", {"C[S+](C)C", "CC[SH+]C"}),
    ("c1ccccc1", "*[N+](=O)[O-]", {"O=[N+]([O-])c1ccccc1"}),
    ("CO", "*S(C)(=O)=O", {"COS(C)(=O)=O", "CS(=O)(=O)CO"}),
    ("C1CC1", "*n1cccn1", {"c1cnn(C2CC2)c1"}),
    (
        "O=c1cccc[nH]1",
        "*C",
        {"Cn1ccccc1=O", "Cc1ccc[nH]c1=O", "Cc1cc[nH]c(=O)c1", "Cc1ccc(=O)[nH]c1", "Cc1cccc(=O)[nH]1"},
    ),
    ("O", "*C", {"CO"}),
    ("C[N+](=O)[O-]", "*O", {"O=[N+]([O-])CO"}),
    ("CO", "*[N+](C)(C)C", {"CO[N+](C)(C)C", "C[N+](C)(C)CO"}),
]


def products(state, arm):
    graph = read_molecule(state)
    grown = [attach(graph, atom, read_arm(arm)) for atom in graph.rooms]
    return {product.smiles for product in grown if product is not None}


def cuts(state):
    graph = read_molecule(state)
    return {(graph.pieces(cut).kept, graph.pieces(cut).arm) for cut in graph.cuts}


@pytest.mark.parametrize(("state", "arm", "expected"), GROWN)
def test_an_arm_takes_the_place_of_a_hydrogen_and_a_cut_gives_it_back(state, arm, expected):
    assert products(state, arm) == {canonical_state(smiles) for smiles in expected}
    for product in products(state, arm):
        assert (state, read_arm(arm).smiles) in cuts(product)


def test_a_cut_at_a_charge_leaves_no_radical():
    assert cuts("C[S+](C)C") == {("C[SH+]C", "*C"), ("C", "*[S+](C)C")}
    assert cuts("CC[NH3+]") == {("C", "*C[NH3+]"), ("C[NH3+]", "*C"), ("CC", "*[NH3+]"), ("[NH4+]", "*CC")}


def test_a_bond_between_charges_is_neither_cut_nor_made():
    assert cuts("C[N+](=O)[O-]") == {("C", "*[N+](=O)[O-]"), ("O=[NH+][O-]", "*C")}
    assert products("[OH-]", "*[N+](C)(C)C") == set()


def test_rings_and_double_bonds_are_not_cut():
    assert cuts("C1CC1") == cuts("C=C") == cuts("C") == set()
    assert cuts("C=CC#N") == {("C=C", "*C#N"), ("C#N", "*C=C")}


def test_the_atom_that_lost_an_arm_is_named_as_the_kept_side_is_written():
    graph = read_molecule("OCc1ccc(N)cc1C(F)F")
    for cut in graph.cuts:
        pieces = graph.pieces(cut)
        kept, arm = read_molecule(pieces.kept), read_arm(pieces.arm)
        assert arm.size == cut.size
        assert attach(kept, pieces.atom, arm).smiles == graph.smiles


@pytest.mark.parametrize(
    ("smiles", "state"),
    [
        ("OCC", "CCO"), ("C[C@H](F)Cl", "CC(F)Cl"), ("C/C=C/C", "CC=CC"), ("C1=CC=CC=C1", "c1ccccc1"),
        ("[CH3][H]", "C"), ("CN(=O)=O", "C[N+](=O)[O-]"),
    ],
)  # fmt: skip
def test_ways_to_write_one_molecule_are_one_state(smiles, state):
    assert canonical_state(smiles) == state


@pytest.mark.parametrize("smiles", ["", "C.C", "C[CH2]", "*C", "[CH3:1]C", "[H][H]", "hello", "C1CC", "CN(C)(C)(C)C"])
def test_what_no_state_can_be_is_refused_in_silence(smiles, capfd):
    with pytest.raises(ValueError, match="“"):
        canonical_state(smiles)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "smiles", ["C", "*", "**", "*C*", "*=C", "C*C", "[*:1]C", "[1*]C", "*[CH2]", "*C.C", "nonsense", "*[H]"]
)
def test_what_is_no_arm_is_refused(smiles):
    with pytest.raises(ValueError, match="“"):
        read_arm(smiles)


@pytest.mark.parametrize(
    "smiles", ["*S(C)(=O)=O", "*n1cccc1", "*[N+](=O)[O-]", "*c1ccc(Cl)c(Br)c1", "*[SiH3]", "*B(O)O"]
)
def test_arms_keep_their_atoms(smiles):
    arm = read_arm(smiles)
    assert arm.size == heavy_atoms(smiles.replace("*", ""))
    assert attach(read_molecule("C"), 0, arm).smiles == canonical_state(smiles.replace("*", "C", 1))


@pytest.mark.parametrize(
    ("smiles", "atoms"),
    [("C", 1), ("BrCCl", 3), ("c1cc[nH]c1", 5), ("[13CH3][N+](C)(C)C", 5), ("FC(F)(F)c1nsc(I)o1", 10)],
)
def test_heavy_atoms_are_counted_in_the_text(smiles, atoms):
    assert heavy_atoms(smiles) == atoms


def test_cuts_are_directed_and_know_their_size():
    assert read_molecule("CCO").cuts == (Cut(0, 1, 2), Cut(1, 0, 1), Cut(1, 2, 1), Cut(2, 1, 2))


def test_atoms_that_only_look_alike_are_told_apart():
    # Cuneane: every atom carries one hydrogen and three bonds, and yet there are three kinds of them.
    cuneane = read_molecule(canonical_state("C12C3C1C4C5C2C5C43"))
    methyl = read_arm("*C")
    products_of = {}
    for atom in cuneane.rooms:
        products_of.setdefault(attach(cuneane, atom, methyl).smiles, set()).add(cuneane.ranks[atom])
    assert len(products_of) == 3
    assert all(len(ranks) == 1 for ranks in products_of.values())
