"""Molecules as graphs that grow by a fragment at an atom and shrink at an acyclic single bond.

A state is a canonical SMILES without stereochemistry: one component of heavy atoms, no radicals, no atom maps, no
dummies. A fragment is a SMILES with one dummy `*` where it attaches, such as `*S(C)(=O)=O` or `*n1cccn1`.

Attaching replaces one hydrogen of an atom by the fragment; cutting is its inverse: the kept side receives the hydrogen,
the dropped side a dummy. Hydrogens are counted explicitly on the atoms touched, which is what makes the two inverse
to one another where RDKit's own recount would not be: [nH] against n-R (which would no longer kekulise), [NH3+]
against [NH2+]-R, and bracket atoms such as [S+] or [N+] (which would become radicals that sanitise). A bond between
two charged atoms, as in [N+]-[O-], is part of its functional group and is never cut nor made. Stereochemistry is
left out because a cut at [C@] creates or destroys a centre, so that cutting and attaching would not be inverse.
Tautomers and protonation states are different states.

Atoms that RDKit ranks as equal count as equivalent. Its canonical SMILES rest on the same ranks.

Each atom of a graph but the first has a neighbour with a lower number: a SMILES names its atoms so, a fragment is
numbered from where it attaches, and its atoms follow those it is attached to. So the atoms can be hung up by the first,
each from its lowest neighbour, without a search. Of a bond outside rings, from a to b > a, what hangs from b is its
side: every atom there but b has all its neighbours there, so it hangs from b in one step or more; nothing else does.

RDKit cleans up what it reads: it writes some groups in another way once they have grown, such as C=P(=O)C with
one more fragment as [P+][O-]. What was cut from such a product would be another molecule than the one that grew. So a
move exists only if it can be undone: attaching must make what the cut has parted, and the cut must part what attaching
has joined (`MoleculeGraph.undoes`). Both are tried on every molecule that is not `is_plain`.

With one that is plain, sanitising has nothing to do at all where the parts are known to be states and fragments: an
atom whose hydrogen gives way to a fragment keeps its valence and its part in aromatic rings, and the rings stay what
they were. So plain molecules are neither sanitised again when they are read, nor when they grow. Only filters that look
at more than the size ask for it (`MoleculeGraph.sanitise`). Nor has any state stereochemistry for RDKit to look for.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from rdkit import Chem, rdBase
from rdkit.Chem import rdqueries

# What RDKit may clean up, or read back in another way than it wrote it: atoms of other elements than these, halogens
# with several bonds, dative bonds, and all charges but those of nitrogen and of oxygen outside rings.
_NOT_PLAIN = Chem.MolFromSmarts(
    "[!#5&!#6&!#7&!#8&!#9&!#14&!#16&!#17&!#35&!#53,#9&!D0&!D1,#17&!D0&!D1,#35&!D0&!D1,#53&!D0&!D1,"
    "$(*->*),!+0&R,!+0&!$([#7&+1])&!$([#8&-1&D1])]"
)

# What RDKit sets on a molecule once it has looked for stereochemistry.
_STEREOCHEMISTRY_DONE = "_StereochemDone"


def sanitise(molecule: Chem.Mol, operations: Chem.SanitizeFlags = Chem.SanitizeFlags.SANITIZE_ALL) -> bool:
    """Sanitise the molecule where that is possible; return whether it is."""
    failed = Chem.SanitizeMol(molecule, sanitizeOps=operations, catchErrors=True)
    return bool(failed == Chem.SanitizeFlags.SANITIZE_NONE)


def is_plain(molecule: Chem.Mol) -> bool:
    """Return True where clean-up has nothing to do with the molecule, nor with anything that can be cut from it.

    Its rings must be known.
    """
    return not molecule.HasSubstructMatch(_NOT_PLAIN)


def settle(molecule: Chem.Mol) -> bool | None:
    """Make a molecule ready: find rings and hydrogens where it is plain, sanitise it where it is not.

    Args:
        molecule: as a state is written, or put together of what was sanitised.

    Returns:
        Whether it is plain; None where it is no molecule.
    """
    if sanitise(molecule, Chem.SanitizeFlags.SANITIZE_PROPERTIES):
        Chem.FastFindRings(molecule)
        if is_plain(molecule):
            return True
    return is_plain(molecule) if sanitise(molecule) else None


def write(molecule: Chem.Mol) -> str:
    """Return the canonical SMILES of a molecule that has no stereochemistry."""
    molecule.SetIntProp(_STEREOCHEMISTRY_DONE, 1, computed=True)
    return str(Chem.MolToSmiles(molecule))


# An atom of a SMILES: what stands in brackets, or a letter of the organic subset.
ATOM = re.compile(r"\[[^]]*\]|Br|Cl|[BCNOPSFIbcnops]")
SINGLE = Chem.BondType.SINGLE


class Cut(NamedTuple):
    """A directed cut: the bond from atom `keep` to atom `drop`, which leaves a fragment of `size` heavy atoms."""

    keep: int
    drop: int
    size: int


@dataclass(frozen=True)
class Pieces:
    """What a cut makes: two canonical SMILES, and which atom of `kept`, as it is written, lost the fragment."""

    kept: str
    fragment: str
    atom: int


def _pieces_of(molecule: Chem.Mol, cut: Cut) -> Pieces:
    """Return what a cut makes."""
    both = _editable(molecule)
    set_hydrogens(both.GetAtomWithIdx(cut.keep), 1)
    set_hydrogens(both.GetAtomWithIdx(cut.drop), 0)
    both.RemoveBond(cut.keep, cut.drop)
    dummy = both.AddAtom(Chem.Atom(0))
    both.AddBond(dummy, cut.drop, SINGLE)
    both.UpdatePropertyCache(strict=False)
    one, other = write(both).split(".")
    written = written_order(both)
    if "*" in one:
        return Pieces(other, one, written.index(cut.keep) - cut.size - 1)
    return Pieces(one, other, written.index(cut.keep))


def _editable(molecule: Chem.Mol) -> Chem.RWMol:
    """Return a copy to change, without what RDKit remembers of the molecule as it is: rings, adjacency."""
    left = Chem.RWMol(molecule)
    left.ClearComputedProps()
    return left


def set_hydrogens(atom: Chem.Atom, change: int) -> None:
    hydrogens = atom.GetTotalNumHs() + change
    atom.SetNoImplicit(True)
    atom.SetNumExplicitHs(hydrogens)


def written_order(molecule: Chem.Mol) -> list[int]:
    """Return the atoms in the order in which the SMILES last written names them."""
    return list(json.loads(molecule.GetProp("_smilesAtomOutputOrder").replace(",]", "]")))


_WITH_HYDROGEN = Chem.MolFromSmarts("[!H0]")
# Acyclic single bonds of which at least one end is neutral.
_CUTTABLE = Chem.MolFromSmarts("[+0]-;!@[*]")
_NEVER_IN_A_STATE = rdqueries.AtomNumLessQueryAtom(2)
_NEVER_IN_A_STATE.ExpandQuery(rdqueries.NumRadicalElectronsGreaterQueryAtom(0), Chem.CompositeQueryType.COMPOSITE_OR)
_NEVER_IN_A_STATE.ExpandQuery(rdqueries.HasPropQueryAtom("molAtomMapNumber"), Chem.CompositeQueryType.COMPOSITE_OR)
# What is written where a plain molecule has atom maps or several components, and for a rare kind of bond.
_IN_NO_PLAIN_STATE = frozenset(":.")
# SMILES that are their own canonical form after so many rounds; RDKit needs more than one for a few charged rings.
_ROUNDS = 4
# RDKit writes a molecule by recursion, and one of 20,000 atoms ends the process.
_MAX_CHARACTERS = 3_000


class MoleculeGraph:
    """A molecule and what can be done to it. Nothing is computed before it is asked for.

    Args:
        molecule: as `settle` leaves it. Each atom but the first has a neighbour with a lower number.
    """

    def __init__(self, molecule: Chem.Mol) -> None:
        self.molecule = molecule
        self._is_sanitised = False
        self._pieces: dict[Cut, Pieces] = {}
        self._undone: dict[Cut, bool] = {}

    def sanitise(self) -> None:
        """Do what RDKit does with a molecule it reads, hybridisation and all. States and atoms stay the same."""
        if not self._is_sanitised:
            Chem.SanitizeMol(self.molecule)
            self._is_sanitised = True

    @cached_property
    def size(self) -> int:
        """Number of heavy atoms."""
        return int(self.molecule.GetNumAtoms())

    @cached_property
    def rooms(self) -> tuple[int, ...]:
        """The atoms that carry a hydrogen, ascending: where a fragment can be attached."""
        matches = self.molecule.GetSubstructMatches(_WITH_HYDROGEN, maxMatches=self.size + 1)
        return tuple(sorted(atom for (atom,) in matches))

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        """Every directed cut, two for each bond that can be cut, in the order of their atoms."""
        return tuple(self.cut(*bond) for bond in self.directed)

    def cut(self, keep: int, drop: int) -> Cut:
        """Return the cut of a bond that can be cut."""
        return Cut(keep, drop, self._hanging[drop] if keep < drop else self.size - self._hanging[keep])

    @cached_property
    def _hanging(self) -> list[int]:
        """How many atoms hang from each, itself included."""
        # The first largest of zeros and ones: the lowest neighbour.
        parents: list[int] = Chem.GetAdjacencyMatrix(self.molecule).argmax(axis=1).tolist()
        sizes = [1] * self.size
        for atom in range(self.size - 1, 0, -1):
            sizes[parents[atom]] += sizes[atom]
        return sizes

    @cached_property
    def directed(self) -> list[tuple[int, int]]:
        """The atoms that each directed cut keeps and drops, in their order."""
        return sorted([*self.bonds, *((other, one) for one, other in self.bonds)])

    @cached_property
    def bonds(self) -> list[tuple[int, int]]:
        """The bonds that can be cut, the lower atom first. Half as many as there are directed cuts."""
        matches = self.molecule.GetSubstructMatches(_CUTTABLE, maxMatches=2 * self.size)
        return [(one, other) if one < other else (other, one) for one, other in matches]

    @cached_property
    def ranks(self) -> tuple[int, ...]:
        """One number for each atom, the same for equivalent atoms."""
        ranks = Chem.CanonicalRankAtoms(self.molecule, breakTies=False)
        # RDKit's own iterator is a Python function, which takes as long as the ranking.
        return tuple(map(ranks.__getitem__, range(self.size)))

    @cached_property
    def smiles(self) -> str:
        """The canonical SMILES."""
        return write(self.molecule)

    def pieces(self, cut: Cut) -> Pieces:
        """Return what a cut makes."""
        if cut not in self._pieces:
            self._pieces[cut] = _pieces_of(self.molecule, cut)
        return self._pieces[cut]

    def undoes(self, cut: Cut) -> bool:
        """True when attaching what a cut drops to what it keeps makes this molecule again, and no other."""
        if self.is_plain:
            return True
        if cut not in self._undone:
            self._undone[cut] = _is_undone(self, self.pieces(cut))
        return self._undone[cut]

    def alike(self, made: Cut) -> list[list[Cut]]:
        """Return the cuts that drop as many atoms as `made` does, itself among them, equivalent ones together."""
        found: dict[tuple[int, int], list[Cut]] = {}
        for cut in self.cuts:
            if cut.size == made.size:
                found.setdefault((self.ranks[cut.keep], self.ranks[cut.drop]), []).append(cut)
        return list(found.values())

    @cached_property
    def is_plain(self) -> bool:
        """True when RDKit's clean-up has nothing to do with it, nor with anything that can be cut from it."""
        return is_plain(self.molecule)


@dataclass(frozen=True)
class Fragment:
    """A fragment ready to attach: its canonical SMILES, and the molecule without its dummy. Atom 0 attaches."""

    smiles: str
    molecule: Chem.Mol

    @property
    def size(self) -> int:
        """Number of heavy atoms."""
        return int(self.molecule.GetNumAtoms())


def parsed(smiles: str) -> Chem.Mol | None:
    """Return what RDKit reads in a SMILES; None where it reads nothing.

    Raises:
        ValueError: it is longer than that of any molecule here, or holds a NUL, which RDKit may pass over and no
            database keeps.
    """
    before, nul, _ = smiles.partition("\x00")
    if nul:
        raise ValueError(f"“{before[:60]}” is followed by a NUL character (U+0000); remove it")
    if len(smiles) > _MAX_CHARACTERS:
        raise ValueError(f"“{smiles[:60]}” has {len(smiles):,} characters; at most {_MAX_CHARACTERS:,} are allowed")
    with rdBase.BlockLogs():
        found: Chem.Mol | None = Chem.MolFromSmiles(smiles)
    return found


def read_molecule(smiles: str) -> MoleculeGraph:
    """Return the graph of a state; atom i is the i-th that the SMILES names.

    Raises:
        ValueError: not a molecule, or one that no state can be.
    """
    return _graph_of(smiles, parsed(smiles))


def read_state(state: str) -> MoleculeGraph:
    """Return the same graph as `read_molecule` for a SMILES that `canonical_state` wrote, in a third of the time.

    Left out is what such a SMILES has no use for: hydrogens to be folded in, stereochemistry, and most of sanitising
    where it is plain. Not every SMILES that cannot be a state is found out.

    Raises:
        ValueError: not a molecule, or one that no state can be.
    """
    with rdBase.BlockLogs():
        molecule: Chem.Mol | None = Chem.MolFromSmiles(state, sanitize=False)
        plain = None if molecule is None else settle(molecule)
    if molecule is not None and plain and state and _IN_NO_PLAIN_STATE.isdisjoint(state):
        graph = MoleculeGraph(molecule)
    else:
        graph = _graph_of(state, None if plain is None else molecule)
    graph.is_plain = bool(plain)
    return graph


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
    return len(ATOM.findall(state))


def read_fragment(smiles: str) -> Fragment:
    """Return the fragment that a SMILES with one dummy `*` stands for, stereochemistry removed.

    Raises:
        ValueError: not such a SMILES.
    """
    whole = parsed(smiles)
    if whole is None:
        raise ValueError(f"“{smiles[:60]}” is not a molecule")
    Chem.RemoveStereochemistry(whole)
    dummies = [atom for atom in whole.GetAtoms() if atom.GetAtomicNum() == 0]
    if len(dummies) != 1 or dummies[0].GetDegree() != 1 or whole.GetNumAtoms() < 2:
        raise ValueError(f"“{smiles[:60]}” must have one dummy atom with one bond")
    dummy, canonical = dummies[0], str(Chem.MolToSmiles(whole))
    bond = dummy.GetBonds()[0]
    if bond.GetBondType() != SINGLE or dummy.GetIsotope() or dummy.GetAtomMapNum() or dummy.GetFormalCharge():
        raise ValueError(f"“{smiles[:60]}” must attach by a single bond of a plain dummy")
    Chem.MolToSmiles(whole, rootedAtAtom=dummy.GetIdx())
    bare = Chem.RWMol(Chem.RenumberAtoms(whole, written_order(whole)))
    set_hydrogens(bare.GetAtomWithIdx(1), 0)
    bare.RemoveAtom(0)
    molecule = bare.GetMol()
    molecule.UpdatePropertyCache(strict=False)
    reason = _why_not(molecule) or ("must be one fragment, not several" if "." in canonical else "")
    if reason:
        raise ValueError(f"“{smiles[:60]}” {reason}")
    return Fragment(canonical, molecule)


def attach(graph: MoleculeGraph, atom: int, fragment: Fragment) -> MoleculeGraph | None:
    """Return the molecule with the fragment in the place of a hydrogen of `atom`.

    None when that is no molecule, or one from which the fragment cannot be cut off again. The atoms of `graph` keep
    their numbers, those of the fragment follow.
    """
    grown = _attached(graph, atom, fragment)
    if grown is None or grown.is_plain:
        return grown
    cut = inverse_cut(grown, atom, graph.size)
    if cut is None:
        return None
    pieces = grown.pieces(cut)
    is_undone = (pieces.kept, pieces.fragment) == (graph.smiles, fragment.smiles) and grown.undoes(cut)
    return grown if is_undone else None


def inverse_cut(grown: MoleculeGraph, atom: int, size: int) -> Cut | None:
    """Return the cut that parts a product of `attach` at `atom` again; None if its bond is none that can be cut.

    Args:
        size: number of atoms before the fragment was attached.
    """
    return Cut(atom, size, grown.size - size) if (atom, size) in grown.bonds else None


def _attached(graph: MoleculeGraph, atom: int, fragment: Fragment) -> MoleculeGraph | None:
    product = _joined(graph.molecule, atom, fragment.molecule)
    one = product.GetAtomWithIdx(atom)
    are_charged = one.GetFormalCharge() and product.GetAtomWithIdx(graph.size).GetFormalCharge()
    plain = None if are_charged else settle(product)
    if plain is None:
        return None
    grown = MoleculeGraph(product)
    grown.is_plain = plain
    return grown


def _joined(molecule: Chem.Mol, atom: int, fragment: Chem.Mol) -> Chem.RWMol:
    """Return the molecule with a fragment in the place of a hydrogen of `atom`, as it is left."""
    product = _editable(molecule)
    set_hydrogens(product.GetAtomWithIdx(atom), -1)
    product.InsertMol(fragment)
    product.AddBond(atom, molecule.GetNumAtoms(), SINGLE)
    return product


def _is_undone(graph: MoleculeGraph, pieces: Pieces) -> bool:
    """True when these pieces are a state and a fragment as they are written, make the molecule and are cut from it."""
    try:
        whole, kept, fragment = read_state(graph.smiles), read_state(pieces.kept), read_fragment(pieces.fragment)
    except ValueError:
        return False
    again = _attached(kept, pieces.atom, fragment)
    if again is None or (cut := inverse_cut(again, pieces.atom, kept.size)) is None:
        return False
    parted = again.pieces(cut)
    written = (whole.smiles, kept.smiles, fragment.smiles, again.smiles, parted.kept, parted.fragment)
    return written == (graph.smiles, pieces.kept, pieces.fragment, graph.smiles, pieces.kept, pieces.fragment)


def _graph_of(smiles: str, molecule: Chem.Mol | None) -> MoleculeGraph:
    reason = _why_not(molecule) or ("must be one molecule, not several" if "." in smiles else "")
    if molecule is None or reason:
        raise ValueError(f"“{smiles[:60]}” {reason}")
    return MoleculeGraph(molecule)


def _why_not(molecule: Chem.Mol | None) -> str:
    if molecule is None or molecule.GetNumAtoms() == 0:
        return "is not a molecule"
    if len(molecule.GetAtomsMatchingQuery(_NEVER_IN_A_STATE)):
        return "must not contain dummy atoms, isolated hydrogens, radicals or atom maps"
    return ""
