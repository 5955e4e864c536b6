"""Molecules drawn as SVG, one alone or two in a common orientation; colours for light and for dark ground."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rdkit import Chem, rdBase
from rdkit.Chem import rdDepictor, rdFMCS
from rdkit.Chem.Draw import rdMolDraw2D

# A drawing made for a desktop is shown at two fifths of its size on a phone: lines and letters are wide enough for it.
_DRAWING = json.dumps(
    {
        "clearBackground": False,
        "padding": 0.04,
        "fixedBondLength": 40,
        "bondLineWidth": 2.6,
        "baseFontSize": 0.7,
        "minFontSize": 16,
        "maxFontSize": 32,
        "additionalAtomLabelPadding": 0.06,
    }
)
# Instead of RDKit's where those are too faint, by atomic number, for light and for dark ground.
_COLOURS: dict[bool, dict[int, tuple[float, float, float]]] = {
    False: {9: (0.0, 0.45, 0.45), 15: (0.65, 0.35, 0.0), 16: (0.5, 0.42, 0.0), 17: (0.0, 0.45, 0.1)},
    True: {7: (0.55, 0.65, 1.0), 8: (1.0, 0.42, 0.42), 35: (0.9, 0.55, 0.25), 53: (0.8, 0.55, 1.0)},
}
# Amber, and a brown of the same hue: labels of every element stay legible on it.
_MARK = {False: (1.0, 0.85, 0.4), True: (0.45, 0.33, 0.05)}
# Of a common part that fits in several ways, so many are compared.
_WAYS = 64
# What the search for a common part may take: counted, not timed, so that every machine draws alike. Looking for the
# smaller molecule in the larger one, so many pairs of atoms are compared. The common substructure is looked for from so
# many beginnings, in molecules of at most so many atoms, of bonds beyond those of a chain, and of ends at one atom that
# could change places, such as the fluorines of CF3: each way around a ring and each order of ends is tried. Molecules
# beyond that are drawn each by itself.
_MOST_COMPARED = 20_000
_MOST_BEGINNINGS = 2_000
_MOST_ATOMS, _MOST_BONDS_MORE, _MOST_EQUAL_ENDS = 60, 8, 12


@dataclass(frozen=True)
class _Changed:
    """The atoms and bonds of a molecule that are not in the common part."""

    atoms: list[int]
    bonds: list[int]


def draw_molecule(smiles: str, width: int = 420, height: int = 320, *, dark: bool = False) -> str:
    """Return the molecule drawn as SVG, text as paths, on a transparent ground.

    Args:
        smiles: the molecule.
        width, height: pixels.
        dark: colours for a dark ground.

    Raises:
        ValueError: not a molecule.
    """
    return _draw(_read(smiles), _Changed([], []), width, height, dark)


def molecule_png(smiles: str, width: int = 420, height: int = 320) -> bytes:
    """Return the molecule drawn as PNG on white, for those who see pixels only.

    Raises:
        ValueError: not a molecule.
    """
    drawing = rdMolDraw2D.MolDraw2DCairo(width, height)
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, _read(smiles))
    drawing.FinishDrawing()
    return bytes(drawing.GetDrawingText())


def draw_pair(
    one: str, other: str, *, marked: bool = False, dark: bool = False, width: int = 420, height: int = 320
) -> tuple[str, str]:
    """Return two molecules drawn as by `draw_molecule`, what they have in common in the same orientation.

    Swapping the molecules swaps the drawings and changes nothing else: which of them is the proposal does not show.
    The common part is the smaller molecule where the larger contains it, else the maximum common substructure, whole
    rings only.

    Args:
        one, other: SMILES.
        marked: highlight what is not in the common part.
        dark: colours for a dark ground.
        width, height: of each drawing, pixels.

    Raises:
        ValueError: either is not a molecule.
    """
    small, large = sorted((one, other), key=_by_size)
    drawn = {
        smiles: _draw(molecule, changed if marked else _Changed([], []), width, height, dark)
        for smiles, (molecule, changed) in zip((large, small), _laid_out(small, large), strict=True)
    }
    return drawn[one], drawn[other]


@lru_cache(maxsize=256)
def _laid_out(small: str, large: str) -> tuple[tuple[Chem.Mol, _Changed], ...]:
    """Return the larger molecule and the smaller one with places for their atoms, the common part alike, and what is
    not in it: once for all drawings of a pair.
    """
    here, there = _read(small), _read(large)
    common = _common_part(here, there)
    rdDepictor.Compute2DCoords(there)
    if common:
        rdDepictor.GenerateDepictionMatching2DStructure(here, there, [(b, a) for a, b in common.items()])
    if not common or not _is_drawn_true(here):
        # What is laid out like an E form looks like one.
        rdDepictor.Compute2DCoords(here)
    return (there, _changed(there, here, {b: a for a, b in common.items()})), (here, _changed(here, there, common))


def _is_drawn_true(molecule: Chem.Mol) -> bool:
    """True where what can be read off the drawing is the same molecule; asked of double bonds with stereochemistry."""
    if not any(bond.GetStereo() > Chem.BondStereo.STEREOANY for bond in molecule.GetBonds()):
        return True
    with rdBase.BlockLogs():
        read = Chem.MolFromMolBlock(Chem.MolToMolBlock(molecule))
    return read is not None and Chem.MolToSmiles(read) == Chem.MolToSmiles(molecule)


def _read(smiles: str) -> Chem.Mol:
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"“{smiles[:60]}” is not a molecule")
    # A double bond of which nobody has said whether it is E or Z is drawn crossed.
    Chem.FindPotentialStereoBonds(molecule)
    return molecule


def _by_size(smiles: str) -> tuple[int, str]:
    return _read(smiles).GetNumAtoms(), smiles


def _common_part(small: Chem.Mol, large: Chem.Mol) -> dict[int, int]:
    """Return, for atoms of `small`, the atom of `large` that is the same; empty if they have nothing in common."""
    ways, query = _matches(large, small), small
    if not ways:
        query = _common_substructure(small, large)
        ways = _matches(large, query)
    here = _matches(small, query, most=1)
    if not ways or not here:
        return {}
    return min((dict(zip(here[0], there, strict=True)) for there in ways), key=lambda common: _seam(large, common))


def _matches(molecule: Chem.Mol, query: Chem.Mol, most: int = _WAYS) -> Sequence[Sequence[int]]:
    """Return how the query fits into the molecule; not every way where looking on would take too long."""
    left = itertools.repeat(True, _MOST_COMPARED)
    search = Chem.SubstructMatchParameters()
    search.maxMatches = most  # type: ignore[assignment]  # RDKit's stubs take it for the parameters
    search.setExtraAtomCheckFunc(lambda one, other: next(left, False))
    found: Sequence[Sequence[int]] = molecule.GetSubstructMatches(query, search)
    return found


def _common_substructure(small: Chem.Mol, large: Chem.Mol) -> Chem.Mol:
    """Return what the two have in common; nothing where it is not looked for to the end."""
    if not (_is_searched(small) and _is_searched(large)):
        return Chem.Mol()
    search = rdFMCS.MCSParameters()
    search.BondTyper = rdFMCS.BondCompare.CompareOrderExact
    search.BondCompareParameters.RingMatchesRingOnly = True
    search.BondCompareParameters.CompleteRingsOnly = True
    search.ProgressCallback = beginnings = _Beginnings()
    found = rdFMCS.FindMCS([small, large], search)
    return Chem.MolFromSmarts(found.smartsString if beginnings.left else "")


class _Beginnings(rdFMCS.MCSProgress):
    """Ends a search after so many beginnings."""

    left = _MOST_BEGINNINGS

    def __call__(self, found: rdFMCS.MCSProgressData, search: rdFMCS.MCSParameters) -> bool:
        self.left -= 1
        return self.left > 0


def _is_searched(molecule: Chem.Mol) -> bool:
    """True where a common substructure is looked for in it."""
    atoms = molecule.GetNumAtoms()
    if atoms > _MOST_ATOMS or molecule.GetNumBonds() - atoms + 1 > _MOST_BONDS_MORE:
        return False
    ranks = list(Chem.CanonicalRankAtoms(molecule, breakTies=False))
    equal = 0
    for atom in molecule.GetAtoms():
        ends = (bond.GetOtherAtomIdx(atom.GetIdx()) for bond in atom.GetBonds() if not bond.IsInRing())
        equal += sum(count for count in Counter(ranks[end] for end in ends).values() if count > 1)
    return equal <= _MOST_EQUAL_ENDS


def _seam(molecule: Chem.Mol, common: dict[int, int]) -> int:
    """Return how many bonds join the common part to the rest: one where a single fragment was added."""
    inside = set(common.values())
    return sum((bond.GetBeginAtomIdx() in inside) != (bond.GetEndAtomIdx() in inside) for bond in molecule.GetBonds())


def _changed(molecule: Chem.Mol, other: Chem.Mol, common: dict[int, int]) -> _Changed:
    atoms = [atom.GetIdx() for atom in molecule.GetAtoms() if atom.GetIdx() not in common]
    bonds = []
    for bond in molecule.GetBonds():
        ends = (bond.GetBeginAtomIdx(), bond.GetEndAtomIdx())
        if not all(end in common for end in ends) or not other.GetBondBetweenAtoms(*(common[end] for end in ends)):
            bonds.append(bond.GetIdx())
    return _Changed(atoms, bonds)


def _draw(molecule: Chem.Mol, changed: _Changed, width: int, height: int, dark: bool) -> str:
    drawing = rdMolDraw2D.MolDraw2DSVG(width, height)
    if dark:
        rdMolDraw2D.SetDarkMode(drawing.drawOptions())
    rdMolDraw2D.UpdateDrawerParamsFromJSON(drawing, _DRAWING)
    drawing.drawOptions().updateAtomPalette(_COLOURS[dark])
    drawing.drawOptions().setHighlightColour(_MARK[dark])
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, molecule, highlightAtoms=changed.atoms, highlightBonds=changed.bonds)
    drawing.FinishDrawing()
    return str(drawing.GetDrawingText())
