"""Molecule spaces small enough to enumerate, their matrices, and q worked out by trying every action."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from rdkit import Chem

from sampler.kernels.fragments import FragmentMoves
from sampler.spaces.molecules.graph import attach, read_arm, read_molecule
from sampler.spaces.molecules.law import MoleculeLaw
from sampler.spaces.molecules.vocabulary import Vocabulary

FLAT = (0.0, -1.0, 0.3, -0.2, 0.1, -0.4, 0.2, -0.1, 0.05, -0.3, 0.15, 0.4)


@dataclass(frozen=True)
class SmallSpace:
    """All that a vocabulary reaches from one molecule up to a size."""

    start: str
    arms: tuple[tuple[str, float], ...]
    largest: int
    add: float = 0.5

    def law(self) -> MoleculeLaw:
        """Sizes weighted unequally, so that a p0 left out of the ratio shows."""
        return MoleculeLaw(tuple(0.7 * FLAT[n % len(FLAT)] for n in range(self.largest)))

    def kernel(self, convention="exact") -> FragmentMoves:
        return FragmentMoves(Vocabulary(self.arms), self.law(), self.add, convention)

    def reachable(self) -> list[str]:
        return reachable(self.kernel(), self.start)


def plain(*arms: str) -> tuple[tuple[str, float], ...]:
    return tuple((arm, 1.0) for arm in arms)


SMALL_SPACES = {
    "alkanes": SmallSpace("CC", plain("*C"), 7),
    "symmetric": SmallSpace("c1ccccc1", plain("*C", "*F"), 9),
    "one arm, another within it": SmallSpace("CC", plain("*C", "*CC", "*C(C)C", "*O"), 5),
    "duplicates": SmallSpace("CC", (*plain("*C", "C*", "*CO", "OC*", "*O"), ("[*]C", 2.5)), 5),
    "pyrrole": SmallSpace("c1cc[nH]c1", plain("*F", "*n1cccc1", "*c1ccc[nH]1"), 10, 0.3),
    "imidazole": SmallSpace("c1c[nH]cn1", plain("*C", "*Cl", "*C=O"), 7),
    "nitro": SmallSpace("c1ccccc1", plain("*[N+](=O)[O-]", "*O"), 10, 0.7),
    "ammonium": SmallSpace("C[NH3+]", plain("*C", "*[NH3+]", "*C(=O)[O-]", "*[O-]"), 5),
    "sulfonium": SmallSpace("C[S+](C)C", plain("*C", "*S(C)(=O)=O", "*[SH+]C"), 6),
    "small rings": SmallSpace("C1CC1", plain("*C1CC1", "*C", "*C1CO1"), 7),
    "pyridone": SmallSpace("O=c1cccc[nH]1", plain("*C", "*O"), 9),
    "centres": SmallSpace("CC(F)Cl", plain("*F", "*Br", "*C=CF"), 6),
}


def reachable(kernel: FragmentMoves, start: str) -> list[str]:
    """Return every state the kernel reaches, in alphabetical order."""
    seen, frontier = {start}, [start]
    while frontier:
        fresh = kernel.law(frontier.pop()).keys() - seen
        seen |= fresh
        frontier.extend(fresh)
    return sorted(seen)


def proposal_matrix(kernel: FragmentMoves, states: list[str]) -> np.ndarray:
    """Return q(x'|x) at [x, x'], shape (n, n)."""
    place = {state: i for i, state in enumerate(states)}
    matrix = np.zeros((len(states), len(states)))
    for state in states:
        for reached, chance in kernel.law(state).items():
            matrix[place[state], place[reached]] = chance
    return matrix


def size_log_p0(law: MoleculeLaw, states: list[str]) -> np.ndarray:
    """Return log p0 up to a constant, shape (n,)."""
    return np.array([law.log_p0(read_molecule(state).molecule) for state in states])


def tried_add(vocabulary: Vocabulary, low: str, high: str) -> float:
    """Return Σ_f w_f |A_f| / n: every arm of the right elements at every atom, products compared as SMILES."""
    graph = read_molecule(low)
    added = _elements(read_molecule(high).molecule) - _elements(graph.molecule)
    shares = []
    for arm in vocabulary:
        if _elements(arm.molecule) != added:
            continue
        products = [attach(graph, atom, read_arm(arm.smiles)) for atom in graph.rooms]
        hits = sum(product is not None and product.smiles == high for product in products)
        shares.append(vocabulary.weights[arm.smiles] * hits)
    return math.fsum(shares) / len(graph.rooms)


def _elements(molecule: Chem.Mol) -> Counter[int]:
    return Counter(atom.GetAtomicNum() for atom in molecule.GetAtoms())


def tried_delete(vocabulary: Vocabulary, high: str, low: str) -> float:
    """Return |D| / 2m: every directed cut, kept sides compared as SMILES."""
    graph = read_molecule(high)
    pieces = [graph.pieces(cut) for cut in graph.cuts]
    return sum(each.kept == low and each.arm in vocabulary for each in pieces) / len(pieces)


def written_out_law(space: SmallSpace, state: str) -> dict[str, float]:
    """Return q(.|state) apart from the package's graphs: every hydrogen is an atom of its own, moved by hand.

    Molecules are compared as SMILES that RDKit has read back. The vocabulary is merged here a second time.
    """
    total = sum(weight for _, weight in space.arms)
    merged = Counter()
    for arm, weight in space.arms:
        merged[Chem.CanonSmiles(arm)] += weight / total
    law = space.law()
    full = Chem.AddHs(Chem.MolFromSmiles(state))
    heavy = [atom for atom in full.GetAtoms() if atom.GetAtomicNum() > 1]
    rooms = [atom.GetIdx() for atom in heavy if any(near.GetAtomicNum() == 1 for near in atom.GetNeighbors())]
    bonds = [bond for bond in full.GetBonds() if _is_cuttable(bond)]
    found = Counter()
    for arm, weight in merged.items():
        for room in rooms:
            found[_grown(full, room, arm, law, state)] += space.add * weight / len(rooms)
    for bond in bonds:
        ends = (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
        for keep, drop in (ends, ends[::-1]):
            kept, arm = _parted(full, keep, drop)
            reached = kept if arm in merged and _is_inside(kept, law) else state
            found[reached] += (1 - space.add) / (2 * len(bonds))
    found[state] += (0 if rooms else space.add) + (0 if bonds else 1 - space.add)
    return dict(found)


def _is_cuttable(bond: Chem.Bond) -> bool:
    ends = (bond.GetBeginAtom(), bond.GetEndAtom())
    return (
        bond.GetBondType() == Chem.BondType.SINGLE
        and not bond.IsInRing()
        and all(atom.GetAtomicNum() > 1 for atom in ends)
        and not all(atom.GetFormalCharge() for atom in ends)
    )


def _is_inside(state: str | None, law: MoleculeLaw) -> bool:
    return state is not None and np.isfinite(law.log_p0(Chem.MolFromSmiles(state)))


def _grown(full: Chem.Mol, room: int, arm: str, law: MoleculeLaw, state: str) -> str:
    arm_full = Chem.AddHs(Chem.MolFromSmiles(arm))
    both = Chem.RWMol(Chem.CombineMols(full, arm_full))
    dummy = next(atom for atom in both.GetAtoms() if atom.GetAtomicNum() == 0)
    end = dummy.GetNeighbors()[0]
    hydrogen = next(near for near in both.GetAtomWithIdx(room).GetNeighbors() if near.GetAtomicNum() == 1)
    if end.GetFormalCharge() and both.GetAtomWithIdx(room).GetFormalCharge():
        return state
    both.AddBond(room, end.GetIdx(), Chem.BondType.SINGLE)
    for place in sorted((dummy.GetIdx(), hydrogen.GetIdx()), reverse=True):
        both.RemoveAtom(place)
    product = _read_back(both)
    return product if _is_inside(product, law) else state


def _parted(full: Chem.Mol, keep: int, drop: int) -> tuple[str, str]:
    both = Chem.RWMol(full)
    both.RemoveBond(keep, drop)
    both.AddBond(keep, both.AddAtom(Chem.Atom(1)), Chem.BondType.SINGLE)
    both.AddBond(drop, both.AddAtom(Chem.Atom(0)), Chem.BondType.SINGLE)
    one, other = (_read_back(part) for part in Chem.GetMolFrags(both, asMols=True, sanitizeFrags=False))
    return (other, one) if "*" in one else (one, other)


def _read_back(molecule: Chem.Mol) -> str:
    Chem.SanitizeMol(molecule)
    smiles = Chem.MolToSmiles(Chem.RemoveHs(molecule))
    return str(Chem.MolToSmiles(Chem.MolFromSmiles(smiles), isomericSmiles=False))
