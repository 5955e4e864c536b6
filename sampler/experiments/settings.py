"""The paper's experiments: values with their source, methods with their published numbers, sizes.

The values stand in `sampler/data/experiments`, a file for each experiment; to add one, write its file and name it in
`EXPERIMENTS`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Final, Literal

from pydantic import TypeAdapter

Scalar = str | int | float | bool | None
Plain = Scalar | tuple[Scalar, ...]
"""What a setting can be."""


@dataclass(frozen=True)
class Setting:
    """One setting: what it is, where it is from, and why where the paper is silent.

    The source is lines of `pref-mh.tex`, or "chosen". A file leaves `value` out where it is none.
    """

    name: str
    source: str
    value: Plain = None
    why: str = ""


@dataclass(frozen=True)
class Published:
    """A number of the paper: with its spread as printed, and its dagger where it has one."""

    value: float
    spread: float | None = None
    mark: str = ""


@dataclass(frozen=True)
class Asked:
    """One thing that a model is asked: the name that tables use, the question, the preset of the prompt.

    Args:
        role: who is asked: "judge", "evaluator" or "detector".
        order: of a judge's votes, as a config has it.
    """

    name: str
    question: str
    preset: str
    role: str = "judge"
    order: str = "random"


@dataclass(frozen=True)
class ExperimentMethod:
    """A row of the table: how its chains propose and decide.

    Args:
        name: as `--methods` takes it.
        label: as the table prints it.
        rule: what decides a step, as a config has it. The kind "base" accepts every draw and asks nobody; "quest" gets
            the scorer that the run names.
        kernel: as a config has it.
        learns: whether its chains learn their proposals together, which is no campaign.
        judges: one for each factor of the rule.
        asks: N, votes a judge and proposal, or ratings a judge and object that are averaged.
        published: by column of the table; none where the paper has no such row.
        inexact: why the chain does not sample the law that the rule names; empty where it does.
        source: lines of the paper, or "chosen".
    """

    name: str
    label: str
    rule: Mapping[str, Scalar]
    kernel: Mapping[str, Any]
    source: str
    judges: tuple[Asked, ...] = ()
    asks: int = 0
    learns: bool = False
    published: Mapping[str, Published] = field(default_factory=dict)
    inexact: str = ""

    @property
    def kind(self) -> str:
        """Of the rule: "base", "n-vote", "pointwise", "score" or "quest"."""
        return str(self.rule["kind"])

    @property
    def draws_only(self) -> bool:
        """Whether its states are draws of p0: as many as are kept, and no chain."""
        return self.kind == "base"


@dataclass(frozen=True)
class Direction:
    """One set of inputs, with a campaign of its own; most experiments have one, without a name.

    Args:
        name: part of the record's name; empty where there is one only.
        inputs: how many prompts the paper has; 1 where chains have none.
    """

    name: str
    inputs: int


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Args:
        name: as tables have it; a direction's name comes behind it where there are several.
        label: as a reader sees it.
        higher_is_better: which end of the scale is the good one.
        digits: after the decimal point.
        scorer: the role whose numbers it is made of; empty where no scorer is needed.
    """

    name: str
    label: str
    higher_is_better: bool
    digits: int
    scorer: str = ""


@dataclass(frozen=True)
class Size:
    """What a preset sets. None: all prompts that there are; all states after the burn-in.

    Args:
        steps: T, of each chain.
        burn_in: states that are left out at the beginning.
        keep: K, states of each chain that are evaluated.
        prompts: of each direction.
        chains: for each prompt, and each seed.
        matches: M, for each prompt and pair of methods.
        seeds: one run each.
    """

    steps: int
    burn_in: int = 0
    keep: int | None = None
    prompts: int | None = None
    chains: int = 1
    matches: int = 0
    seeds: tuple[int, ...] = (0,)


@dataclass(frozen=True)
class SimulatedScore:
    """What stands in for a model's opinion (`--simulated`): a measure of the object, from 0 at its worst to 1.

    Args:
        name: of the question that it answers, as `Asked` has it.
        measure: as `describe_text`, `describe_molecule` or `describe_image` names it.
        worst, best: the ends; what lies beyond them counts as they do.
    """

    name: str
    measure: str
    worst: float
    best: float

    def of(self, value: float | None) -> float:
        """Return the score of an object with this measure; 0 where it has none."""
        return 0.0 if value is None else min(1.0, max(0.0, (value - self.worst) / (self.best - self.worst)))


@dataclass(frozen=True)
class Simulated:
    """Who stands in for the models of an experiment: scores for those that judge, and a measure for each scorer."""

    scores: tuple[SimulatedScore, ...]
    scorers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One of the paper's experiments, whole.

    Args:
        methods: all that can be named; `default_methods` are those that run unless others are named.
        reference: the method that others are tested against.
        spacing: which states after the burn-in are kept, the last ones or evenly spaced ones.
        rated: what is asked about each kept state when it is evaluated.
        compared: the properties of the tournament.
        spread: what stands behind ± in the table; empty where nothing does.
        scorers: roles of programs that give states a number; their column stays empty without them.
        roles: of model servers, as `--endpoint` names them.
        simulated: who stands in for them.
    """

    name: str
    title: str
    objects: Literal["texts", "images", "molecules"]
    directions: tuple[Direction, ...]
    methods: tuple[ExperimentMethod, ...]
    default_methods: tuple[str, ...]
    reference: str
    spacing: Literal["last", "even"]
    sizes: Mapping[str, Size]
    settings: tuple[Setting, ...]
    rated: tuple[Asked, ...]
    compared: tuple[Asked, ...]
    columns: tuple[Column, ...]
    roles: tuple[str, ...]
    simulated: Simulated
    spread: str = ""
    scorers: tuple[str, ...] = ()

    @property
    def is_written(self) -> bool:
        """Whether a proposal takes a request: texts are written by a model; noise and molecules are drawn here."""
        return self.objects == "texts"

    def method(self, name: str) -> ExperimentMethod:
        """Return the method of this name.

        Raises:
            KeyError: there is none.
        """
        return {method.name: method for method in self.methods}[name]


_EXPERIMENT: Final = TypeAdapter(Experiment)


def _read(name: str) -> Experiment:
    text = resources.files("sampler").joinpath("data", "experiments", f"{name}.toml").read_text(encoding="utf-8")
    return _EXPERIMENT.validate_python(tomllib.loads(text))


EXPERIMENTS: Final = {name: _read(name) for name in ("stories", "images", "molecules", "translation")}
"""By the name that the command takes."""
EXACT_SUFFIX: Final = "-exact"
"""Of the rows of molecules that `--exact` adds: the base ratio itself, and one judge for each order of two."""
