"""Molecules: a CSV with a column `smiles`, and `weight` if wanted. Near means similar Morgan fingerprints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import rdFingerprintGenerator

from sampler.objects.characters import quoted
from sampler.objects.items import Item, Progress, Reading, read_table
from sampler.objects.nearness import symmetric

MAX_SMILES_CHARACTERS = 1_000
MAX_HEAVY_ATOMS = 150


class Molecules:
    """Molecules as canonical SMILES."""

    name = "molecules"
    accepts = ".csv,text/csv"

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read a CSV of SMILES; each is parsed, sanitised and made canonical by RDKit."""
        return read_table(file, "smiles", canonical_smiles, progress)

    def written(self, text: str) -> str:
        """Return the canonical SMILES."""
        return canonical_smiles(text.strip())

    def neighbours(self, items: Sequence[Item], count: int) -> tuple[tuple[int, ...], ...]:
        """Link each molecule to its nearest by Tanimoto similarity of Morgan fingerprints (radius 2, 2048 bits)."""
        morgan = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
        prints = [morgan.GetFingerprint(Chem.MolFromSmiles(item.content)) for item in items]
        count = min(count, len(items) - 1)
        ranked = []
        for place, fingerprint in enumerate(prints):
            similarity = np.asarray(DataStructs.BulkTanimotoSimilarity(fingerprint, prints))
            similarity[place] = -1.0
            ranked.append(np.argpartition(-similarity, count - 1)[:count])
        return symmetric(np.asarray(ranked), count)


def canonical_smiles(smiles: str) -> str:
    """Return RDKit's canonical form.

    Raises:
        ValueError: not a molecule RDKit accepts, or too large; the message gives the reason.
    """
    if not smiles:
        raise ValueError("the SMILES is empty")
    if len(smiles) > MAX_SMILES_CHARACTERS:
        raise ValueError(f"the SMILES has {len(smiles):,} characters; at most {MAX_SMILES_CHARACTERS:,} are allowed")
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        if molecule is None:
            raise ValueError(f"{quoted(smiles)} is not a SMILES")
        try:
            Chem.SanitizeMol(molecule)
        except Chem.MolSanitizeException as error:
            raise ValueError(f"{quoted(smiles)} is no molecule: {error}") from error
        if not 1 <= molecule.GetNumHeavyAtoms() <= MAX_HEAVY_ATOMS:
            raise ValueError(
                f"the molecule has {molecule.GetNumHeavyAtoms()} heavy atoms; 1 to {MAX_HEAVY_ATOMS} are allowed"
            )
        # A second parse runs the stereochemistry perception that sanitising alone leaves out.
        return str(Chem.MolToSmiles(Chem.MolFromSmiles(smiles)))
