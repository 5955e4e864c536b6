"""The demo's molecules, and a simulated chemist who prefers the drug-like ones."""

from __future__ import annotations

import csv
import io

from rdkit import Chem
from rdkit.Chem import QED

from prefmh_web.demo.catalogs.molecule_list import MOLECULES


def write() -> bytes:
    """Return the catalog as CSV: smiles, name. The name is for people; the reader passes it over."""
    table = io.StringIO(newline="")
    rows = csv.writer(table)
    rows.writerow(("smiles", "name"))
    rows.writerows((smiles, name) for name, smiles in MOLECULES.items())
    return table.getvalue().encode()


def drug_likeness(smiles: str) -> float:
    """Return the quantitative estimate of drug-likeness (QED, 0 to 1), stretched to about -2..2.

    Raises:
        ValueError: not a molecule.
    """
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"“{smiles[:60]}” is not a molecule")
    return 5 * (float(QED.qed(molecule)) - 0.6)
