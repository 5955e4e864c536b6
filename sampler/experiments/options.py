"""The paper's experiments: values with their source, methods with their published numbers, sizes.

The values stand in `sampler/data/experiments`, a file for each experiment; to add one, write its file and name it in
`EXPERIMENTS`.

Below them, what one run of an experiment was asked for, and what follows from that alone.

Which states are kept, which of them meet in the tournament, and how many requests all of it takes at most.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import resources
from itertools import combinations
from typing import Any, Final, Literal, NamedTuple

import numpy as np
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
class EvaluationQuestion:
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
        max_votes: N, votes a judge and proposal, or ratings a judge and object that are averaged.
        published: by column of the table; none where the paper has no such row.
        inexact: why the chain does not sample the distribution that the rule names; empty where it does.
        source: lines of the paper, or "chosen".
    """

    name: str
    label: str
    rule: Mapping[str, Scalar]
    kernel: Mapping[str, Any]
    source: str
    judges: tuple[EvaluationQuestion, ...] = ()
    max_votes: int = 0
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
        name: of the question that it answers, as `EvaluationQuestion` has it.
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
    rated: tuple[EvaluationQuestion, ...]
    compared: tuple[EvaluationQuestion, ...]
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


SAMPLED, DRAWN = "sampled", "log-probabilities"
"""How votes are asked for."""
SHOWN_EVERY = 300
"""Steps between two rows of the images' full figure; the main text's has steps 300, 1200, 1800 and 2700 of them."""
MAX_SHOWN = 10
_BOTH_ORDERS = 2
_REQUESTS_A_TEXT = 2
"""Of a server: one to write it, and one to turn its tokens into words."""
_TOURNAMENT = 18
"""Sets the tournament's random numbers apart from others of the same seed."""


class OptionError(ValueError):
    """An option that cannot be met: `option` is its name, the message says what to give instead."""

    def __init__(self, option: str, message: str):
        super().__init__(f"{option} {message}")
        self.option = option


class StateKey(NamedTuple):
    """Where a state stands: after which step, 0 for the start, of which chain of which campaign."""

    method: str
    direction: str
    seed: int
    chain: int
    step: int


@dataclass(frozen=True)
class ExperimentOptions:
    """One run, every option filled in; `ExperimentOptions.of` takes what a command line names.

    Args:
        experiment: "stories", "images", "molecules" or "translation".
        scale: the preset, "paper" or "laptop".
        methods: by name, in the table's order.
        seeds: of the runs, each different.
        steps: T, of each chain; methods that only draw have as many as are kept.
        burn_in: states that are left out at the beginning of each chain.
        keep: K, states of each chain that are evaluated.
        prompts: how many there are of each direction, in the experiment's order; 1 where chains have none.
        chains: for each prompt and seed.
        votes: how preferences are asked for, `SAMPLED` or `DRAWN` from log-probabilities.
        matches: M, of the tournament, for each prompt and pair of methods; 0 for no tournament.

    Raises:
        OptionError: an option names nothing that there is, or does not fit the others.
    """

    experiment: str
    scale: str
    methods: tuple[str, ...]
    seeds: tuple[int, ...]
    steps: int
    burn_in: int
    keep: int
    prompts: tuple[int, ...]
    chains: int
    votes: str = SAMPLED
    matches: int = 0

    @classmethod
    def of(
        cls,
        experiment: str,
        scale: str = "paper",
        *,
        methods: Sequence[str] | None = None,
        prompts: int | None = None,
        exact: bool = False,
        available: Sequence[int] | None = None,
        **named: Any,
    ) -> ExperimentOptions:
        """Return the options of a run: those that are named, and the preset's for the others.

        Burn-in, kept states and matches that are not named are cut down where the named options leave less room, so
        that `steps=20` alone is a run; named ones never are.

        Args:
            prompts: of each direction, at most.
            exact: adds the rows with the exact base ratio to the methods; molecules only.
            available: how many prompts each direction has; None for the paper's numbers.
            named: other options of the class; None as if it were not named.

        Raises:
            OptionError: as the class.
        """
        _one_of("experiment", experiment, EXPERIMENTS)
        found = EXPERIMENTS[experiment]
        _one_of("--scale", scale, found.sizes)
        size = asdict(found.sizes[scale])
        wanted = {name: value for name, value in named.items() if value is not None}
        given = size | wanted
        del given["prompts"]
        if "keep" not in wanted:
            room = given["steps"] - wanted.get("burn_in", 0)
            given["keep"] = max(1, room if size["keep"] is None else min(size["keep"], room))
        if "burn_in" not in wanted:
            given["burn_in"] = max(0, min(size["burn_in"], given["steps"] - given["keep"]))
        given["seeds"] = tuple(given["seeds"])
        rows = _methods(found, methods, exact=exact)
        counts = _prompts(found, size["prompts"] if prompts is None else prompts, available)
        if "matches" not in wanted:
            given["matches"] = min(size["matches"], given["keep"] * given["chains"]) * (len(rows) > 1)
        return cls(experiment, scale, rows, prompts=counts, **given)

    def __post_init__(self) -> None:
        _one_of("experiment", self.experiment, tuple(EXPERIMENTS))
        _one_of("--votes", self.votes, (SAMPLED, DRAWN))
        if len(set(self.seeds)) < len(self.seeds):
            raise OptionError("--seeds", "must not name one twice")
        for name, value, least in (
            ("--seeds", min(self.seeds), 0),
            ("--steps", self.steps, 1),
            ("--burn-in", self.burn_in, 0),
            ("--keep", self.keep, 1),
            ("--prompts", min(self.prompts), 1),
            ("--chains", self.chains, 1),
            ("--matches", self.matches, 0),
        ):
            if value < least:
                raise OptionError(name, f"must be {least} at least, not {value}")
        room = self.steps - self.burn_in
        if self.keep > room:
            raise OptionError(
                "--keep",
                f"must be {max(room, 0)} at most, which {self.steps} steps leave after {self.burn_in} of burn-in, not "
                f"{self.keep}; name fewer, or more --steps or less --burn-in",
            )
        states = self.keep * self.chains
        if self.matches > states:
            raise OptionError(
                "--matches", f"must be {states} at most, the states that are kept for each prompt, not {self.matches}"
            )
        if self.matches and len(self.methods) < 2:
            raise OptionError("--matches", "needs two methods to compare; name another in --methods, or --matches 0")

    @property
    def of_experiment(self) -> Experiment:
        """The experiment's settings."""
        return EXPERIMENTS[self.experiment]

    @property
    def chosen(self) -> tuple[ExperimentMethod, ...]:
        """The methods, in the table's order."""
        return tuple(self.of_experiment.method(name) for name in self.methods)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions, each with as many inputs as this run has prompts."""
        named = zip(self.of_experiment.directions, self.prompts, strict=True)
        return tuple(Direction(direction.name, count) for direction, count in named)

    def direction(self, name: str) -> Direction:
        """Return the direction of this name, with as many inputs as this run has prompts.

        Raises:
            KeyError: there is none.
        """
        return {direction.name: direction for direction in self.directions}[name]

    def chains_of(self, direction: Direction) -> int:
        """Return how many chains each campaign of a direction has; chain c answers prompt c modulo the prompts."""
        return direction.inputs * self.chains

    def steps_of(self, method: ExperimentMethod) -> int:
        """Return how many proposals each chain of a method gets: one for each kept state where it only draws."""
        return self.keep if method.draws_only else self.steps

    def kept_of(self, method: ExperimentMethod, direction: Direction, seed: int) -> list[StateKey]:
        """Return the states of one campaign that are evaluated, chain after chain."""
        steps = kept_steps(self, method)
        chains = range(self.chains_of(direction))
        return [StateKey(method.name, direction.name, seed, chain, step) for chain in chains for step in steps]


def kept_steps(options: ExperimentOptions, method: ExperimentMethod) -> tuple[int, ...]:
    """Return the steps whose states are kept, ascending, shape (keep,); the start is step 0 and never kept.

    Stories 251 ... 300, translation 38, 44, ..., 128 (L1183, L1686), images all, molecules the last one. Of a method
    that only draws, all draws. Where evenly spaced steps do not divide the states after the burn-in, each is rounded
    down; the last step is always kept.
    """
    steps, keep = options.steps_of(method), options.keep
    if method.draws_only or options.of_experiment.spacing == "last":
        return tuple(range(steps - keep + 1, steps + 1))
    return tuple(options.burn_in + 1 + index for index in _evenly_spaced(steps - options.burn_in, keep))


def shown_steps(options: ExperimentOptions) -> tuple[int, ...]:
    """Return the steps whose pictures figures show: every 300th, and of shorter chains ten evenly spaced ones at most.

    A method that only draws shows its draws of the same numbers, as far as it has them.
    """
    if options.steps >= SHOWN_EVERY:
        return tuple(range(SHOWN_EVERY, options.steps + 1, SHOWN_EVERY))
    return tuple(index + 1 for index in _evenly_spaced(options.steps, min(options.steps, MAX_SHOWN)))


def selected_steps(options: ExperimentOptions) -> tuple[int, ...]:
    """Return the steps of the main text's figure (L682), ascending: of shorter chains the same shares."""
    settings = {setting.name: setting.value for setting in options.of_experiment.settings}
    paper, stated = options.of_experiment.sizes["paper"].steps, settings["shown_steps"]
    assert isinstance(stated, tuple)
    return tuple(sorted({max(1, int(str(step)) * options.steps // paper) for step in stated}))


@dataclass(frozen=True)
class TournamentMatch:
    """Two states that meet: of two methods, one prompt, one seed.

    Args:
        prompt: its number in the direction.
        number: k, from 0.
        one, other: where they stand; methods in the table's order.
    """

    prompt: int
    number: int
    one: StateKey
    other: StateKey

    @property
    def key(self) -> str:
        """What names the match, in pairs.csv and in votes.csv; the same in every run of the same options."""
        where = f"{self.one.direction}:" if self.one.direction else ""
        return f"{where}s{self.one.seed}:p{self.prompt}:{self.one.method}:{self.other.method}:k{self.number}"


@dataclass(frozen=True)
class TournamentSlot:
    """One thing to vote on: a match, about one property, with one of the two shown first."""

    match: TournamentMatch
    about: str
    one_first: bool

    @property
    def key(self) -> tuple[str, str, bool]:
        """The match's key, the property, whether `one` stands first: a vote belongs to the slot with its key."""
        return self.match.key, self.about, self.one_first

    @property
    def first(self) -> StateKey:
        """The state that is shown first."""
        return self.match.one if self.one_first else self.match.other


def tournament_matches(options: ExperimentOptions) -> Iterator[TournamentMatch]:
    """Yield every match once: by direction, seed, prompt, pair of methods and number.

    For each prompt and each pair of methods there are M: the k-th of M evenly spaced kept states of one method against
    the k-th of the other. The paper states no more than "head-to-head" (L1189-1192).
    """
    for direction in options.directions:
        for seed in options.seeds:
            for prompt in range(direction.inputs):
                for pair in combinations(options.chosen, 2):
                    ends = (_met(options, direction, seed, prompt, method) for method in pair)
                    for number, (one, other) in enumerate(zip(*ends, strict=True)):
                        yield TournamentMatch(prompt, number, one, other)


def tournament_schedule(options: ExperimentOptions) -> list[TournamentSlot]:
    """Return every slot once, each property in both orders, as they are asked: a function of the options alone.

    The order is drawn from the first seed, so that a tournament that ends early has met every method alike. The two
    orders of a match follow each other: what was asked is balanced at all times but for one vote.
    """
    properties = [asked.name for asked in options.of_experiment.compared]
    pairs = [(match, name) for match in tournament_matches(options) for name in properties]
    seeded = np.random.SeedSequence(options.seeds[0], spawn_key=(_TOURNAMENT,))
    drawn = np.random.Generator(np.random.PCG64(seeded))
    # `random` is what NumPy keeps stable; ties are broken by index.
    order = np.argsort(drawn.random(len(pairs)), kind="stable").tolist()
    chosen = [pairs[index] for index in order]
    return [TournamentSlot(match, about, one_first) for match, about in chosen for one_first in (True, False)]


def planned_sums(options: ExperimentOptions) -> dict[str, dict[str, int]]:
    """Return what a run will ask for at most, each kind for "all" and for every method by its name.

    The sums of `--dry-run`: proposals, requests to a server that writes texts, requests to judges, starts that are
    rated included, and requests of the evaluation. A text takes two requests, and so does each prompt of a campaign.

    No vote is saved by stopping early, no proposal is void. A tournament's request counts for the method
    that is shown first; in both orders, each has as many. So the numbers of the methods add up to that of all.
    """
    experiment, chains = options.of_experiment, _chains(options)
    prompts = len(options.seeds) * sum(options.prompts)
    met = (len(options.methods) - 1) * prompts * options.matches * len(experiment.compared)
    evaluated = chains * options.keep * len(experiment.rated) + met
    kinds = ("proposals", "writer_requests", "judge_requests", "evaluation_requests")
    sums: dict[str, dict[str, int]] = {kind: {} for kind in kinds}
    for method in options.chosen:
        starts = chains * (method.kind == "pointwise")
        proposals = chains * options.steps_of(method)
        sums["proposals"][method.name] = proposals
        texts = (proposals + chains + prompts) * experiment.is_written
        sums["writer_requests"][method.name] = _REQUESTS_A_TEXT * texts
        sums["judge_requests"][method.name] = (
            (proposals + starts) * len(method.judges) * _asked_of_each(options, method)
        )
        sums["evaluation_requests"][method.name] = evaluated
    return {kind: {"all": sum(counts.values()), **counts} for kind, counts in sums.items()}


def planned_scores(options: ExperimentOptions, role: str) -> dict[str, int]:
    """Return how many objects the scorer of a role gets, for "all" and for every method; they are no requests.

    Quality estimates each proposal and start, and others the kept states.
    """
    states = {
        method.name: _chains(options) * (options.steps_of(method) + 1 if role == "quality" else options.keep)
        for method in options.chosen
    }
    return {"all": sum(states.values()), **states}


def _asked_of_each(options: ExperimentOptions, method: ExperimentMethod) -> int:
    if method.kind != "n-vote" or options.votes == SAMPLED:
        return method.max_votes
    # The model's probabilities are asked for once in each order in which a judge is shown the two.
    return min(method.max_votes, 1 if method.judges[0].order.startswith("proposal") else _BOTH_ORDERS)


def _chains(options: ExperimentOptions) -> int:
    return len(options.seeds) * sum(options.prompts) * options.chains


def _met(
    options: ExperimentOptions, direction: Direction, seed: int, prompt: int, method: ExperimentMethod
) -> list[StateKey]:
    """Return the M kept states of a method that meet others under a prompt: its chains', one after the other."""
    chains, steps = range(prompt, options.chains_of(direction), direction.inputs), kept_steps(options, method)
    kept = [(chain, step) for chain in chains for step in steps]
    met = (kept[index] for index in _evenly_spaced(len(kept), options.matches))
    return [StateKey(method.name, direction.name, seed, *where) for where in met]


def _evenly_spaced(many: int, few: int) -> Iterator[int]:
    """Yield `few` indices among 0 ... many - 1, ascending and evenly spaced, the last one always among them."""
    return (many * k // few - 1 for k in range(1, few + 1))


def _methods(experiment: Experiment, named: Sequence[str] | None, *, exact: bool) -> tuple[str, ...]:
    known = {method.name for method in experiment.methods}
    wanted = list(experiment.default_methods if named is None else named)
    for name in wanted:
        _one_of("--methods", name, known)
    if not wanted or len(set(wanted)) < len(wanted):
        raise OptionError("--methods", "must name at least one, and none twice")
    if exact:
        rows = {name + EXACT_SUFFIX for name in wanted if not name.endswith(EXACT_SUFFIX)}
        if not rows <= known:
            raise OptionError("--exact", f"must be left out: the methods of {experiment.name} have no other rows")
        wanted += rows
    return tuple(method.name for method in experiment.methods if method.name in wanted)


def _prompts(experiment: Experiment, wanted: int | None, available: Sequence[int] | None) -> tuple[int, ...]:
    there = tuple(each.inputs for each in experiment.directions) if available is None else tuple(available)
    if len(there) != len(experiment.directions) or min(there) < 1:
        names = ", ".join(each.name or experiment.name for each in experiment.directions)
        raise OptionError("--data", f"must hold at least one input for each of: {names}")
    if wanted is not None and wanted > max(there):
        raise OptionError(
            "--prompts", f"must be {max(there)} at most, as many as there are, not {wanted}; --data FILE brings others"
        )
    return there if wanted is None else tuple(min(wanted, count) for count in there)


def _one_of(option: str, value: str, known: Iterable[str]) -> None:
    if value not in known:
        raise OptionError(option, f"must be among {', '.join(sorted(known))}, not {value!r}")
