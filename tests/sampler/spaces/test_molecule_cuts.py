"""What the cuts of a molecule are found by: what hangs from an atom, walks, and the SMILES as text."""

from __future__ import annotations

from itertools import islice

from rdkit import Chem

from sampler.spaces.molecules.graph import attach, read_arm, read_molecule, read_state
from sampler.spaces.molecules.plain import settle
from sampler.spaces.molecules.tree import Tree
from sampler.spaces.molecules.vocabulary import parents
from sampler.spaces.molecules.written import elements

# Some of the molecules that the vocabulary was cut from.
STATES = list(islice(parents(), 0, 1500, 25))
ARM = read_arm("*C(=O)Nc1ccc(F)cc1")


def walked(molecule: Chem.Mol, keep: int, drop: int) -> list[int]:
    """Return the atoms beyond a bond, found by going from neighbour to neighbour."""
    seen, frontier = {keep, drop}, [drop]
    while frontier:
        near = [atom.GetIdx() for atom in molecule.GetAtomWithIdx(frontier.pop()).GetNeighbors()]
        frontier.extend(atom for atom in near if atom not in seen)
        seen.update(near)
    return sorted(seen - {keep})


def grown(state: str):
    """Return a molecule numbered as no SMILES names it: an arm of several atoms at one in the middle."""
    graph = read_state(state)
    product = attach(graph, graph.rooms[len(graph.rooms) // 2], ARM) if graph.rooms else None
    return product or graph


def test_the_sides_of_a_cut_are_what_a_walk_finds():
    for state in STATES:
        for graph in (read_state(state), grown(state)):
            tree = Tree(graph.molecule)
            for cut in graph.cuts:
                assert tree.side(cut.keep, cut.drop) == walked(graph.molecule, cut.keep, cut.drop)
                assert cut.size == len(tree.side(cut.keep, cut.drop))


def test_cuts_that_keep_the_same_molecule_are_never_told_apart():
    for state in STATES:
        graph = read_state(state)
        for cut in graph.cuts:
            near = {one for same in graph.alike(cut) for one in same}
            same = {one for one in graph.cuts if graph.pieces(one).kept == graph.pieces(cut).kept}
            assert cut in near
            assert same <= near


def test_the_arm_read_off_a_smiles_and_what_is_left_are_the_pieces_of_the_cut():
    for state in STATES:
        graph = read_state(state)
        if not graph.is_plain:
            continue
        for cut in graph.cuts:
            kept, atom = graph.kept(cut)
            pieces = graph.pieces(cut)
            assert (kept.smiles, graph.arm(cut)) == (pieces.kept, pieces.arm)
            assert len(kept.rooms) == len(read_molecule(pieces.kept).rooms)
            ranks, written = kept.ranks, read_molecule(pieces.kept).ranks
            assert ranks.count(ranks[atom]) == written.count(written[pieces.atom])


def test_what_has_grown_names_its_arms_and_its_elements_too():
    for state in STATES:
        graph = grown(state)
        assert all(graph.arm(cut) == graph.pieces(cut).arm for cut in graph.cuts)
        numbers = [atom.GetAtomicNum() for atom in graph.molecule.GetAtoms()]
        assert [element for text in graph.written for element in elements(text)] == numbers


def test_what_is_plain_needs_no_sanitising():
    for state in STATES:
        for graph in (read_state(state), grown(state)):
            before = (graph.smiles, graph.ranks, graph.rooms, graph.cuts)
            assert Chem.SanitizeMol(graph.molecule, catchErrors=True) == Chem.SanitizeFlags.SANITIZE_NONE
            after = type(graph)(graph.molecule, graph.written)
            assert (after.smiles, after.ranks, after.rooms, after.cuts) == before


def test_what_is_not_plain_is_sanitised():
    molecule = Chem.MolFromSmiles("CP(=O)(C)C", sanitize=False)
    assert settle(molecule) is False
    assert settle(Chem.MolFromSmiles("C=P(=O)C", sanitize=False)) is False
    assert settle(Chem.MolFromSmiles("CN(C)(C)(C)C", sanitize=False)) is None
