"""The config: everything that fixes a campaign, checked before anything runs.

A config is plain JSON. `parse_config` refuses a bad one with every field's path and what would be accepted;
`ChainConfig.build` returns the plan the chain follows, joined with the catalog if the config speaks of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, cast

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from sampler.chain import Plan, Purpose, stream
from sampler.declared import JUDGED_BY, TARGET, Sparse, ui
from sampler.judges.config import JudgeConfig, ModelSource, hearing_errors, panelists_of, unnamed, vision_errors
from sampler.judges.prompts import Fitting, template_errors, template_of
from sampler.kernels import MOVES_IN, KernelConfig
from sampler.kernels.discrete import Neighbours
from sampler.kernels.mixture import ComponentConfig, MixtureConfig
from sampler.kernels.walk import WalkConfig
from sampler.kernels.warm_up import WarmUp
from sampler.objects import property_names
from sampler.rules import RuleConfig, target_distribution
from sampler.rules.n_vote import NVoteConfig
from sampler.spaces import Generated, SpaceConfig
from sampler.spaces.catalog import Catalog, CatalogConfig, ContextColumn
from sampler.spaces.texts import LanguageModel, ServedTextsConfig, TextsConfig

_LENGTH = "More chains while people come, what is left out, and the seed"
_JUDGED = {"rule": ("n-vote", "pointwise")}
VERSION: Final = 1
# Each stands open with a pair of its own: with so many, so many people can vote at the same time.
MAX_CHAINS: Final = 5_000
LONGEST_CHAIN: Final = 1_000_000
# Of all chains together: the numbers of their objects, which steps give, fit into 32 bits (`state_number`).
MAX_STEPS: Final = 2_000_000_000
# Nobody reads more of them, and a file can be made of mistakes.
_MAX_PROBLEMS = 100


@dataclass(frozen=True)
class ConfigProblem:
    """One thing wrong with a config: where in its JSON (a path such as judges.0.votes) and what would be accepted."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ConfigError(ValueError):
    """A config that cannot be run; `problems` lists every reason."""

    def __init__(self, problems: list[ConfigProblem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


class ChainConfig(Sparse):
    """Space, kernel, judges, rule, chains, steps and seed.

    With `max_chains` the campaign starts with `chains` and opens further ones while people would wait, up to so many.
    `burn_in` is how many of the first steps are left out of the samples to analyse. `target` says in plain text which
    distribution the chains sample (`sampler.rules`), for whoever reads the record; it follows from the rest, and where
    it is given it must be right.
    """

    unwritten: ClassVar[tuple[str, ...]] = ("max_chains", "burn_in", "target")

    version: Literal[1] = Field(default=VERSION, json_schema_extra=ui(widget="none"))
    space: SpaceConfig = Field(
        title="What is compared?", json_schema_extra=ui(cards=True, fixed=TARGET, start={"kind": "catalog"})
    )
    kernel: KernelConfig = Field(title="How the next object is proposed", json_schema_extra=ui(fixed=TARGET))
    judges: tuple[JudgeConfig, ...] = Field(
        default=(),
        max_length=8,
        title="Questions",
        json_schema_extra=ui(rows="Add a question", when=_JUDGED, fixed=JUDGED_BY),
    )
    rule: RuleConfig = Field(
        default=NVoteConfig(),
        title="What decides a step?",
        json_schema_extra=ui(fixed=TARGET, fold="Decide in another way than by votes, for comparison with the paper"),
    )
    chains: int = Field(
        ge=1,
        le=MAX_CHAINS,
        title="Chains at the start",
        description="A chain (Markov chain) goes from object to object, as people choose. Several chains start apart "
        "and show whether they come to the same place. All have the same number of steps.",
        json_schema_extra=ui(fixed=TARGET, start=4),
    )
    max_chains: int | None = Field(
        default=None,
        ge=1,
        le=MAX_CHAINS,
        title="Largest number of chains",
        description="A further chain opens whenever somebody would wait, up to this number. Leave it empty for a fixed "
        "number of chains. Where models judge, the number is fixed.",
        json_schema_extra=ui(fixed=TARGET, fold=_LENGTH),
    )
    steps: int = Field(
        ge=1,
        le=LONGEST_CHAIN,
        title="Steps per chain",
        description="A step compares the object where the chain stands with a new one.",
        json_schema_extra=ui(fixed=f"{TARGET}; “Extend” on the tab Setup adds steps to all chains", start=100),
    )
    # Up to 2^53 - 1, so that the number survives JSON readers and spreadsheets that keep doubles.
    seed: int = Field(
        ge=0,
        lt=2**53,
        title="Seed of all random numbers",
        json_schema_extra=ui(fixed=TARGET, fold=_LENGTH, hidden="until the end"),
    )
    burn_in: int = Field(
        default=0,
        ge=0,
        title="First steps that are left out",
        description="Burn-in: so many first steps of each chain the analysis leaves out, because they still show where "
        "the chain started.",
        json_schema_extra=ui(fixed="the record declares it beforehand", fold=_LENGTH),
    )
    target: str | None = Field(default=None, json_schema_extra=ui(widget="none"))

    @property
    def target_distribution(self) -> str:
        """The distribution that the chains sample, in plain text. It names nobody."""
        return target_distribution(unnamed(self.judges), self.rule, self.components)

    @property
    def generates(self) -> bool:
        """True when the chains make their objects as they go; False when they pick from a catalog."""
        return not isinstance(self.space, CatalogConfig)

    @property
    def context(self) -> tuple[ContextColumn, ...]:
        """What is shown with each pair: further columns of a list; of written texts, their source and an estimate."""
        return self.space.context if isinstance(self.space, CatalogConfig | ServedTextsConfig) else ()

    @property
    def estimate(self) -> str:
        """The scorer whose number is shown with each object that is judged; empty where none is."""
        return self.space.estimate if isinstance(self.space, ServedTextsConfig) else ""

    @property
    def needed_scorers(self) -> tuple[str, ...]:
        """The scorers that steps wait for: whose numbers decide, or are shown to judges."""
        return (*self.rule.scorers, *((self.estimate,) if self.estimate else ()))

    @property
    def fitting(self) -> Fitting:
        """What a prompt of a judge's own has to fit."""
        measures = property_names(self.space.model_dump(mode="json"))
        return Fitting(self.rule.objects_shown, [column.label for column in self.context], measures)

    @property
    def components(self) -> tuple[ComponentConfig, ...]:
        """The parts of a mixture or of a walk, or the kernel alone."""
        return self.kernel.components if isinstance(self.kernel, MixtureConfig | WalkConfig) else (self.kernel,)

    @property
    def warm_up(self) -> WarmUp | None:
        """The first steps that choose how far the others walk, if there are such."""
        return self.kernel.warm_up if isinstance(self.kernel, WalkConfig) else None

    @property
    def has_parts(self) -> bool:
        """True where a record says of some steps which part of the kernel proposed: see `part_of`."""
        return isinstance(self.kernel, WalkConfig) and self.kernel.has_parts

    def part_of(self, chain: int, step: int) -> int | None:
        """Return which of several lengths a step walks, by its index in the config; None where there are no parts.

        It is drawn before anything else of the step, so neither the state nor the model is needed.
        """
        if not isinstance(self.kernel, WalkConfig) or not self.kernel.has_parts:
            return None
        return self.kernel.part(stream(self.seed, chain, step, Purpose.PROPOSAL), step)

    def phase_of(self, step: int) -> str:
        """Return what the state after a step is to an analysis.

        Only "sampling" is analysed; "warm-up" and "burn-in" are left out.
        """
        if self.burn_in and step <= self.burn_in:
            return "burn-in"
        if self.warm_up is None or step > self.warm_up.steps + self.warm_up.burn_in:
            return "sampling"
        return "warm-up" if step <= self.warm_up.steps else "burn-in"

    def target_of(self, chain: int) -> str:
        """Return the prompt that tells a chain's distribution from those of others; empty where all are one."""
        prompts = self.space.prompts if isinstance(self.space, TextsConfig | ServedTextsConfig) else ("",)
        return prompts[chain % len(prompts)]

    @property
    def opens_on_demand(self) -> bool:
        """True where chains open while the campaign runs, when somebody would wait."""
        return self.max_chains is not None

    @property
    def chains_at_most(self) -> int:
        """How many chains there can be. The numbers of states are spaced by it: see `state_number`."""
        return self.chains if self.max_chains is None else self.max_chains

    @property
    def votes_a_step(self) -> int:
        """How many votes of people a step takes if nothing is decided early."""
        return sum(judge.votes for judge in self.judges if not isinstance(judge.source, ModelSource))

    @property
    def left_out(self) -> int:
        """How many of the first steps of each chain say more about its start than about the distribution."""
        warm_up = 0 if self.warm_up is None else self.warm_up.steps + self.warm_up.burn_in
        return max(self.burn_in, warm_up)

    @property
    def panelists(self) -> tuple[str, ...]:
        """The names of a panel's people, who judge each for themselves; none where a crowd does, or models alone."""
        return panelists_of(self.judges)

    @property
    def moves(self) -> frozenset[str]:
        """The kinds of the kernel, or of a mixture's or a walk's parts."""
        return frozenset(part.kind for part in self.components)

    @property
    def max_votes(self) -> tuple[int, ...]:
        """N_i of each judge, in order."""
        return tuple(judge.votes for judge in self.judges)

    def build(
        self,
        catalog: Catalog | None = None,
        model: LanguageModel | None = None,
        walk_length: int | None = None,
    ) -> Plan[Any]:
        """Return the plan of this config; states are indices in the catalog, or what the space generates.

        Args:
            catalog: the objects, for a config whose space is a catalog.
            model: what writes, for a config whose space names a model.
            walk_length: how far the steps after a warm-up walk, if that is chosen.

        Raises:
            ConfigError: the catalog does not fit the kernel.
            TypeError: there is a catalog or a model and no use for it, or the other way round.
        """
        return self.plan_on(self._space(catalog, model), walk_length)

    def plan_on(self, space: Any, walk_length: int | None = None) -> Plan[Any]:
        """Return the plan on a space that is built already; see `build`."""
        if not isinstance(self.kernel, WalkConfig) or self.kernel.warm_up is None:
            return Plan(self.seed, space, self.kernel.build(space), self.max_votes)
        after = self.kernel.after_warm_up(space, walk_length)
        return Plan(self.seed, space, after, self.max_votes, self.kernel.first_steps(space))

    def _space(self, catalog: Catalog | None, model: LanguageModel | None) -> Any:
        if (catalog is not None) != isinstance(self.space, CatalogConfig):
            raise TypeError("a catalog must be given for a config of kind catalog, and for no other")
        if (model is not None) != isinstance(self.space, ServedTextsConfig):
            raise TypeError("a model must be given for a config that names one, and for no other")
        if catalog is not None:
            self._check_catalog(catalog)
            return catalog
        if isinstance(self.space, ServedTextsConfig) and model is not None:
            return self.space.build(model)
        return cast(Generated, self.space).build()

    def _check_catalog(self, catalog: Catalog) -> None:
        if "neighbours" in self.moves and not catalog.neighbours:
            message = "the catalog has no neighbour graph; it needs one, or the kernel must be 'independent'"
            raise ConfigError([ConfigProblem("space.neighbours", message)])
        if "independent" not in self.moves and (parts := catalog.components()) > 1:
            message = (
                f"the neighbour graph falls into {parts} parts that no move connects; use a mixture with "
                "independent draws, or more neighbours per item"
            )
            raise ConfigError([ConfigProblem("kernel", message)])
        may_be_even = isinstance(self.kernel, WalkConfig) and self.kernel.may_be_always_even
        if may_be_even and self.moves == {"neighbours"} and Neighbours(catalog).alternates():
            message = (
                "on this catalog every move changes between two halves, so a walk of an even length never leaves its "
                "half; use odd lengths, such as a fixed number, or a mixture with independent draws"
            )
            raise ConfigError([ConfigProblem("kernel.length", message)])


def parse_config(data: Mapping[str, Any]) -> ChainConfig:
    """Return the config that `data` (parsed JSON) describes.

    Raises:
        ConfigError: with every problem found.
    """
    try:
        config = ChainConfig.model_validate(data)
    except ValidationError as error:
        raise ConfigError(problems_in(error, data)) from error
    require_sound(config)
    return config


def require_sound(config: ChainConfig) -> None:
    """Require that the parts of a config fit together.

    Raises:
        ConfigError: with every problem found.
    """
    if problems := [ConfigProblem(*each) for each in _validation_errors(config)]:
        raise ConfigError(problems)


def _validation_errors(config: ChainConfig) -> Iterator[tuple[str, str]]:
    """Yield the path and the reason where parts of a config do not fit together, though each is what it should be."""
    space, rule, objects = config.space.kind, config.rule, config.space.objects
    for move in sorted(config.moves):
        if space not in MOVES_IN[move]:
            fitting = " or ".join(f"'{kind}'" for kind, spaces in MOVES_IN.items() if space in spaces)
            yield "kernel", f"'{move}' does not move in a space of kind '{space}'; use {fitting}, or a mixture"
    if "neighbours" in config.moves and isinstance(config.space, CatalogConfig) and not config.space.neighbours:
        yield "space.neighbours", "must be 1 or more for a kernel that moves to neighbours"
    if isinstance(config.kernel, WalkConfig):
        yield from config.kernel.validation_errors(space)
    if config.warm_up is not None:
        yield from _warm_up_errors(config, config.warm_up)
    if config.max_chains is not None:
        yield from (("max_chains", message) for message in _max_chains_errors(config, config.max_chains))
    if config.chains_at_most * config.steps > MAX_STEPS:
        chains, steps = f"{config.chains_at_most:,} chains", f"{config.steps:,} steps"
        message = f"must be fewer: {chains} of {steps} are too many; all chains together have at most {MAX_STEPS:,}"
        yield "steps", message
    if config.burn_in >= config.steps:
        yield "burn_in", f"must be less than the {config.steps} steps"
    yield from rule.validation_errors(config.judges)
    yield from rule.kernel_errors(config.kernel)
    if rule.asks_judges and not config.judges:
        yield "judges", f"there must be 1 to 8 under rule '{rule.kind}': who answers what?"
    sources = [judge.source for judge in config.judges]
    if config.estimate and not (sources and all(isinstance(source, ModelSource) for source in sources)):
        yield "space.estimate", "is shown to models behind endpoints only, which can wait for it; leave it out"
    yield from hearing_errors(config.judges, objects)
    yield from vision_errors(config.judges, objects)
    if any(map(template_of, sources)):
        yield from template_errors(sources, config.fitting)
    yield from rule.unbalanced(config.judges)
    if config.target not in (None, config.target_distribution):
        yield (
            "target",
            f"judges and rule sample another distribution: write “{config.target_distribution}”, or leave it out",
        )


def _max_chains_errors(config: ChainConfig, most: int) -> Iterator[str]:
    if most <= config.chains:
        yield f"must be more than the {config.chains} chains of the start; leave it out for a fixed number of chains"
    if not config.rule.asks_judges:
        yield "does not go with a rule that asks nobody: chains open when a person would wait; leave it out"
    elif config.panelists:
        yield "does not go with a panel: each further chain waits for all panelists; leave it out"
    elif any(judge.source.kind != "people" for judge in config.judges):
        yield "does not go with models that judge: chains open when a person would wait; leave it out"


def _warm_up_errors(config: ChainConfig, warm_up: WarmUp) -> Iterator[tuple[str, str]]:
    path = "kernel.warm_up"
    if warm_up.steps >= config.steps:
        yield f"{path}.steps", f"must be less than the {config.steps} steps of a chain"
    elif warm_up.steps + warm_up.burn_in >= config.steps:
        message = f"leaves no step to sample: {warm_up.steps} + {warm_up.burn_in} steps of {config.steps}"
        yield f"{path}.burn_in", message
    names = property_names(config.space.model_dump(mode="json"))
    if unknown := [name for name in warm_up.properties if name not in names]:
        known = ", ".join(names) or "none, because the record does not hold the files; write the length yourself"
        yield f"{path}.properties", f"there is no property '{unknown[0]}' of these objects; there are {known}"
    if config.panelists:
        yield (
            path,
            "weighs votes as if all were alike, and the panelists of a panel differ; choose a fixed number of moves",
        )
    if config.rule.evidence != "votes":
        yield path, "counts votes, and this rule takes none; write the length yourself"


def problems_in(error: ValidationError, data: object) -> list[ConfigProblem]:
    """Return what pydantic has found wrong with `data`, by the paths of its JSON; the first 100, and how many more."""
    found = error.errors(include_url=False, include_input=False)
    details = found[:_MAX_PROBLEMS]
    problems = [_problem(each, data) for each in details if not _is_only_echo(each, details)]
    if len(found) > _MAX_PROBLEMS:
        problems.append(ConfigProblem("", f"{len(found) - _MAX_PROBLEMS:,} more problems follow; fix these first"))
    return problems


def _problem(found: ErrorDetails, data: object) -> ConfigProblem:
    path, message = _path(found["loc"], data), found["msg"].removeprefix("Value error, ")
    if found["type"] == "union_tag_invalid":
        path, message = [*path, "kind"], f"Input should be one of {found['ctx']['expected_tags']}"
    elif found["type"] == "union_tag_not_found":
        path, message = [*path, "kind"], "Field required"
    # The path ends with the field, which the message need not name again.
    return ConfigProblem(".".join(path), message.removeprefix(f"{path[-1]}: ") if path else message)


def _path(loc: tuple[int | str, ...], data: object) -> list[str]:
    """Return pydantic's `loc` without the kinds that it names wherever a kind decides what may follow."""
    path: list[str] = []
    named: object = None
    for index, part in enumerate(loc):
        if isinstance(data, Mapping):
            # A field may be called like its parent's kind, which is named once, before it: `pairs`, or one not allowed.
            is_field = data is named or (part in data and index == len(loc) - 1)
            if part == data.get("kind") and not is_field:
                named = data
                continue
            data = data.get(part)
        elif isinstance(data, Sequence) and isinstance(part, int):
            # Of a list of fixed length, what is missing has a place, too.
            data = data[part] if part < len(data) else None
        path.append(str(part))
    return path


def _is_only_echo(found: ErrorDetails, details: list[ErrorDetails]) -> bool:
    """True when a list is called too short only because what stands in it is refused already."""
    depth = len(found["loc"])
    return found["type"] == "too_short" and any(
        len(other["loc"]) > depth and other["loc"][:depth] == found["loc"] for other in details
    )
