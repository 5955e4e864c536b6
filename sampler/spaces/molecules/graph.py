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

Atoms that RDKit ranks as equal count as equivalent. Its canonical SMILES rest on the same ranks.

Each atom of a graph but the first has a neighbour with a lower number, as `Tree` wants it: a SMILES names
its atoms so, an arm is numbered from where it attaches, and its atoms follow those it is attached to.

RDKit cleans up what it reads: it writes some groups in another way once they have grown, such as C=P(=O)C with
one more arm as [P+][O-]. What was cut from such a product would be another molecule than the one that grew. So a move
exists only if it can be undone: attaching must make what the cut has parted, and the cut must part what attaching has
joined (`MoleculeGraph.undoes`). Both are tried on every molecule that is not `is_plain`.

With one that is plain, sanitising has nothing to do at all where the parts are known to be states and arms: an atom
whose hydrogen gives way to an arm keeps its valence and its part in aromatic rings, and the rings stay what they were.
So plain molecules are neither sanitised again when they are read, nor when they grow or shrink. Only filters that look
at more than the size ask for it (`MoleculeGraph.sanitise`). Nor has any state stereochemistry for RDKit to look for.

`Tree` tells what stands on either side of a bond that is in no ring, without a walk for each. The atoms of a molecule
are hung up by atom 0: each hangs from its lowest neighbour. That takes no search, because in a molecule numbered as a
SMILES names its atoms each atom but the first has a neighbour that was named before it. And it suffices: let a and b be
bonded outside rings, a < b. Every atom of b's side but b has all its neighbours there, so it hangs from b in one step
or several, and nothing else does. What b's side weighs is what hangs from b.

`Written` reads off a SMILES as text the branch that a bond outside rings leads to. A SMILES names the atoms of a
molecule in the order of a walk from its first atom. What a bond outside rings leads to is named in one piece, and no
ring closes across its ends. So both sides of such a bond stand in the text: the branch, and the rest with a dummy in
its place. Hydrogens need no care, as each side keeps the single bond of that atom."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np
from rdkit import Chem, rdBase
from rdkit.Chem import rdqueries

# What RDKit may clean up, or read back in another way than it wrote it: atoms of other elements than these, halogens
# with several bonds, dative bonds, and all charges but those of nitrogen and of oxygen outside rings.
_NOT_PLAIN = Chem.MolFromSmarts(
    "[!#5&!#6&!#7&!#8&!#9&!#14&!#16&!#17&!#35&!#53,#9&!D0&!D1,#17&!D0&!D1,#35&!D0&!D1,#53&!D0&!D1,"
    "$(*->*),!+0&R,!+0&!$([#7&+1])&!$([#8&-1&D1])]"
)

_HALOGENS = frozenset({9, 17, 35, 53})
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


def settle_joined(molecule: Chem.Mol, one: int, other: int) -> None:
    """Make a molecule ready that was joined of two plain ones, and is known to be plain.

    Args:
        one: an atom that was joined; its hydrogens are counted. So are those of `other`.
    """
    for atom in (one, other):
        molecule.GetAtomWithIdx(atom).UpdatePropertyCache(strict=False)
    Chem.FastFindRings(molecule)


def can_grow_plain(atom: Chem.Atom) -> bool:
    """Return True where an atom of a plain molecule can take one more bond, and the molecule stays plain."""
    return not atom.GetFormalCharge() and atom.GetAtomicNum() not in _HALOGENS


def write(molecule: Chem.Mol) -> str:
    """Return the canonical SMILES of a molecule that has no stereochemistry."""
    molecule.SetIntProp(_STEREOCHEMISTRY_DONE, 1, computed=True)
    return str(Chem.MolToSmiles(molecule))


# Walks of so many steps tell nearly all molecules apart that are not the same.
_STEPS = 5
# Sets the weights of elements far apart: odd, and without a pattern in its digits.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Tree:
    """The atoms of a molecule, each hung from its lowest neighbour.

    Args:
        molecule: one component; every atom but the first has a neighbour with a lower number.
    """

    def __init__(self, molecule: Chem.Mol) -> None:
        self._bonded = Chem.GetAdjacencyMatrix(molecule)
        # The first largest of zeros and ones: the lowest neighbour.
        self._parents: list[int] = self._bonded.argmax(axis=1).tolist()
        self.sizes = self.sums([1] * len(self._parents))
        """How many atoms hang from each, itself included."""

    def sums(self, values: Sequence[int]) -> list[int]:
        """Return the sum of the values of all atoms that hang from each, itself included."""
        totals = list(values)
        for atom in range(len(totals) - 1, 0, -1):
            totals[self._parents[atom]] += totals[atom]
        return totals

    def side(self, keep: int, drop: int) -> list[int]:
        """Return the atoms on the side of `drop` of a bond that is in no ring, ascending."""
        high = max(keep, drop)
        hanging = {high}
        for atom in range(high + 1, len(self._parents)):
            if self._parents[atom] in hanging:
                hanging.add(atom)
        if drop == high:
            return sorted(hanging)
        return [atom for atom in range(len(self._parents)) if atom not in hanging]

    def walks(self, sides: Sequence[list[int]], elements: Sequence[int]) -> list[int]:
        """Return a number for each of several sides, the same where what is left without it is the same molecule.

        It counts the walks of a few steps through what is left, weighted by the elements they meet, modulo 2^64.
        However a molecule is numbered, its walks are the same; of molecules that differ they mostly differ.

        Args:
            sides: atoms left out.
            elements: the atomic number of each atom.
        """
        left = np.tile(np.array(elements, dtype=np.uint64) * _SPREAD, (len(sides), 1))
        for row, side in zip(left, sides, strict=True):
            row[side] = 0
        bonded, reached = self._bonded.astype(np.uint64), left
        for _ in range(_STEPS):
            reached = (reached @ bonded) * left
        return list(reached.sum(axis=1).tolist())


# An atom of a SMILES: what stands in brackets, or a letter of the organic subset.
ATOM = re.compile(r"\[[^]]*\]|Br|Cl|[BCNOPSFIbcnops]")
_SYMBOL = re.compile(r"[A-Z][a-z]?|[a-z]{1,2}")
_REMEMBERED_ATOMS = 1_000


class Written:
    """A SMILES of one molecule, its atoms numbered as it names them; no atom is a hydrogen or a dummy."""

    def __init__(self, smiles: str) -> None:
        self._smiles = smiles

    def beyond(self, atom: int, size: int) -> str:
        """Return a SMILES of what the bond from before leads to: `size` atoms, `atom` the first; a dummy comes before.

        Args:
            atom: the later one of a bond outside rings.
            size: how many atoms that bond leads to.
        """
        return "*" + self._branch(atom, size)[1]

    def without(self, atom: int, size: int) -> str:
        """Return a SMILES of what `beyond` leaves out, with a dummy in the place of what it names."""
        begin, branch = self._branch(atom, size)
        return self._smiles[:begin] + "*" + self._smiles[begin + len(branch) :]

    def _branch(self, atom: int, size: int) -> tuple[int, str]:
        """Return where the atom stands and the branch it begins."""
        atoms = ATOM.finditer(self._smiles)
        begin = next(islice(atoms, atom, None)).start()
        after = next(islice(atoms, size - 1, None), None)
        # What may stand before the atom that follows: the end of branches begun earlier, the start of one, its bond.
        text = self._smiles[begin : after.start() if after else None].rstrip("(-=#:")
        surplus = text.count(")") - text.count("(")
        return begin, text[:-surplus] if surplus else text


def elements(smiles: str) -> list[int]:
    """Return the atomic number of each atom but dummies, in the order a SMILES names them."""
    return [_element(atom) for atom in ATOM.findall(smiles)]


@lru_cache(maxsize=_REMEMBERED_ATOMS)
def _element(atom: str) -> int:
    found = _SYMBOL.search(atom)
    if found is None:
        raise ValueError(f"“{atom}” names no element")
    return int(Chem.GetPeriodicTable().GetAtomicNumber(found[0].capitalize()))


SINGLE = Chem.BondType.SINGLE


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


def _kept_of(molecule: Chem.Mol, cut: Cut, dropped: Sequence[int]) -> Chem.RWMol:
    """Return what a cut keeps, as it is left; the order of its atoms stays.

    Args:
        dropped: the atoms that the cut drops.
    """
    left = _editable(molecule)
    set_hydrogens(left.GetAtomWithIdx(cut.keep), 1)
    left.BeginBatchEdit()
    for atom in dropped:
        left.RemoveAtom(atom)
    left.CommitBatchEdit()
    left.UpdatePropertyCache(strict=False)
    return left


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
_REMEMBERED_ARMS = 10_000


class MoleculeGraph:
    """A molecule and what can be done to it. Nothing is computed before it is asked for.

    Args:
        molecule: as `plain.settle` leaves it. Each atom but the first has a neighbour with a lower number.
        written: SMILES that name the atoms in their order, the state and any arm attached to it; () where none do.
    """

    def __init__(self, molecule: Chem.Mol, written: tuple[str, ...] = ()) -> None:
        self.molecule = molecule
        self.written = written
        self._is_sanitised = False
        self._pieces: dict[Cut, Pieces] = {}
        self._alike: dict[Cut, list[list[Cut]]] = {}
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
        """The atoms that carry a hydrogen, ascending: where an arm can be attached."""
        matches = self.molecule.GetSubstructMatches(_WITH_HYDROGEN, maxMatches=self.size + 1)
        return tuple(sorted(atom for (atom,) in matches))

    @cached_property
    def cuts(self) -> tuple[Cut, ...]:
        """Every directed cut, two for each bond that can be cut, in the order of their atoms."""
        return tuple(self.cut(*bond) for bond in self.directed)

    def cut(self, keep: int, drop: int) -> Cut:
        """Return the cut of a bond that can be cut."""
        sizes = self._tree.sizes
        return Cut(keep, drop, sizes[drop] if keep < drop else self.size - sizes[keep])

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

    def arm(self, cut: Cut) -> str:
        """Return the arm that a cut drops. Plain ones are read off the SMILES of the state and remembered."""
        if len(self.written) != 1 or not self.is_plain:
            return self.pieces(cut).arm
        if cut.keep < cut.drop:
            return _canonical(self._text.beyond(cut.drop, cut.size))
        return _canonical(self._text.without(cut.keep, self.size - cut.size))

    @cached_property
    def _text(self) -> Written:
        return Written(self.written[0])

    def undoes(self, cut: Cut) -> bool:
        """True when attaching the arm that a cut drops to what it keeps makes this molecule again, and no other."""
        if self.is_plain:
            return True
        if cut not in self._undone:
            self._undone[cut] = _is_undone(self, self.pieces(cut))
        return self._undone[cut]

    def kept(self, cut: Cut) -> tuple[MoleculeGraph, int]:
        """Return what a cut keeps, as it is left, and the atom of it that lost the arm. Not for cuts of its own.

        It is what reading the SMILES of that side gives, in less time, where `is_plain` holds; but not sanitised.
        """
        dropped = self._tree.side(cut.keep, cut.drop)
        left = _kept_of(self.molecule, cut, dropped)
        return MoleculeGraph(left), cut.keep - sum(atom < cut.keep for atom in dropped)

    def alike(self, made: Cut) -> list[list[Cut]]:
        """Return the cuts that may keep the same molecule as `made` does, itself among them, equivalent ones together.

        Those left out keep another one for sure: they drop other elements, or walks through what they keep differ.
        """
        if made not in self._alike:
            self._alike[made] = self._classes(made)
        return self._alike[made]

    def _classes(self, made: Cut) -> list[list[Cut]]:
        rivals = self._of_size(made.size)
        if len(rivals) > 1:
            rivals = [cut for cut in rivals if self._composition(cut) == self._composition(made)]
        if len(rivals) == 1:
            return [rivals]
        found: dict[tuple[int, int], list[Cut]] = {}
        for cut in rivals:
            found.setdefault((self.ranks[cut.keep], self.ranks[cut.drop]), []).append(cut)
        classes = list(found.values())
        if len(classes) == 1:
            return classes
        walks = self._tree.walks([self._tree.side(same[0].keep, same[0].drop) for same in classes], self._elements)
        wanted = next(each for same, each in zip(classes, walks, strict=True) if made in same)
        return [same for same, each in zip(classes, walks, strict=True) if each == wanted]

    def _of_size(self, size: int) -> list[Cut]:
        sizes, rest = self._tree.sizes, self.size - size
        outward = [Cut(inner, outer, size) for inner, outer in self.bonds if sizes[outer] == size]
        return outward + [Cut(outer, inner, size) for inner, outer in self.bonds if sizes[outer] == rest]

    def _composition(self, cut: Cut) -> int:
        """Return a number that is the same for cuts that drop the same elements, and no others."""
        return self._counts[cut.drop] if cut.drop > cut.keep else self._counts[0] - self._counts[cut.keep]

    @cached_property
    def _counts(self) -> list[int]:
        """How many atoms of each element hang from each atom: a digit for each element, base 256."""
        return self._tree.sums([1 << 8 * element for element in self._elements])

    @cached_property
    def _elements(self) -> list[int]:
        """The atomic number of each atom."""
        if self.written:
            return [element for text in self.written for element in elements(text)]
        return [atom.GetAtomicNum() for atom in self.molecule.GetAtoms()]

    @cached_property
    def _tree(self) -> Tree:
        return Tree(self.molecule)

    @cached_property
    def is_plain(self) -> bool:
        """True when RDKit's clean-up has nothing to do with it, nor with anything that can be cut from it."""
        return is_plain(self.molecule)


@dataclass(frozen=True)
class Arm:
    """An arm ready to attach: its canonical SMILES, and the molecule without its dummy. Atom 0 attaches.

    `written` names its atoms in their order.
    """

    smiles: str
    molecule: Chem.Mol
    written: str

    @property
    def size(self) -> int:
        """Number of heavy atoms."""
        return int(self.molecule.GetNumAtoms())

    @cached_property
    def is_plain(self) -> bool:
        """True when a plain molecule stays plain as this is attached, as far as the arm goes."""
        return bool(settle(_joined(Chem.MolFromSmiles("C"), 0, self.molecule)))


def read_molecule(smiles: str) -> MoleculeGraph:
    """Return the graph of a state; atom i is the i-th that the SMILES names.

    Raises:
        ValueError: not a molecule, or one that no state can be.
    """
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    return _graph_of(smiles, molecule)


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
        graph = MoleculeGraph(molecule, (state,))
    else:
        graph = _graph_of(state, None if plain is None else molecule, (state,))
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
    dummy, canonical = dummies[0], str(Chem.MolToSmiles(whole))
    bond = dummy.GetBonds()[0]
    if bond.GetBondType() != SINGLE or dummy.GetIsotope() or dummy.GetAtomMapNum() or dummy.GetFormalCharge():
        raise ValueError(f"“{smiles[:60]}” must attach by a single bond of a plain dummy")
    written = str(Chem.MolToSmiles(whole, rootedAtAtom=dummy.GetIdx()))
    bare = Chem.RWMol(Chem.RenumberAtoms(whole, written_order(whole)))
    set_hydrogens(bare.GetAtomWithIdx(1), 0)
    bare.RemoveAtom(0)
    molecule = bare.GetMol()
    molecule.UpdatePropertyCache(strict=False)
    reason = _why_not(molecule) or ("must be one arm, not several" if "." in canonical else "")
    if reason:
        raise ValueError(f"“{smiles[:60]}” {reason}")
    return Arm(canonical, molecule, written.removeprefix("[*]"))


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
    return Cut(atom, size, grown.size - size) if (atom, size) in grown.bonds else None


def _attached(graph: MoleculeGraph, atom: int, arm: Arm) -> MoleculeGraph | None:
    product = _joined(graph.molecule, atom, arm.molecule)
    one = product.GetAtomWithIdx(atom)
    if graph.is_plain and arm.is_plain and can_grow_plain(one):
        settle_joined(product, atom, graph.size)
        plain: bool | None = True
    else:
        are_charged = one.GetFormalCharge() and product.GetAtomWithIdx(graph.size).GetFormalCharge()
        plain = None if are_charged else settle(product)
    if plain is None:
        return None
    grown = MoleculeGraph(product, graph.written and (*graph.written, arm.written))
    grown.is_plain = plain
    return grown


def _joined(molecule: Chem.Mol, atom: int, arm: Chem.Mol) -> Chem.RWMol:
    """Return the molecule with an arm in the place of a hydrogen of `atom`, as it is left."""
    product = _editable(molecule)
    set_hydrogens(product.GetAtomWithIdx(atom), -1)
    product.InsertMol(arm)
    product.AddBond(atom, molecule.GetNumAtoms(), SINGLE)
    return product


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


def _graph_of(smiles: str, molecule: Chem.Mol | None, written: tuple[str, ...] = ()) -> MoleculeGraph:
    reason = _why_not(molecule) or ("must be one molecule, not several" if "." in smiles else "")
    if molecule is None or reason:
        raise ValueError(f"“{smiles[:60]}” {reason}")
    return MoleculeGraph(molecule, written)


def _why_not(molecule: Chem.Mol | None) -> str:
    if molecule is None or molecule.GetNumAtoms() == 0:
        return "is not a molecule"
    if len(molecule.GetAtomsMatchingQuery(_NEVER_IN_A_STATE)):
        return "must not contain dummy atoms, isolated hydrogens, radicals or atom maps"
    return ""


@lru_cache(maxsize=_REMEMBERED_ARMS)
def _canonical(arm: str) -> str:
    return write(Chem.MolFromSmiles(arm))
