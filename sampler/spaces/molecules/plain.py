"""Molecules that RDKit's clean-up leaves alone, and the sanitising that those can do without.

RDKit cleans up what it reads: it writes some groups in another way once they have grown, such as C=P(=O)C with
one more arm as [P+][O-]. What was cut from such a product would be another molecule than the one that grew. So a move
exists only if it can be undone: attaching must make what the cut has parted, and the cut must part what attaching has
joined (`MoleculeGraph.undoes`). Both are tried on every molecule that is not `is_plain`.

With one that is plain, sanitising has nothing to do at all where the parts are known to be states and arms: an atom
whose hydrogen gives way to an arm keeps its valence and its part in aromatic rings, and the rings stay what they were.
So plain molecules are neither sanitised again when they are read, nor when they grow or shrink. Only filters that look
at more than the size ask for it (`MoleculeGraph.sanitise`). Nor has any state stereochemistry for RDKit to look for.
"""

from __future__ import annotations

from rdkit import Chem

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
