"""Numbers of an object that a score can be made of, quick to compute and the same on every machine.

Nothing here is learned: words and fragments are counted in a few bins by a fixed hash, so there is no basis to fit, to
freeze, or to keep apart for each chain. Records hold scores of these numbers: never change them, but add another
`VERSION` beside this one.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

VERSION = 1
BINS = 16
_KEPT = 10_000
Features = tuple[float, ...]
_WORD, _MARK = re.compile(r"\w+"), re.compile(r"[^\w\s]")
_RADIUS = 2


def has_features(objects: str) -> bool:
    """True for the kinds of object that have features: texts, Markdown and molecules."""
    return objects in ("texts", "markdown", "molecules")


@cache
def features_of(objects: str) -> Callable[[str], Features]:
    """Return the function from an object's content to its features, for one of the kinds that have them.

    Raises:
        ValueError: another kind.
    """
    if not has_features(objects):
        raise ValueError(f"{objects} have no features")
    return lru_cache(maxsize=_KEPT)(_of_molecule if objects == "molecules" else _of_text)


def _of_text(content: str) -> Features:
    words = _WORD.findall(content.casefold())
    bins = [0.0] * BINS
    for word in words:
        _count(bins, zlib.crc32(word.encode()), 1)
    counts = (len(words), len(_MARK.findall(content)), len(content))
    shares = (len(set(words)), sum(map(len, words)))
    return (*map(float, counts), *(share / max(len(words), 1) for share in shares), *bins)


def _of_molecule(content: str) -> Features:
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdMolDescriptors

    with rdBase.BlockLogs():
        molecule = Chem.MolFromSmiles(content)
    if molecule is None:
        raise ValueError(f"“{content}” is no molecule that RDKit accepts")
    counts = (
        molecule.GetNumHeavyAtoms(),
        rdMolDescriptors.CalcNumRings(molecule),
        rdMolDescriptors.CalcNumAromaticRings(molecule),
        rdMolDescriptors.CalcNumHeteroatoms(molecule),
        rdMolDescriptors.CalcNumHBD(molecule),
        rdMolDescriptors.CalcNumHBA(molecule),
    )
    bins = [0.0] * BINS
    for fragment, times in _fragments().GetSparseCountFingerprint(molecule).GetNonzeroElements().items():
        _count(bins, zlib.crc32(fragment.to_bytes(8, "little")), times)
    return (*map(float, counts), *bins)


@cache
def _fragments() -> Any:
    from rdkit.Chem import rdFingerprintGenerator

    return rdFingerprintGenerator.GetMorganGenerator(radius=_RADIUS)


def _count(bins: list[float], key: int, times: int) -> None:
    """Add to the bin of a hash, with the sign of another of its bits, so that what shares a bin cancels on average."""
    bins[key % BINS] += times if key & 0x80000000 else -times
