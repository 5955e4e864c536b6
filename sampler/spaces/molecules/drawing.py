"""Molecules drawn as SVG."""

from __future__ import annotations

import json

from rdkit import Chem, rdBase
from rdkit.Chem.Draw import rdMolDraw2D

_DRAWING = json.dumps({"clearBackground": False, "padding": 0.08, "fixedBondLength": 32})


def draw_molecule(smiles: str, width: int = 420, height: int = 320) -> str:
    """Return the molecule drawn as SVG, text as paths, on a transparent ground.

    Raises:
        ValueError: not a molecule.
    """
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"“{smiles[:60]}” is not a molecule")
    drawing = rdMolDraw2D.MolDraw2DSVG(width, height)
    rdMolDraw2D.UpdateDrawerParamsFromJSON(drawing, _DRAWING)
    rdMolDraw2D.PrepareAndDrawMolecule(drawing, molecule)
    drawing.FinishDrawing()
    return str(drawing.GetDrawingText())
