"""Molecules as graphs that grow by an arm at an atom and shrink at an acyclic single bond.

A state is a canonical SMILES without stereochemistry: one component of heavy atoms, no radicals, no atom maps, no
dummies. An arm is a SMILES with one dummy `*` where it attaches, such as `*S(C)(=O)=O` or `*n1cccn1`.

Attaching replaces one hydrogen of an atom by the arm; cutting is its inverse: the kept side receives the hydrogen,
the dropped side a dummy. Hydrogens are counted explicitly on the atoms touched, which is what makes the two inverse
to one another where RDKit's own recount would not be: [nH] against n-R (which would no longer kekulise), [NH3+]
against [NH2+]-R, and bracket atoms such as [S+] or [N+] (which would become radicals that sanitise). A bond between
two charged atoms, as in [N+]-[O-], is part of its functional group and is never cut nor made. Stereochemistry is
left out because a cut at [C@] creates or destroys a centre, so that cutting and attaching would not be inverse.
Tautomers and protonation states are different states.

RDKit cleans up what it reads: it writes some groups in another way once they have grown, such as C=P(=O)C with
one more arm as [P+][O-]. What was cut from such a product would be another molecule than the one that grew. So a move
exists only if it can be undone: attaching must make what the cut has parted, and the cut must part what attaching has
joined (`MoleculeGraph.undoes`). Both are tried on every molecule that is not `is_plain`.

Atoms that RDKit ranks as equal count as equivalent. Its canonical SMILES rest on the same ranks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import rdqueries

_SINGLE = Chem.BondType.SINGLE
_WITH_HYDROGEN = Chem.MolFromSmarts("[!H0]")
# Acyclic single bonds of which at least one end is neutral.
_CUTTABLE = Chem.MolFromSmarts("[+0]-;!@[*]")
_NEVER_IN_A_STATE = rdqueries.AtomNumLessQueryAtom(2)
_NEVER_IN_A_STATE.ExpandQuery(rdqueries.NumRadicalElectronsGreaterQueryAtom(0), Chem.CompositeQueryType.COMPOSITE_OR)
_NEVER_IN_A_STATE.ExpandQuery(rdqueries.HasPropQueryAtom("molAtomMapNumber"), Chem.CompositeQueryType.COMPOSITE_OR)
# What RDKit may clean up, or read back in another way than it wrote it: atoms of other elements than these, halogens
# with several bonds, dative bonds, and all charges but those of nitrogen and of oxygen outside rings.
_NOT_PLAIN = Chem.MolFromSmarts(
    "[!#5&!#6&!#7&!#8&!#9&!#14&!#16&!#17&!#35&!#53,#9&!D0&!D1,#17&!D0&!D1,#35&!D0&!D1,#53&!D0&!D1,"
    "$(*->*),!+0&R,!+0&!$([#7&+1])&!$([#8&-1&D1])]"
)
# An atom of a SMILES: what stands in brackets, or a letter of the organic subset.
_ATOM = re.compile(r"\[[^]]*\]|Br|Cl|[BCNOPSFIbcnops]")
# SMILES that are their own canonical form after so many rounds; RDKit needs more than one for a few charged rings.
_ROUNDS = 4


class Cut(NamedTuple):
    """A directed cut: the bond from atom `keep` to atom `drop`, which leaves an arm of `size` heavy atoms."""

    keep: int
    drop: int
    size: int


@dataclass(frozen=True)
class Pieces:
    """What a cut makes: two canonical SMILES, and which atom of `kept`, in the order it is written, lost the arm."""

    kept: str
    arm: str
    atom: int


class MoleculeGraph:
    """A sanitised molecule and what can be done to it. Nothing is computed before it is asked for."""

    def __init__(self, molecule: Chem.Mol) -> None:
        self.molecule = molecule
        self._pieces: dict[Cut, Pieces] = {}
        self._undone: dict[Cut, bool] = {}

    @property
    def size(self) -> int:
        """Number of heavy atoms."""
        return int(self.molecule.GetNumAtoms())

    @cached_property
    def rooms(self) -> tuple[int, ...]:
        """The atoms that carry a hydrogen, ascending: where an arm can be attached."""
        matches = self.molecule.GetSubstructMatches(_WITH_HYDROGEN, maxMatches=self.size + 1)
        return tuple(sorted(atom for (atom,) in matches))

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        """Every directed cut, two for each bond that can be cut, in the order of their atoms."""
        bonds = self.molecule.GetSubstructMatches(_CUTTABLE, maxMatches=2 * self.size)
        if not bonds:
            return ()
        parent, sizes = _tree(self._neighbours)
        found = []
        for one, other in bonds:
            outer, inner = (one, other) if parent[one] == other else (other, one)
            found.append(Cut(inner, outer, sizes[outer]))
            found.append(Cut(outer, inner, self.size - sizes[outer]))
        return tuple(sorted(found))

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """One number for each atom, the same for equivalent atoms."""
        return tuple(Chem.CanonicalRankAtoms(self.molecule, breakTies=False))

    @cached_property
    def smiles(self) -> str:
        """The canonical SMILES."""
        return str(Chem.MolToSmiles(self.molecule))

    def pieces(self, cut: Cut) -> Pieces:
        """Return what a cut makes."""
        if cut not in self._pieces:
            self._pieces[cut] = _cut(self.molecule, cut)
        return self._pieces[cut]

    def undoes(self, cut: Cut) -> bool:
        """True when attaching the arm that a cut drops to what it keeps makes this molecule again, and no other."""
        if self.is_plain:
            return True
        if cut not in self._undone:
            self._undone[cut] = _is_undone(self, self.pieces(cut))
        return self._undone[cut]

    def composition(self, cut: Cut) -> tuple[int, ...]:
        """Return the atomic numbers of the atoms that a cut drops, ascending."""
        seen, frontier = {cut.keep, cut.drop}, [cut.drop]
        while frontier:
            fresh = [atom for atom in self._neighbours[frontier.pop()] if atom not in seen]
            seen.update(fresh)
            frontier.extend(fresh)
        atoms = self.molecule.GetAtomWithIdx
        return tuple(sorted(atoms(atom).GetAtomicNum() for atom in seen - {cut.keep}))

    @cached_property
    def is_plain(self) -> bool:
        """True when RDKit's clean-up has nothing to do with it, nor with anything that can be cut from it."""
        return not self.molecule.HasSubstructMatch(_NOT_PLAIN)

    @cached_property
    def _neighbours(self) -> list[list[int]]:
        return _adjacency(self.molecule)


@dataclass(frozen=True)
class Arm:
    """An arm ready to attach: its canonical SMILES, the molecule without its dummy, and the atom that attaches."""

    smiles: str
    molecule: Chem.Mol
    atom: int

    @property
    def size(self) -> int:
        """Number of heavy atoms."""
        return int(self.molecule.GetNumAtoms())


def read_molecule(smiles: str) -> MoleculeGraph:
    """Return the graph of a state; atom i is the i-th that the SMILES names.

    Raises:
        ValueError: not a molecule, or one that no state can be.
    """
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    return _graph_of(smiles, molecule)


def read_state(state: str) -> MoleculeGraph:
    """Return the same graph as `read_molecule` for a SMILES that `canonical_state` wrote, in two thirds of the time.

    Left out is what such a SMILES has no use for: hydrogens to be folded in, stereochemistry.

    Raises:
        ValueError: not a molecule, or one that no state can be.
    """
    with rdBase.BlockLogs():
        molecule: Chem.Mol | None = Chem.MolFromSmiles(state, sanitize=False)
        if molecule and Chem.SanitizeMol(molecule, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
            molecule = None
    return _graph_of(state, molecule)


def canonical_state(smiles: str) -> str:
    """Return the state that a SMILES, stereochemistry removed, stands for.

    Raises:
        ValueError: not a molecule, or one that no state can be.
    """
    for _ in range(_ROUNDS):
        molecule = read_molecule(smiles).molecule
        Chem.RemoveStereochemistry(molecule)
        before, smiles = smiles, str(Chem.MolToSmiles(molecule))
        if smiles == before:
            return smiles
    raise ValueError(f"“{smiles[:60]}” has no stable canonical form")


def heavy_atoms(state: str) -> int:
    """Return how many heavy atoms a state has, counted in its SMILES without parsing it."""
    return len(_ATOM.findall(state))


def read_arm(smiles: str) -> Arm:
    """Return the arm that a SMILES with one dummy `*` stands for, stereochemistry removed.

    Raises:
        ValueError: not such a SMILES.
    """
    with rdBase.BlockLogs():
        whole = Chem.MolFromSmiles(smiles)
    if whole is None:
        raise ValueError(f"“{smiles[:60]}” is not a molecule")
    Chem.RemoveStereochemistry(whole)
    dummies = [atom for atom in whole.GetAtoms() if atom.GetAtomicNum() == 0]
    if len(dummies) != 1 or dummies[0].GetDegree() != 1 or whole.GetNumAtoms() < 2:
        raise ValueError(f"“{smiles[:60]}” must have one dummy atom with one bond")
    dummy = dummies[0]
    bond, end = dummy.GetBonds()[0], dummy.GetNeighbors()[0].GetIdx()
    if bond.GetBondType() != _SINGLE or dummy.GetIsotope() or dummy.GetAtomMapNum() or dummy.GetFormalCharge():
        raise ValueError(f"“{smiles[:60]}” must attach by a single bond of a plain dummy")
    canonical, place = str(Chem.MolToSmiles(whole)), dummy.GetIdx()
    bare = Chem.RWMol(whole)
    _set_hydrogens(bare.GetAtomWithIdx(end), 0)
    bare.RemoveAtom(place)
    molecule = bare.GetMol()
    molecule.UpdatePropertyCache(strict=False)
    reason = _why_not(molecule) or ("must be one arm, not several" if "." in canonical else "")
    if reason:
        raise ValueError(f"“{smiles[:60]}” {reason}")
    return Arm(canonical, molecule, end - (end > place))


def attach(graph: MoleculeGraph, atom: int, arm: Arm) -> MoleculeGraph | None:
    """Return the molecule with the arm in the place of a hydrogen of `atom`.

    None when that is no molecule, or one from which the arm cannot be cut off again. The atoms of `graph` keep their
    numbers, those of the arm follow.
    """
    grown = _attached(graph, atom, arm)
    if grown is None or grown.is_plain:
        return grown
    cut = seam(grown, atom, graph.size)
    if cut is None:
        return None
    pieces = grown.pieces(cut)
    is_undone = (pieces.kept, pieces.arm) == (graph.smiles, arm.smiles) and grown.undoes(cut)
    return grown if is_undone else None


def seam(grown: MoleculeGraph, atom: int, size: int) -> Cut | None:
    """Return the cut that parts a product of `attach` at `atom` again; None if its bond is none that can be cut.

    Args:
        size: number of atoms before the arm was attached.
    """
    return next((cut for cut in grown.cuts if cut.keep == atom and cut.drop >= size), None)


def _attached(graph: MoleculeGraph, atom: int, arm: Arm) -> MoleculeGraph | None:
    product = Chem.RWMol(graph.molecule)
    first = product.GetNumAtoms()
    one = product.GetAtomWithIdx(atom)
    _set_hydrogens(one, -1)
    product.InsertMol(arm.molecule)
    product.AddBond(atom, first + arm.atom, _SINGLE)
    if one.GetFormalCharge() and product.GetAtomWithIdx(first + arm.atom).GetFormalCharge():
        return None
    if Chem.SanitizeMol(product, catchErrors=True) != Chem.SanitizeFlags.SANITIZE_NONE:
        return None
    return MoleculeGraph(product)


def _is_undone(graph: MoleculeGraph, pieces: Pieces) -> bool:
    """True when these pieces are a state and an arm as they are written, make the molecule and are cut from it."""
    try:
        whole, kept, arm = read_state(graph.smiles), read_state(pieces.kept), read_arm(pieces.arm)
    except ValueError:
        return False
    again = _attached(kept, pieces.atom, arm)
    if again is None or (cut := seam(again, pieces.atom, kept.size)) is None:
        return False
    parted = again.pieces(cut)
    written = (whole.smiles, kept.smiles, arm.smiles, again.smiles, parted.kept, parted.arm)
    return written == (graph.smiles, pieces.kept, pieces.arm, graph.smiles, pieces.kept, pieces.arm)


def _graph_of(smiles: str, molecule: Chem.Mol | None) -> MoleculeGraph:
    reason = _why_not(molecule) or ("must be one molecule, not several" if "." in smiles else "")
    if molecule is None or reason:
        raise ValueError(f"“{smiles[:60]}” {reason}")
    return MoleculeGraph(molecule)


def _cut(molecule: Chem.Mol, cut: Cut) -> Pieces:
    both = Chem.RWMol(molecule)
    _set_hydrogens(both.GetAtomWithIdx(cut.keep), 1)
    _set_hydrogens(both.GetAtomWithIdx(cut.drop), 0)
    both.RemoveBond(cut.keep, cut.drop)
    dummy = both.AddAtom(Chem.Atom(0))
    both.AddBond(dummy, cut.drop, _SINGLE)
    both.UpdatePropertyCache(strict=False)
    one, other = Chem.MolToSmiles(both).split(".")
    written = json.loads(both.GetProp("_smilesAtomOutputOrder").replace(",]", "]"))
    if "*" in one:
        return Pieces(other, one, written.index(cut.keep) - cut.size - 1)
    return Pieces(one, other, written.index(cut.keep))


def _set_hydrogens(atom: Chem.Atom, change: int) -> None:
    hydrogens = atom.GetTotalNumHs() + change
    atom.SetNoImplicit(True)
    atom.SetNumExplicitHs(hydrogens)


def _why_not(molecule: Chem.Mol | None) -> str:
    if molecule is None or molecule.GetNumAtoms() == 0:
        return "is not a molecule"
    if len(molecule.GetAtomsMatchingQuery(_NEVER_IN_A_STATE)):
        return "must not contain dummy atoms, isolated hydrogens, radicals or atom maps"
    return ""


def _adjacency(molecule: Chem.Mol) -> list[list[int]]:
    near: list[list[int]] = [[] for _ in range(molecule.GetNumAtoms())]
    rows, columns = np.nonzero(Chem.GetAdjacencyMatrix(molecule))
    for row, column in zip(rows.tolist(), columns.tolist(), strict=True):
        near[row].append(column)
    return near


def _tree(near: list[list[int]]) -> tuple[Sequence[int], Sequence[int]]:
    """Return each atom's parent in a walk from atom 0 and how many atoms hang from it, itself included."""
    parent = [-1] * len(near)
    seen, order, stack = {0}, [], [0]
    while stack:
        atom = stack.pop()
        order.append(atom)
        for other in near[atom]:
            if other not in seen:
                seen.add(other)
                parent[other] = atom
                stack.append(other)
    sizes = [1] * len(near)
    for atom in reversed(order[1:]):
        sizes[parent[atom]] += sizes[atom]
    return parent, sizes
