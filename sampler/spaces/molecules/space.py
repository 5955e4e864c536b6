"""Molecules that are generated: the space a config names, and the part of the config that names it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field, ValidationInfo, field_validator
from rdkit import Chem

from sampler.declared import Declared, ui
from sampler.spaces.molecules.graph import canonical_state, read_molecule
from sampler.spaces.molecules.law import AlertName, MoleculeLaw, core_problem, default_size_log_weights
from sampler.spaces.molecules.vocabulary import Vocabulary, default_vocabulary

START = "CC"
MAX_SIZES, MAX_ARMS = 100, 5_000
_DETAILS = "Which molecules there are"
_REMEMBERED_SPACES = 16

LogWeight = Annotated[float, Field(allow_inf_nan=False)]
RingSize = Annotated[int, Field(ge=3, le=MAX_SIZES)]


@dataclass(frozen=True)
class GeneratedMolecules:
    """Molecules within the support of a law, grown by the arms of a vocabulary. States are canonical SMILES.

    There is no drawing from p0 itself: nobody can count the molecules of each size.

    Args:
        law: p0.
        vocabulary: the arms that moves add and delete.
        first: where every chain starts, as `canonical_state` returns it and inside the law's support.

    Raises:
        ValueError: `first` is no such state.
    """

    law: MoleculeLaw
    vocabulary: Vocabulary
    first: str = START

    def __post_init__(self) -> None:
        _check_state("first", self.first, self.law)

    def start(self, rng: np.random.Generator, chain: int) -> str:
        """Return the same molecule for every chain; nothing is drawn."""
        return self.first

    def encode(self, state: str) -> str:
        """Return the canonical SMILES."""
        return state

    def decode(self, code: str) -> str:
        """Return the state that `encode` wrote.

        Raises:
            ValueError: not a canonical SMILES, or a molecule outside the law's support.
        """
        _check_state("state", code, self.law)
        return code

    def is_close(self, one: str, other: str) -> bool:
        """True when the two are the same molecule."""
        return one == other

    def content(self, state: str) -> str:
        """Return the canonical SMILES."""
        return state


class MoleculesConfig(Declared):
    """The part of a config that says: molecules, this p0, these arms. Nothing outside the package adds to it.

    Args:
        size_log_weights: log-weight in p0 of 1, 2, ... heavy atoms, null for a size that is forbidden; null instead
            of the list for the package's own (1 to 40 heavy atoms).
        elements, ring_sizes, alerts, core: filters of p0, as in `MoleculeLaw`.
        vocabulary: "default" for the package's own arms, or SMILES with one dummy `*` each; an arm listed twice is
            drawn twice as often.
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
    def law(self) -> MoleculeLaw:
        """p0."""
        return _law(self.size_log_weights, self.elements, self.ring_sizes, self.alerts, self.core)

    def build(self) -> GeneratedMolecules:
        """Return the space; equal configs get the same one, so that no vocabulary is read twice."""
        return _build(self)

    @field_validator("size_log_weights")
    @classmethod
    def _some_size_has_weight(cls, weights: tuple[float | None, ...] | None) -> tuple[float | None, ...] | None:
        _law(weights, None, None, ())
        return weights

    @field_validator("elements")
    @classmethod
    def _elements_are_known(cls, elements: tuple[str, ...] | None) -> tuple[str, ...] | None:
        _law(None, elements, None, ())
        return elements

    @field_validator("core")
    @classmethod
    def _core_is_one(cls, core: str) -> str:
        core = core.strip()
        if core and (problem := core_problem(core)):
            raise ValueError(problem)
        return core

    # Before the union is tried, so that a bad arm is not also reported as not being the word "default".
    @field_validator("vocabulary", mode="before")
    @classmethod
    def _arms_can_be_read(cls, given: object) -> Literal["default"] | tuple[str, ...]:
        if given == "default":
            return "default"
        if not isinstance(given, (list, tuple)) or not all(isinstance(arm, str) for arm in given):
            raise ValueError('vocabulary must be "default" or a list of arms as SMILES')
        if not 1 <= len(given) <= MAX_ARMS:
            raise ValueError(f"vocabulary must list 1 to {MAX_ARMS:,} arms, not {len(given):,}")
        arms = tuple(given)
        _vocabulary(arms)
        return arms

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
            _check_state("start", state, _law(*(info.data[name] for name in filters)))
        return state


def _has_stereochemistry(smiles: str) -> bool:
    """True where a SMILES that is a molecule says which of several stereoisomers it is; marks of none do not count."""
    molecule = read_molecule(smiles).molecule
    written = str(Chem.MolToSmiles(molecule))
    Chem.RemoveStereochemistry(molecule)
    return written != Chem.MolToSmiles(molecule) or bool(molecule.GetStereoGroups())


def _check_state(name: str, smiles: str, law: MoleculeLaw) -> None:
    if canonical_state(smiles) != smiles:
        raise ValueError(f"{name} must be a canonical SMILES without stereochemistry, and “{smiles[:60]}” is not")
    if law.log_p0(read_molecule(smiles).molecule) == -math.inf:
        raise ValueError(
            f"{name} must be a molecule that p0 allows (size, elements, rings, alerts, core); “{smiles[:60]}” is not"
        )


def _law(
    weights: tuple[float | None, ...] | None,
    elements: tuple[str, ...] | None,
    ring_sizes: tuple[int, ...] | None,
    alerts: tuple[AlertName, ...],
    core: str = "",
) -> MoleculeLaw:
    return MoleculeLaw(
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
    return GeneratedMolecules(config.law, _vocabulary(config.vocabulary), config.start)


@lru_cache(maxsize=_REMEMBERED_SPACES)
def _vocabulary(arms: Literal["default"] | tuple[str, ...]) -> Vocabulary:
    try:
        return default_vocabulary() if arms == "default" else Vocabulary((arm, 1.0) for arm in arms)
    except ValueError as error:
        raise ValueError(f"vocabulary: {error}") from error
