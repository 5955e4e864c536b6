"""Molecules that are generated: the base distribution p0, one fixed and stated, and the space that a config names.

    p0(x) ∝ exp(w[n(x)]) if x passes every filter, else 0

n(x) is the number of heavy atoms, w the log-weight of that size. Among the molecules of one size p0 is uniform. The
number of molecules grows by a factor of hundreds with each fragment, so that w must fall steeply: with w constant a
chain runs into the largest size and stays there. The default weights were found by `python -m sampler pilot` and are
frozen. Filters are part of the target: a molecule that fails one has probability 0, and a chain never visits it.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from importlib import resources
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, ValidationInfo, field_validator
from rdkit import Chem
from rdkit.Chem import FilterCatalog

from sampler.declared import Declared, ui
from sampler.spaces.molecules.graph import canonical_state, read_molecule
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary

MAX_HEAVY_ATOMS = 40
AlertName = Literal["PAINS", "BRENK", "NIH", "ZINC"]
_SIZES_FILE = "size_weights.tsv"
_MAX_CORE_ATOMS = 30
# An element alone or in brackets, a bond, a branch, or the digits that close a ring.
_CORE = re.compile(r"(?:\[(?:[A-Z][a-z]?|[bcnops]|as|se|#\d{1,3})\]|Cl|Br|[BCNOPSFI]|[bcnops]|[-=#:~()]|\d|%\d\d)+")
_IN_BRACKETS = re.compile(r"\[([A-Z][a-z]?)\]")


@dataclass(frozen=True)
class MoleculeDistribution:
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
    if pattern.GetNumAtoms() > _MAX_CORE_ATOMS:
        return f"must have at most {_MAX_CORE_ATOMS} atoms, not {pattern.GetNumAtoms()}"
    return ""


@cache
def alert_catalog(*names: str) -> FilterCatalog.FilterCatalog:
    """Return RDKit's structural alerts of these catalogs in one. It is only read, and takes 10 ms to make."""
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
    return tuple(_log_weight(size, cell.strip()) for size, cell in rows)


def _log_weight(size: str, cell: str) -> float:
    try:
        weight = float(cell)
    except ValueError:
        weight = math.nan
    if not weight < math.inf:
        raise ValueError(f"the log-weight of {size} heavy atoms must be a number such as -1.5, not “{cell[:40]}”")
    return weight


START = "CC"
MAX_SIZES, MAX_FRAGMENTS = 100, 5_000
_DETAILS = "Which molecules there are"
_REMEMBERED_SPACES = 16

LogWeight = Annotated[float, Field(allow_inf_nan=False)]
RingSize = Annotated[int, Field(ge=3, le=MAX_SIZES)]


@dataclass(frozen=True)
class GeneratedMolecules:
    """Molecules within a distribution's support, grown by the fragments of a vocabulary. States are canonical SMILES.

    There is no drawing from p0 itself: nobody can count the molecules of each size.

    Args:
        distribution: p0.
        vocabulary: the fragments that moves add and delete.
        first: where every chain starts, as `canonical_state` returns it and inside the distribution's support.

    Raises:
        ValueError: `first` is no such state.
    """

    distribution: MoleculeDistribution
    vocabulary: Vocabulary
    first: str = START

    def __post_init__(self) -> None:
        _check_state("first", self.first, self.distribution)

    def start(self, rng: np.random.Generator, chain: int) -> str:
        """Return the same molecule for every chain; nothing is drawn."""
        return self.first

    def encode(self, state: str) -> str:
        """Return the canonical SMILES."""
        return state

    def decode(self, code: str) -> str:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: not a canonical SMILES, or a molecule outside the distribution's support.
        """
        _check_state("state", code, self.distribution)
        return code

    def is_close(self, one: str, other: str) -> bool:
        """True when the two are the same molecule."""
        return one == other

    def content(self, state: str) -> str:
        """Return the canonical SMILES."""
        return state


class MoleculesConfig(Declared):
    """The part of a config that says: molecules, this p0, these fragments. Nothing outside the package adds to it.

    Args:
        size_log_weights: log-weight in p0 of 1, 2, ... heavy atoms, null for a size that is forbidden; null instead
            of the list for the package's own (1 to 40 heavy atoms).
        elements, ring_sizes, alerts, core: filters of p0, as in `MoleculeDistribution`.
        vocabulary: "default" for the package's own fragments, or SMILES with one dummy `*` each; a fragment listed
            twice is drawn twice as often.
        start: SMILES of the molecule that every chain starts at; made canonical. It has no stereochemistry.
    """

    model_config = ConfigDict(
        title="Molecules built from fragments",
        json_schema_extra=ui(
            help="Molecules that grow and shrink from a start. Nothing to prepare. The chains sample from those that "
            "the moves reach from the start."
        ),
    )

    objects: ClassVar[str] = "molecules"
    """Which kind of object it makes."""
    kind: Literal["molecules"] = "molecules"
    size_log_weights: tuple[LogWeight | None, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_SIZES,
        title="Your own distribution of sizes",
        description="Belongs to your fragments. Create a file with: python -m sampler pilot",
        json_schema_extra=ui(fold=_DETAILS, widget="file"),
    )
    elements: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        title="Elements allowed",
        description="For example: C N O F S Cl. Leave empty to allow all elements of the fragments.",
        json_schema_extra=ui(fold=_DETAILS, widget="words"),
    )
    ring_sizes: tuple[RingSize, ...] | None = Field(default=None, json_schema_extra=ui(widget="none"))
    alerts: tuple[AlertName, ...] = Field(
        default=(),
        title="Exclude molecules with alerts from",
        description="Part of p0: such molecules have probability 0.",
        json_schema_extra=ui(fold=_DETAILS, labels={"BRENK": "Brenk"}),
    )
    core: str = Field(
        default="",
        max_length=300,
        title="Core that stays (SMARTS)",
        description="Every molecule must contain it, and so must the start molecule; p0 is 0 for all others. Name "
        "elements, bonds and aromatic atoms only, for example c1ccccc1S(=O)(=O)N.",
        json_schema_extra=ui(fold=_DETAILS),
    )
    vocabulary: Literal["default"] | tuple[str, ...] = Field(
        default="default",
        title="Your own fragments",
        description="Leave empty to use the 1,000 of prefmh. Create a file with: python -m sampler vocabulary",
        json_schema_extra=ui(fold=_DETAILS, widget="file"),
    )
    # Last, because it must fit what stands above.
    start: str = Field(default=START, validate_default=True, title="Start molecule (SMILES)")

    @property
    def distribution(self) -> MoleculeDistribution:
        """p0."""
        return _distribution(self.size_log_weights, self.elements, self.ring_sizes, self.alerts, self.core)

    def build(self) -> GeneratedMolecules:
        """Return the space; equal configs get the same one, so that no vocabulary is read twice."""
        return _build(self)

    @field_validator("size_log_weights")
    @classmethod
    def _some_size_has_weight(cls, weights: tuple[float | None, ...] | None) -> tuple[float | None, ...] | None:
        _distribution(weights, None, None, ())
        return weights

    @field_validator("elements")
    @classmethod
    def _elements_are_known(cls, elements: tuple[str, ...] | None) -> tuple[str, ...] | None:
        _distribution(None, elements, None, ())
        return elements

    @field_validator("core")
    @classmethod
    def _core_is_one(cls, core: str) -> str:
        core = core.strip()
        if core and (problem := core_problem(core)):
            raise ValueError(problem)
        return core

    # Before the union is tried, so that a bad fragment is not also reported as not being the word "default".
    @field_validator("vocabulary", mode="before")
    @classmethod
    def _fragments_can_be_read(cls, given: object) -> Literal["default"] | tuple[str, ...]:
        if given == "default":
            return "default"
        if not isinstance(given, (list, tuple)) or not all(isinstance(fragment, str) for fragment in given):
            raise ValueError('vocabulary must be "default" or a list of fragments as SMILES')
        if not 1 <= len(given) <= MAX_FRAGMENTS:
            raise ValueError(f"vocabulary must list 1 to {MAX_FRAGMENTS:,} fragments, not {len(given):,}")
        fragments = tuple(given)
        _vocabulary(fragments)
        return fragments

    @field_validator("start")
    @classmethod
    def _start_lies_inside(cls, start: str, info: ValidationInfo) -> str:
        try:
            state = canonical_state(start)
        except ValueError as error:
            raise ValueError(f"start: {error}") from error
        if _has_stereochemistry(start):
            raise ValueError(f"start has stereochemistry, which generated molecules do not have; use “{state}”")
        filters = ("size_log_weights", "elements", "ring_sizes", "alerts", "core")
        # A filter that is refused is reported itself; the start cannot be tried on it.
        if all(name in info.data for name in filters):
            _check_state("start", state, _distribution(*(info.data[name] for name in filters)))
        return state


def _has_stereochemistry(smiles: str) -> bool:
    """True where a SMILES that is a molecule says which of several stereoisomers it is; marks of none do not count."""
    molecule = read_molecule(smiles).molecule
    written = str(Chem.MolToSmiles(molecule))
    Chem.RemoveStereochemistry(molecule)
    return written != Chem.MolToSmiles(molecule) or bool(molecule.GetStereoGroups())


def _check_state(name: str, smiles: str, distribution: MoleculeDistribution) -> None:
    if canonical_state(smiles) != smiles:
        raise ValueError(f"{name} must be a canonical SMILES without stereochemistry, and “{smiles[:60]}” is not")
    if distribution.log_p0(read_molecule(smiles).molecule) == -math.inf:
        raise ValueError(
            f"{name} must be a molecule that p0 allows (size, elements, rings, alerts, core); “{smiles[:60]}” is not"
        )


def _distribution(
    weights: tuple[float | None, ...] | None,
    elements: tuple[str, ...] | None,
    ring_sizes: tuple[int, ...] | None,
    alerts: tuple[AlertName, ...],
    core: str = "",
) -> MoleculeDistribution:
    return MoleculeDistribution(
        default_size_log_weights()
        if weights is None
        else tuple(-math.inf if weight is None else weight for weight in weights),
        None if elements is None else frozenset(elements),
        None if ring_sizes is None else frozenset(ring_sizes),
        alerts,
        core,
    )


@lru_cache(maxsize=_REMEMBERED_SPACES)
def _build(config: MoleculesConfig) -> GeneratedMolecules:
    return GeneratedMolecules(config.distribution, _vocabulary(config.vocabulary), config.start)


@lru_cache(maxsize=_REMEMBERED_SPACES)
def _vocabulary(fragments: Literal["default"] | tuple[str, ...]) -> Vocabulary:
    try:
        return default_vocabulary() if fragments == "default" else Vocabulary((fragment, 1.0) for fragment in fragments)
    except ValueError as error:
        raise ValueError(f"vocabulary: {error}") from error
