"""What a set of molecules is measured by: QED, ease of synthesis and diversity (L1559-1568)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from sampler.objects.molecules.diversity import diversity
from sampler.objects.molecules.measures import rate_molecule

_REMEMBERED = 1 << 16


def measures_of(smiles: Sequence[str]) -> dict[str, float]:
    """Return mean QED, mean (10 - SA)/9 and the diversity of a set; of one molecule, no diversity; of none, nothing.

    Raises:
        ValueError: one of them is no molecule.
    """
    if not smiles:
        return {}
    described = np.array([_described(each) for each in smiles])
    found = {"qed": float(described[:, 0].mean()), "sa": float(((10 - described[:, 1]) / 9).mean())}
    return {**found, "diversity": diversity(smiles)} if len(smiles) > 1 else found


@lru_cache(maxsize=_REMEMBERED)
def _described(smiles: str) -> tuple[float, float]:
    return rate_molecule(smiles)
