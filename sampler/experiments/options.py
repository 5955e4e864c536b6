"""What one run of an experiment was asked for: a preset, what is named beside it, and whether that fits together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from sampler.experiments.settings import EXACT_SUFFIX, EXPERIMENTS, Direction, Experiment, ExperimentMethod

VoteSource = Literal["sampled", "log-probabilities"]
T = TypeVar("T")


class OptionError(ValueError):
    """An option that cannot be met: `option` is its name, the message says what to give instead."""

    def __init__(self, option: str, message: str):
        super().__init__(f"{option} {message}")
        self.option = option


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
        limit: at most so many chains a campaign; None for all.
        votes: how preferences are asked for.
        matches: M, of the tournament, for each prompt and pair of methods; 0 for no tournament.
        evaluator_votes: how the tournament's votes are asked for.

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
    limit: int | None
    votes: VoteSource
    matches: int
    evaluator_votes: VoteSource = "sampled"

    @classmethod
    def of(
        cls,
        experiment: str,
        scale: str = "paper",
        *,
        methods: Sequence[str] | None = None,
        seeds: Sequence[int] | None = None,
        steps: int | None = None,
        burn_in: int | None = None,
        keep: int | None = None,
        prompts: int | None = None,
        chains: int | None = None,
        limit: int | None = None,
        exact: bool = False,
        votes: str = "sampled",
        matches: int | None = None,
        available: Sequence[int] | None = None,
        evaluator_votes: str = "sampled",
    ) -> ExperimentOptions:
        """Return the options of a run: those that are named, and the preset's for the others.

        Burn-in, kept states and matches that are not named are cut down where the named options leave less room, so
        that `steps=20` alone is a run; named ones never are.

        Args:
            exact: adds the rows with the exact base ratio to the methods; molecules only.
            available: how many prompts each direction has; None for the paper's numbers.

        Raises:
            OptionError: as the class.
        """
        if experiment not in EXPERIMENTS:
            raise OptionError("experiment", f"must be one of {_listed(EXPERIMENTS)}, not {experiment!r}")
        found = EXPERIMENTS[experiment]
        if scale not in found.sizes:
            raise OptionError("--scale", f"must be one of {_listed(found.sizes)}, not {scale!r}")
        sources = checked_source("--votes", votes), checked_source("--evaluator-votes", evaluator_votes)
        size = found.sizes[scale]
        taken = _given(steps, size.steps)
        _at_least("--steps", taken, 1)
        kept = keep if keep is not None else _fitting(size.keep, taken - (burn_in or 0))
        left_out = burn_in if burn_in is not None else _fitting(size.burn_in, taken - kept, least=0)
        if keep is None and size.keep is None:
            kept = taken - left_out
        counts = _prompts(found, _given(prompts, size.prompts), available)
        of_each = _given(chains, size.chains)
        _at_least("--chains", of_each, 1)
        if limit is not None:
            _at_least("--limit", limit, 1)
        states = kept * min(_fewest_chains(count, of_each, limit) for count in counts)
        rows = _methods(found, methods, exact=exact)
        return cls(
            experiment,
            scale,
            rows,
            tuple(_given(seeds, size.seeds)),
            taken,
            left_out,
            kept,
            counts,
            of_each,
            limit,
            sources[0],
            matches if matches is not None else min(size.matches, states) * (len(rows) > 1),
            sources[1],
        )

    def __post_init__(self) -> None:
        _unrepeated("--methods", self.methods)
        _unrepeated("--seeds", self.seeds)
        for name, value, least in (
            ("--seeds", min(self.seeds), 0),
            ("--steps", self.steps, 1),
            ("--burn-in", self.burn_in, 0),
            ("--keep", self.keep, 1),
            ("--prompts", min(self.prompts), 1),
            ("--chains", self.chains, 1),
            ("--matches", self.matches, 0),
        ):
            _at_least(name, value, least)
        room = self.steps - self.burn_in
        if self.keep > room:
            raise OptionError(
                "--keep",
                f"must be {max(room, 0)} at most, which {self.steps} steps leave after {self.burn_in} of burn-in, not "
                f"{self.keep}; name fewer, or more --steps or less --burn-in",
            )
        states = self.keep * min(_fewest_chains(count, self.chains, self.limit) for count in self.prompts)
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
        every = direction.inputs * self.chains
        return every if self.limit is None else min(every, self.limit)

    def steps_of(self, method: ExperimentMethod) -> int:
        """Return how many proposals each chain of a method gets: one for each kept state where it only draws."""
        return self.keep if method.draws_only else self.steps


def checked_source(option: str, votes: str) -> VoteSource:
    """Return how votes are asked for.

    Raises:
        OptionError: there is no such way.
    """
    if votes not in get_args(VoteSource):
        raise OptionError(option, f"must be one of {_listed(get_args(VoteSource))}, not {votes!r}")
    return "sampled" if votes == "sampled" else "log-probabilities"


def _methods(experiment: Experiment, named: Sequence[str] | None, *, exact: bool) -> tuple[str, ...]:
    known = {method.name for method in experiment.methods}
    wanted = set()
    for name in experiment.default_methods if named is None else named:
        spelled = _spelled(name)
        if spelled not in known:
            raise OptionError("--methods", f"must be among {_listed(known)}, not {name!r}")
        if spelled in wanted:
            raise OptionError("--methods", f"must not name {spelled!r} twice")
        wanted.add(spelled)
    if not wanted:
        raise OptionError("--methods", "must name a method, or be left out for all that the paper has")
    if exact:
        rows = {name + EXACT_SUFFIX for name in wanted if not name.endswith(EXACT_SUFFIX)}
        if not rows <= known:
            raise OptionError("--exact", f"must be left out: the methods of {experiment.name} have no other rows")
        wanted |= rows
    return tuple(method.name for method in experiment.methods if method.name in wanted)


def _spelled(name: str) -> str:
    """Write the beta of a method as its name does: quest-.10 is quest-0.1."""
    head, _, beta = name.rpartition("-")
    try:
        return f"{head}-{float(beta):g}" if head else name
    except ValueError:
        return name


def _prompts(experiment: Experiment, wanted: int | None, available: Sequence[int] | None) -> tuple[int, ...]:
    there = tuple(available) if available is not None else tuple(each.inputs for each in experiment.directions)
    if len(there) != len(experiment.directions) or min(there) < 1:
        names = ", ".join(each.name or experiment.name for each in experiment.directions)
        raise OptionError("--data", f"must hold at least one input for each of: {names}")
    if wanted is None:
        return there
    _at_least("--prompts", wanted, 1)
    if wanted > max(there):
        raise OptionError(
            "--prompts", f"must be {max(there)} at most, as many as there are, not {wanted}; --data FILE brings others"
        )
    return tuple(min(wanted, count) for count in there)


def _fewest_chains(prompts: int, chains: int, limit: int | None) -> int:
    """Return how many chains the prompt with the fewest has, of those that have any."""
    every = prompts * chains
    return max(1, (every if limit is None else min(every, limit)) // prompts)


def _fitting(wanted: int | None, room: int, least: int = 1) -> int:
    return max(room if wanted is None else min(wanted, room), least)


def _given(named: T | None, otherwise: T) -> T:
    return otherwise if named is None else named


def _at_least(option: str, value: int, least: int) -> None:
    if value < least:
        raise OptionError(option, f"must be {least} at least, not {value}")


def _unrepeated(option: str, values: Sequence[object]) -> None:
    if not values:
        raise OptionError(option, "must name at least one")
    if len(set(values)) < len(values):
        raise OptionError(option, "must not name one twice")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
