"""What can be read off a SMILES as text: its atoms, their elements, and the branch that a bond outside rings leads to.

A SMILES names the atoms of a molecule in the order of a walk from its first atom. What a bond outside rings leads to is
named in one piece, and no ring closes across its ends. So both sides of such a bond stand in the text: the branch, and
the rest with a dummy in its place. Hydrogens need no care, as each side keeps the single bond of that atom.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice

from rdkit import Chem

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
