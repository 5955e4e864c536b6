"""Molecules drawn as SVG, one alone or two in a common orientation; colours for light and for dark ground."""

from __future__ import annotations

import json
from dataclasses import dataclass

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
_MCS_SECONDS = 1
# Of a common part that fits in several ways, so many are compared.
_WAYS = 64


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
    drawn = dict(zip((large, small), _draw_in_order(small, large, marked, dark, width, height), strict=True))
    return drawn[one], drawn[other]


def _draw_in_order(small: str, large: str, marked: bool, dark: bool, width: int, height: int) -> list[str]:
    here, there = _read(small), _read(large)
    common = _common_part(here, there)
    rdDepictor.Compute2DCoords(there)
    if common:
        rdDepictor.GenerateDepictionMatching2DStructure(here, there, [(b, a) for a, b in common.items()])
    changed = [_changed(there, here, {b: a for a, b in common.items()}), _changed(here, there, common)]
    return [
        _draw(molecule, marks if marked else _Changed([], []), width, height, dark)
        for molecule, marks in zip((there, here), changed, strict=True)
    ]


def _read(smiles: str) -> Chem.Mol:
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"“{smiles[:60]}” is not a molecule")
    return molecule


def _by_size(smiles: str) -> tuple[int, str]:
    return _read(smiles).GetNumAtoms(), smiles


def _common_part(small: Chem.Mol, large: Chem.Mol) -> dict[int, int]:
    """Return, for atoms of `small`, the atom of `large` that is the same; empty if they have nothing in common."""
    query = small if large.HasSubstructMatch(small) else _common_substructure(small, large)
    if query is None:
        return {}
    here = small.GetSubstructMatch(query)
    ways = large.GetSubstructMatches(query, uniquify=True, maxMatches=_WAYS)
    return min((dict(zip(here, there, strict=True)) for there in ways), key=lambda common: _seam(large, common))


def _common_substructure(small: Chem.Mol, large: Chem.Mol) -> Chem.Mol | None:
    found = rdFMCS.FindMCS(
        [small, large],
        timeout=_MCS_SECONDS,
        bondCompare=rdFMCS.BondCompare.CompareOrderExact,
        ringMatchesRingOnly=True,
        completeRingsOnly=True,
    )
    return Chem.MolFromSmarts(found.smartsString) if found.numAtoms else None


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
