"""How varied a set of molecules is: a metric of the whole set, none of single molecules.

Fingerprints are Morgan's of radius 3, 2048 bits (Rogers and Hahn, J. Chem. Inf. Model. 50, 2010), also called ECFP6:
those of MARS (Xie et al., ICLR 2021), so that its published diversity can be compared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from rdkit import Chem, DataStructs, rdBase
from rdkit.Chem import rdFingerprintGenerator

_MORGAN = rdFingerprintGenerator.GetMorganGenerator(radius=3, fpSize=2048)


def diversity(smiles: Sequence[str]) -> float:
    """Return 1 minus the mean Tanimoto similarity of all pairs, from 0 (all alike) to 1.

    Pairs are of different places in the list, as in MARS (Xie et al., ICLR 2021); a molecule listed twice
    makes a pair of similarity 1. One row of similarities is kept at a time, so memory grows with the length of the
    list and time with its square.

    Raises:
        ValueError: fewer than two molecules, or one that is none.
    """
    if len(smiles) < 2:
        raise ValueError("diversity needs at least two molecules")
    prints = [_fingerprint(each) for each in smiles]
    rows = (math.fsum(DataStructs.BulkTanimotoSimilarity(prints[i], prints[:i])) for i in range(1, len(prints)))
    return 1 - math.fsum(rows) / math.comb(len(prints), 2)


def _fingerprint(smiles: str) -> DataStructs.ExplicitBitVect:
    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(smiles)
    if molecule is None:
        raise ValueError(f"“{smiles[:60]}” is not a molecule")
    found: DataStructs.ExplicitBitVect = _MORGAN.GetFingerprint(molecule)
    return found
