"""What stands on either side of a bond that is in no ring, without a walk through the molecule for each bond.

The atoms of a molecule are hung up by atom 0: each hangs from its lowest neighbour. That takes no search, because in
a molecule numbered as a SMILES names its atoms each atom but the first has a neighbour that was named before it. And
it suffices: let a and b be bonded outside rings, a < b. Every atom of b's side but b has all its neighbours there, so
it hangs from b in one step or several, and nothing else does. What b's side weighs is what hangs from b.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit import Chem

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
