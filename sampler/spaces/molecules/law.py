"""The base law p0 on molecules that are generated: one fixed, stated law.

    p0(x) ∝ exp(w[n(x)]) if x passes every filter, else 0

n(x) is the number of heavy atoms, w the log-weight of that size. Among the molecules of one size p0 is uniform. The
number of molecules grows by a factor of hundreds with each arm, so that w must fall steeply: with w constant a chain
runs into the largest size and stays there. The default weights were found by `pilot.py` and are frozen.
Filters are part of the target: a molecule that fails one has probability 0, and a chain never visits it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Literal

from rdkit import Chem
from rdkit.Chem import FilterCatalog

MAX_HEAVY_ATOMS = 40
AlertName = Literal["PAINS", "BRENK", "NIH", "ZINC"]
_SIZES_FILE = "size_weights.tsv"
_MOST_CORE_ATOMS = 30
# An element alone or in brackets, a bond, a branch, or the digits that close a ring.
_CORE = re.compile(r"(?:\[(?:[A-Z][a-z]?|[bcnops]|as|se|#\d{1,3})\]|Cl|Br|[BCNOPSFI]|[bcnops]|[-=#:~()]|\d|%\d\d)+")
_IN_BRACKETS = re.compile(r"\[([A-Z][a-z]?)\]")


@dataclass(frozen=True)
class MoleculeLaw:
    """p0 up to a constant.

    Args:
        size_log_weights: w for 1, 2, ... heavy atoms; as many as the largest molecule may have. Minus infinity
            forbids a size.
        elements: symbols of the elements allowed; None allows all.
        ring_sizes: sizes allowed of the smallest rings (SSSR); None allows all.
        alerts: RDKit filter catalogs of which no entry may match.
        core: SMARTS that must match; empty for none.

    Raises:
        ValueError: no size has weight, one is NaN or plus infinity, or an element or a catalog is unknown.
    """

    size_log_weights: tuple[float, ...]
    elements: frozenset[str] | None = None
    ring_sizes: frozenset[int] | None = None
    alerts: tuple[AlertName, ...] = ()
    core: str = ""

    def __post_init__(self) -> None:
        weights = self.size_log_weights
        if any(math.isnan(weight) or weight == math.inf for weight in weights):
            raise ValueError("size_log_weights must be numbers below infinity")
        if not any(math.isfinite(weight) for weight in weights):
            raise ValueError("size_log_weights must give at least one size a finite weight")
        known = _elements()
        if self.elements is not None and not self.elements <= known:
            raise ValueError(f"elements must be symbols of elements, not {sorted(self.elements - known)}")
        unknown = [name for name in self.alerts if name not in FilterCatalog.FilterCatalogParams.FilterCatalogs.names]
        if unknown:
            raise ValueError(f"alerts must be catalogs of RDKit, not {unknown}")

    @property
    def largest(self) -> int:
        """The largest number of heavy atoms a molecule may have."""
        return len(self.size_log_weights)

    @property
    def is_by_size(self) -> bool:
        """True where p0 looks at nothing but the size: there is no filter."""
        return self.elements is None and self.ring_sizes is None and not self.alerts and not self.core

    def log_p0(self, molecule: Chem.Mol) -> float:
        """Return log p0 of a sanitised molecule without explicit hydrogens, up to a constant; -inf outside."""
        size = molecule.GetNumAtoms()
        if not 1 <= size <= self.largest or not self._passes(molecule):
            return -math.inf
        return self.size_log_weights[size - 1]

    def _passes(self, molecule: Chem.Mol) -> bool:
        if self.elements is not None and any(atom.GetSymbol() not in self.elements for atom in molecule.GetAtoms()):
            return False
        if self.ring_sizes is not None:
            rings = molecule.GetRingInfo().AtomRings()
            if any(len(ring) not in self.ring_sizes for ring in rings):
                return False
        if self._core is not None and not molecule.HasSubstructMatch(self._core):
            return False
        return self._catalog is None or not self._catalog.HasMatch(molecule)

    @cached_property
    def _core(self) -> Chem.Mol | None:
        return Chem.MolFromSmarts(self.core) if self.core else None

    @cached_property
    def _catalog(self) -> FilterCatalog.FilterCatalog | None:
        return alert_catalog(*self.alerts) if self.alerts else None


def _elements() -> set[str]:
    table = Chem.GetPeriodicTable()
    return {table.GetElementSymbol(number) for number in range(1, 119)}


def core_problem(core: str) -> str:
    """Return why a pattern cannot be a core; empty where it can.

    A core is kept or cut off as a whole, so that what the moves reach stays connected: it names atoms and bonds and
    nothing that a move elsewhere in the molecule could change, such as how many neighbours or hydrogens an atom has.
    """
    if not _CORE.fullmatch(core) or not set(_IN_BRACKETS.findall(core)) <= _elements() - {"H"}:
        return (
            "must be a SMARTS of elements, aromatic elements, bonds, branches and ring closures, like c1ccccc1C(=O)N. "
            "It may not have dots, degrees, hydrogens, charges, ring counts, alternatives, negation or recursion"
        )
    # RDKit's types do not say that it returns None for what it cannot read.
    pattern: Chem.Mol | None = Chem.MolFromSmarts(core)
    if not pattern:
        return f"“{core[:60]}” cannot be read as SMARTS"
    if pattern.GetNumAtoms() > _MOST_CORE_ATOMS:
        return f"must have at most {_MOST_CORE_ATOMS} atoms, not {pattern.GetNumAtoms()}"
    return ""


def alert_catalog(*names: str) -> FilterCatalog.FilterCatalog:
    """Return RDKit's structural alerts of these catalogs in one."""
    chosen = FilterCatalog.FilterCatalogParams()
    for name in names:
        chosen.AddCatalog(FilterCatalog.FilterCatalogParams.FilterCatalogs.names[name])
    return FilterCatalog.FilterCatalog(chosen)


def default_size_log_weights() -> tuple[float, ...]:
    """Return the frozen log-weights of 1 to 40 heavy atoms; the file says how they were found."""
    text = resources.files("sampler").joinpath("data", _SIZES_FILE).read_text(encoding="utf-8")
    return parse_size_log_weights(text)


def parse_size_log_weights(text: str) -> tuple[float, ...]:
    """Return the log-weights that a file lists: lines of heavy atoms, a tab, log-weight; # starts a comment.

    Raises:
        ValueError: the sizes are not 1, 2, ... in order, or a weight is no number.
    """
    rows = [line.split("\t") for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if any(len(row) != 2 for row in rows) or [row[0] for row in rows] != [str(n + 1) for n in range(len(rows))]:
        raise ValueError("a file of size weights must list 1, 2, ... heavy atoms, each with its log-weight")
    return tuple(float(weight) for _, weight in rows)
