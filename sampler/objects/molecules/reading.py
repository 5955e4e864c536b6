"""Molecules: a CSV with a column `smiles`, and `weight` if wanted. Near means similar Morgan fingerprints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import BinaryIO

import numpy as np
from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import rdFingerprintGenerator

from sampler.objects.characters import quoted
from sampler.objects.items import Item, Progress, Reading, read_table
from sampler.objects.molecules.drawing import draw_molecule
from sampler.objects.nearness import symmetric

MAX_SMILES_CHARACTERS = 1_000
MAX_ATOMS = 150
# SMILES that are their own canonical form after so many rounds; RDKit needs more than one for a few charged rings.
_ROUNDS = 4
_CXSMILES = re.compile(r"\s\|")


class Molecules:
    """Molecules as canonical SMILES."""

    name = "molecules"

    def read(self, file: BinaryIO, progress: Progress, pictures: BinaryIO | None = None) -> Reading:
        """Read a CSV of SMILES; each is parsed, sanitised and made canonical by RDKit, read again and drawn."""
        return read_table(file, "smiles", canonical_smiles, progress)

    def written(self, text: str) -> str:
        """Return the canonical SMILES."""
        return canonical_smiles(text)

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


def canonical_smiles(smiles: str, *, is_drawn: bool = True) -> str:
    """Return RDKit's canonical form, which has been read again and, unless told otherwise, drawn.

    Raises:
        ValueError: not a molecule RDKit accepts, too large, or one that could not be kept or shown as it is meant; the
            message gives the reason.
    """
    smiles = smiles.strip()
    if not smiles:
        raise ValueError("the SMILES is empty")
    if len(smiles) > MAX_SMILES_CHARACTERS:
        raise ValueError(f"the SMILES has {len(smiles):,} characters; at most {MAX_SMILES_CHARACTERS:,} are allowed")
    if _CXSMILES.search(smiles):
        raise ValueError(f"{quoted(smiles)} has CXSMILES between bars, which is not kept; write a SMILES without it")
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles, sanitize=False)
        if molecule is None:
            raise ValueError(f"{quoted(smiles)} is not a SMILES")
        try:
            Chem.SanitizeMol(molecule)
        except Chem.MolSanitizeException as error:
            raise ValueError(f"{quoted(smiles)} is no molecule: {error}") from error
        if not molecule.GetNumHeavyAtoms():
            raise ValueError("the molecule has 0 heavy atoms; it needs at least 1")
        return _as_kept(smiles, is_drawn)


def _as_kept(smiles: str, is_drawn: bool) -> str:
    for _ in range(_ROUNDS):
        # Each parse runs the stereochemistry perception that sanitising alone leaves out.
        molecule = Chem.MolFromSmiles(smiles)
        if molecule is None:
            raise ValueError(f"RDKit writes the molecule as {quoted(smiles)} and cannot read that again; leave it out")
        if molecule.GetNumAtoms() > MAX_ATOMS:
            raise ValueError(
                f"the molecule has {molecule.GetNumAtoms()} atoms to draw; at most {MAX_ATOMS} are allowed"
            )
        if any(atom.GetChiralTag() >= Chem.ChiralType.CHI_OTHER for atom in molecule.GetAtoms()):
            raise ValueError(f"{quoted(smiles)} has stereochemistry that no drawing shows; write it without")
        before, smiles = smiles, str(Chem.MolToSmiles(molecule))
        if smiles == before:
            try:
                if is_drawn:
                    draw_molecule(smiles)
            except (RuntimeError, ValueError) as error:
                raise ValueError(f"{quoted(smiles)} cannot be drawn: {error}") from error
            return smiles
    raise ValueError(f"{quoted(smiles)} has no stable canonical form")
