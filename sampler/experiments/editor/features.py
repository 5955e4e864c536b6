"""Molecules as arrays, and many molecules as one graph without edges between them. No PyTorch here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from rdkit import Chem

from sampler.spaces.molecules.graph import read_state

Floats = npt.NDArray[np.float32]
Places = npt.NDArray[np.int64]

_ELEMENTS = (5, 6, 7, 8, 9, 14, 15, 16, 17, 35, 53)
_MOST_BONDS, _MOST_HYDROGENS = 4, 4
_CHARGES = (-1, 0, 1)
_BONDS = (Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE, Chem.BondType.AROMATIC)
_REMEMBERED = 20_000

# One-hot: element or another, bonds 0 to 4, hydrogens 0 to 4, charge or another; and two flags: in a ring, aromatic.
ATOM_NUMBERS = len(_ELEMENTS) + 1 + _MOST_BONDS + 1 + _MOST_HYDROGENS + 1 + len(_CHARGES) + 1 + 2
# The type of a bond or another, in a ring or not.
BOND_KINDS = 2 * (len(_BONDS) + 1)


@dataclass(frozen=True)
class Features:
    """One molecule, or several put together. n atoms, b directed edges, d directed cuts.

    Args:
        atoms: shape (n, ATOM_NUMBERS).
        edges: atoms at the start and at the end of each edge, shape (2, b); each bond is two.
        kinds: of each edge, shape (b,), from 0 to BOND_KINDS - 1.
        rooms: the atoms with a hydrogen, ascending.
        cuts: atoms that each cut keeps and drops, shape (2, d), in the order of `MoleculeGraph.directed`.
    """

    atoms: Floats
    edges: Places
    kinds: Places
    rooms: Places
    cuts: Places


@dataclass(frozen=True)
class Batch:
    """Several molecules as one, with the first atom and the first cut of each, and one past the last."""

    whole: Features
    first_atoms: Places
    first_cuts: Places


@lru_cache(maxsize=_REMEMBERED)
def features_of(state: str) -> Features:
    """Return a state as arrays; atoms stand in the order in which the SMILES names them."""
    graph = read_state(state)
    molecule = graph.molecule
    bonds = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), _kind(bond)) for bond in molecule.GetBonds()]
    both = [*bonds, *((other, one, kind) for one, other, kind in bonds)]
    return Features(
        np.array([_numbers(atom) for atom in molecule.GetAtoms()], dtype=np.float32),
        _pairs([(one, other) for one, other, _ in both]),
        np.array([kind for _, _, kind in both], dtype=np.int64),
        np.array(graph.rooms, dtype=np.int64),
        _pairs(graph.directed),
    )


def size_of(state: str) -> int:
    """Return the number of heavy atoms."""
    return len(features_of(state).atoms)


def batch_of(states: Sequence[str]) -> Batch:
    """Return several states as one graph; at least one."""
    each = [features_of(state) for state in states]
    first_atoms = _starts([len(one.atoms) for one in each])
    shifts = first_atoms[:-1]
    whole = Features(
        np.concatenate([one.atoms for one in each]),
        np.concatenate([one.edges + shift for one, shift in zip(each, shifts, strict=True)], axis=1),
        np.concatenate([one.kinds for one in each]),
        np.concatenate([one.rooms + shift for one, shift in zip(each, shifts, strict=True)]),
        np.concatenate([one.cuts + shift for one, shift in zip(each, shifts, strict=True)], axis=1),
    )
    return Batch(whole, first_atoms, _starts([one.cuts.shape[1] for one in each]))


def _starts(lengths: Sequence[int]) -> Places:
    return np.cumsum([0, *lengths], dtype=np.int64)


def _pairs(pairs: Sequence[tuple[int, int]]) -> Places:
    return np.array(pairs, dtype=np.int64).reshape(-1, 2).T


def _kind(bond: Chem.Bond) -> int:
    order = _BONDS.index(bond.GetBondType()) if bond.GetBondType() in _BONDS else len(_BONDS)
    return 2 * order + bond.IsInRing()


def _numbers(atom: Chem.Atom) -> list[float]:
    numbers: list[float] = []
    for value, known in (
        (atom.GetAtomicNum(), _ELEMENTS),
        (atom.GetFormalCharge(), _CHARGES),
    ):
        numbers += [float(value == each) for each in known] + [float(value not in known)]
    for value, most in ((atom.GetDegree(), _MOST_BONDS), (atom.GetTotalNumHs(), _MOST_HYDROGENS)):
        numbers += [float(min(value, most) == each) for each in range(most + 1)]
    return [*numbers, float(atom.IsInRing()), float(atom.GetIsAromatic())]
