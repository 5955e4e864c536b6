"""Cutting a molecule in two at a single bond outside rings. Hydrogens are counted explicitly on the atoms touched."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rdkit import Chem

from sampler.spaces.molecules.plain import write

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


def pieces(molecule: Chem.Mol, cut: Cut) -> Pieces:
    """Return what a cut makes."""
    both = copy(molecule)
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


def keep(molecule: Chem.Mol, cut: Cut, dropped: Sequence[int]) -> Chem.RWMol:
    """Return what a cut keeps, as it is left; the order of its atoms stays.

    Args:
        dropped: the atoms that the cut drops.
    """
    left = copy(molecule)
    set_hydrogens(left.GetAtomWithIdx(cut.keep), 1)
    left.BeginBatchEdit()
    for atom in dropped:
        left.RemoveAtom(atom)
    left.CommitBatchEdit()
    left.UpdatePropertyCache(strict=False)
    return left


def copy(molecule: Chem.Mol) -> Chem.RWMol:
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
