"""A record whose config is read, and what a replay draws again of it: where chains start, what each step proposes, and
by which numbers a record names states.

A list's state is its item's number already. A state that is generated gets one from the step that proposed it,

    number = step * most + chain        (step 0: where the chain starts; most: the chains that there can be),

so that numbers need no counter, are the same whichever process writes them, and can be worked out again. A proposal
equal to the current state keeps the number the state has.

Draws come from the seed; texts that only the campaign's model can write are taken as recorded, but how much of the text
before it a move kept is drawn again. While the seed is not revealed, starts, proposals, base ratios and uniforms are
taken as recorded. What the votes make of them can be checked all the same. The uniform of a step that is still open is
not in the record; in its place stands one under which the votes leave the step open, if there is one.

tuning.json says what a warm-up has counted and chosen. The application writes with `tuned` and `ended_early` what a
replay compares by `chosen_in`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from sampler.acceptance import Verdict, acceptance_probability
from sampler.chain import Comparison, Plan, Position, Purpose, Space, ask, begin, stream
from sampler.config import ChainConfig
from sampler.kernels.mixture import Mixture
from sampler.kernels.suffix import Suffix
from sampler.kernels.warm_up import (
    CLOSE,
    FAR_AT_ONCE,
    MIN_SHARE_WON,
    MIN_VOTES,
    MOST_OF_THE_WAY,
    WarmUp,
    chosen_length,
    says_too_little,
    trials,
)
from sampler.objects import measure_of
from sampler.record import tables
from sampler.record.commitment import Commitment
from sampler.record.record import Difference, Record, Row, StepKey, of_file, quoted, reading, step_key
from sampler.spaces.catalog import Catalog
from sampler.spaces.texts import Writing

RULE_VERSION = 1
RULE = (
    f"Of the lengths with at least {MIN_SHARE_WON:.1%} of their votes for the proposal, the longest whose squared "
    f"jump per vote is at least {CLOSE:.0%} of the largest. The jump is that of the slowest property, in units of its "
    f"spread, less one standard error. If the proposals of the shortest length lie at least {FAR_AT_ONCE:.0%} as far, "
    f"squared, as those of the length that goes farthest, lengths beyond the first that goes {MOST_OF_THE_WAY:.0%} as "
    f"far are left out. The middle length if there are fewer than {MIN_VOTES} votes, or if no property has changed."
)
TUNED, MIDDLE, ENDED = (
    "chosen by the rule",
    "the middle of the grid: too little to choose by",
    "the warm-up was ended early",
)
# RDKit's properties may differ in their last digits from one version to the next.
_CLOSE_ENOUGH = 1e-6
# Of a whole number in a file, which may be too large for a float.
_LARGEST = 1e300


@dataclass(frozen=True)
class WarmUpStep:
    """A decided step of a warm-up.

    Args:
        chain, step: which one.
        votes, votes_for: counted votes of all judges, and those of them for the proposal.
        before, proposal: content and code of the state before the step, and of the one that was proposed.
        accepted: whether the chain moved there.
    """

    chain: int
    step: int
    votes: int
    votes_for: int
    before: tuple[str, str]
    proposal: tuple[str, str]
    accepted: bool

    @property
    def after(self) -> tuple[str, str]:
        """Content and code of the state after the step."""
        return self.proposal if self.accepted else self.before


def tuned(config: ChainConfig, steps: Sequence[WarmUpStep]) -> dict[str, Any]:
    """Return tuning.json for the decided steps of a warm-up, of the chains that the campaign started with.

    Raises:
        ValueError: the config has no warm-up, or an object cannot be measured.
    """
    warm_up, measure = config.warm_up, measure_of(config.space.model_dump(mode="json"))
    if warm_up is None or measure is None:
        raise ValueError("the config has no warm-up")

    def properties(state: tuple[str, str]) -> list[float]:
        measured = measure(*state)
        # A property that some molecule lacks is left out.
        return [number(measured.get(name)) for name in warm_up.properties]

    def number(value: float | None) -> float:
        return math.nan if value is None else float(value)

    tried = trials(
        warm_up.grid,
        [config.part_of(each.chain, each.step) or 0 for each in steps],
        [each.votes for each in steps],
        [each.votes_for for each in steps],
        [properties(each.before) for each in steps],
        [properties(each.proposal) for each in steps],
        [properties(each.after) for each in steps],
    )
    because = MIDDLE if says_too_little(tried) else TUNED
    told = [asdict(each) | {"share_won": each.share_won} for each in tried]
    return _described(warm_up, chosen_length(tried), because) | {"trials": told}


def ended_early(config: ChainConfig, moment: str) -> dict[str, Any]:
    """Return tuning.json of a warm-up that somebody has ended.

    Raises:
        ValueError: the config has no warm-up.
    """
    if config.warm_up is None:
        raise ValueError("the config has no warm-up")
    kernel: Any = config.kernel
    return _described(config.warm_up, int(kernel.length[0].length), ENDED) | {"ended_at": moment}


def _described(warm_up: WarmUp, length: int, because: str) -> dict[str, Any]:
    about = {"steps": warm_up.steps, "grid": list(warm_up.grid), "properties": list(warm_up.properties)}
    return about | {"rule_version": RULE_VERSION, "rule": RULE, "length": length, "because": because}


def chosen_in(parsed: Parsed) -> tuple[int | None, list[Difference]]:
    """Return how far the steps after the warm-up should walk, and where tuning.json differs.

    None where nothing is chosen yet, or where there is no warm-up.

    Raises:
        KeyError: a row or a file lacks something.
        ValueError: a cell or a value is not what it should be.
    """
    config, tuning = parsed.config, parsed.record.documents.get(tables.TUNING)
    if config.warm_up is None:
        expected = "none: the config has no warm-up"
        return None, [] if tuning is None else [of_file(tables.TUNING, "the file", "one", expected)]
    if tuning is None:
        return None, []
    if not isinstance(tuning, Mapping):
        raise ValueError(f"{tables.TUNING} must hold an object")
    if tuning["rule_version"] != RULE_VERSION:
        raise ValueError(f"{tables.TUNING} follows rule {tuning['rule_version']}, which this version does not know")
    if tuning["because"] == ENDED:
        if not isinstance(tuning["ended_at"], str) or not tuning["ended_at"]:
            raise ValueError(f"ended_at in {tables.TUNING} must be a time")
        return _compared(tuning, ended_early(config, tuning["ended_at"]))
    warm = list(_warm_up_steps(parsed, config.warm_up.steps))
    if missing := config.chains * config.warm_up.steps - len(warm):
        expected = f"none: {missing} steps are not decided"
        return None, [of_file(tables.TUNING, "the choice", str(tuning["length"]), expected)]
    return _compared(tuning, tuned(config, warm))


def _compared(tuning: Mapping[str, Any], expected: Mapping[str, Any]) -> tuple[int, list[Difference]]:
    """Return the length that was recomputed, and what differs."""
    return int(expected["length"]), list(_compare(tuning, expected, ""))


def _warm_up_steps(parsed: Parsed, last: int) -> Iterator[WarmUpStep]:
    held = {row["state_index"]: (row["content"], row["code"]) for row in parsed.states}
    for row in parsed.steps:
        chain, step = key = step_key(row)
        if row["verdict"] and step <= last and chain < parsed.config.chains:
            cast = parsed.counted_votes.get(key, ())
            votes_for = sum(vote["for_proposal"] == "1" for vote in cast)
            with reading(tables.STEPS.file, row):
                objects = held[row["current_state"]], held[row["proposal_state"]]
            yield WarmUpStep(chain, step, len(cast), votes_for, *objects, row["verdict"] == Verdict.ACCEPT.value)


def _compare(recorded: Any, expected: Any, what: str) -> Iterator[Difference]:
    if isinstance(expected, Mapping) and isinstance(recorded, Mapping):
        for name in {**recorded, **expected}:
            yield from _compare(recorded.get(name), expected.get(name), f"{what}.{name}" if what else name)
    elif isinstance(expected, list) and isinstance(recorded, list) and len(recorded) == len(expected):
        for index, (one, other) in enumerate(zip(recorded, expected, strict=True)):
            yield from _compare(one, other, f"{what}.{index}")
    elif not _is_same(recorded, expected):
        yield of_file(tables.TUNING, what or "the file", _short(recorded), _short(expected))


def _is_same(recorded: Any, expected: Any) -> bool:
    if isinstance(expected, float) and type(recorded) in (int, float):
        near = -_LARGEST < recorded < _LARGEST
        return near and math.isclose(recorded, expected, rel_tol=_CLOSE_ENOUGH, abs_tol=_CLOSE_ENOUGH)
    return type(recorded) is type(expected) and bool(recorded == expected)


def _short(value: object) -> str:
    return "one" if isinstance(value, Mapping) else str(value).lower() if value is None else str(value)[:80]


def state_number(chain: int, step: int, most: int) -> int:
    """Return the number of the state that step `step` of a chain proposes, one of `most` chains at most."""
    return step * most + chain


@dataclass(frozen=True)
class Parsed:
    """A record whose cells are what their columns hold, with its config read.

    Args:
        commitment: what it says of its seed; None where that is the seed alone.
    """

    record: Record
    config: ChainConfig
    commitment: Commitment | None

    @property
    def is_sealed(self) -> bool:
        """Whether the seed is not revealed yet: nothing that was drawn from it can be drawn again."""
        return self.commitment is not None and not self.commitment.is_open

    @property
    def starts(self) -> dict[int, int]:
        """The number of the state at which each chain starts, as recorded."""
        first = [row for row in self.record["samples"] if row["step"] == "0"]
        return {int(row["chain_index"]): int(row["state_index"]) for row in first}

    @cached_property
    def states(self) -> list[Row]:
        """The rows of states.csv by their numbers."""
        return sorted(self.record["states"], key=lambda row: int(row["state_index"]))

    @cached_property
    def steps(self) -> list[Row]:
        """The rows of steps.csv in order."""
        return sorted(self.record["steps"], key=step_key)

    @cached_property
    def counted_votes(self) -> dict[StepKey, list[Row]]:
        """The votes that counted, in order, by step; a step that had late votes only is there too."""
        by_step: dict[StepKey, list[Row]] = {}
        for row in self.record["votes"]:
            cast = by_step.setdefault(step_key(row), [])
            if row["number"]:
                cast.append(row)
        for cast in by_step.values():
            cast.sort(key=lambda row: int(row["number"]))
        return by_step

    @cached_property
    def tuned(self) -> tuple[int | None, list[Difference]]:
        """How far the steps after a warm-up walk, and where tuning.json differs."""
        with reading(tables.TUNING):
            return chosen_in(self)

    @cached_property
    def chains(self) -> int:
        """How many chains there are: those of the start, and those that events.csv says opened later."""
        rows = self.record["steps"] + self.record["samples"] if self.config.opens_on_demand else []
        last = max((int(row["chain_index"]) for row in rows), default=-1)
        return min(max(self.config.chains, last + 1), self.config.chains_at_most)

    def votes_for(self, key: StepKey) -> list[int]:
        """Return how many counted votes for the proposal each judge has given in a step."""
        counts = [0] * len(self.config.judges)
        for row in self.counted_votes.get(key, ()):
            counts[int(row["judge_index"])] += row["for_proposal"] == "1"
        return counts


class States:
    """The states of a record, looked up by a replay that has drawn them again.

    Args:
        rows: the rows of states.csv by their numbers.
        most: how many chains there can be.
        space: what reads the codes of states that chains made: a `Space`, or as much of one as can be had without its
            model. None for an uploaded list: each state is its number, its content is the researcher's, and nothing
            else says what it should be.

    Raises:
        RecordError: a row lacks a column, a number is none, or stands twice.
    """

    def __init__(self, rows: Sequence[Row], most: int, space: Space[Any] | None = None) -> None:
        self._space, self._most = space, most
        self._rows: dict[int, Row] = {}
        for row in rows:
            with reading(tables.STATES.file, row):
                if self._rows.setdefault(int(row["state_index"]), row) is not row:
                    raise ValueError("states.csv must list each state once")

    def state(self, number: int) -> Any:
        """Return the state that the record holds under a number.

        Raises:
            ValueError: there is no such state.
            RecordError: it cannot be read.
        """
        if number not in self._rows:
            raise ValueError(f"there is no state {number} in states.csv")
        if self._space is None:
            return number
        with reading(tables.STATES.file, self._rows[number]):
            return self._space.decode(self._rows[number]["code"])

    def number(self, chain: int, step: int, state: Any) -> int:
        """Return the number under which the record should hold the state that this step proposed."""
        return int(state) if self._space is None else state_number(chain, step, self._most)

    def row(self, number: int) -> Row | None:
        """Return the row of the state of this number; None if there is none."""
        return self._rows.get(number)

    def compare(self, number: int, state: Any) -> Iterator[tuple[str, str]]:
        """Yield what the record says and what it should say, where code or content of the state of this number differ.
        What another machine may round otherwise is no difference.

        Raises:
            KeyError: the record lacks a column.
        """
        row = self._rows.get(number)
        if self._space is None:
            return
        if row is None:
            yield "missing", quoted(self._space.content(state))
            return
        try:
            recorded = self._space.decode(row["code"])
        except ValueError as error:
            yield quoted(row["code"]), f"a state that can be read: {error}"
            return
        if not self._space.is_close(recorded, state):
            yield quoted(row["content"]), quoted(self._space.content(state))
        elif row["content"] != (content := self._space.content(recorded)):
            yield quoted(row["content"]), quoted(content)
        elif row["code"] != (code := self._space.encode(recorded)):
            yield quoted(row["code"]), quoted(code)


class Draws:
    """The draws of a campaign's chains, from the seed alone: what is drawn again is compared as a whole."""

    def __init__(self, plan: Plan[Any]) -> None:
        self._plan = plan

    def begin(self, chain: int) -> Position[Any]:
        """Return where a chain starts.

        Raises:
            ValueError: nothing says where.
        """
        return begin(self._plan, chain)

    def ask(self, position: Position[Any], row: Row) -> Comparison[Any]:
        """Return a position's next comparison; `row` is what steps.csv says of it.

        Raises:
            KeyError: the row lacks a column.
            ValueError: it names a state that cannot be read.
        """
        return ask(self._plan, position)

    def impossible(self, comparison: Comparison[Any]) -> Iterator[tuple[str, str]]:
        """Yield what a recorded proposal is and what it should be, where the step cannot have proposed it."""
        yield from ()


class Recorded(Draws):
    """Texts as the record has them; which move made them, and from which token on, is drawn again.

    Args:
        plan: of texts that a model writes, on as much of their space as there is without the model.
        index: the record's states.
        most: how many chains there can be.
    """

    def __init__(self, plan: Plan[Any], index: States, most: int) -> None:
        super().__init__(plan)
        self._index, self._most = index, most

    def begin(self, chain: int) -> Position[Any]:
        """Return the start that is recorded."""
        return Position(chain, 0, self._index.state(state_number(chain, 0, self._most)))

    def ask(self, position: Position[Any], row: Row) -> Comparison[Any]:
        """Return the comparison with the proposal of the row, and the base ratio of the move that the step drew."""
        step, plan = position.step + 1, self._plan
        proposal = self._index.state(int(row["proposal_state"]))
        _, move = self._drawn(position.chain, step, position.state)
        log_r0 = move.log_r0(position.state, proposal) if move else 0.0
        uniform = float(stream(plan.seed, position.chain, step, Purpose.UNIFORM).random())
        return Comparison(position.chain, step, position.state, proposal, log_r0, uniform, plan.max_votes)

    def impossible(self, comparison: Comparison[Any]) -> Iterator[tuple[str, str]]:
        """Yield where the proposal does not begin as the text before it up to the cut that the step drew."""
        kept, _ = self._drawn(comparison.chain, comparison.step, comparison.current)
        before, after = comparison.current.tokens, comparison.proposal.tokens
        if kept >= len(before) and before != after:
            yield "another text", "the same text: the cut lies behind its end"
        elif before[:kept] != after[:kept]:
            yield "another beginning", f"the same first {kept} tokens"

    def _drawn(self, chain: int, step: int, state: Writing) -> tuple[int, Suffix | None]:
        """Return how many tokens the step keeps, and the suffix move that does so; None for a fresh draw."""
        rng = stream(self._plan.seed, chain, step, Purpose.PROPOSAL)
        kernel = self._plan.kernel_at(step)
        while isinstance(kernel, Mixture):
            kernel = kernel.choose(rng)
        return (kernel.cut(rng, state), kernel) if isinstance(kernel, Suffix) else (0, None)


class Sealed(Draws):
    """Draws as recorded, until the seed is revealed; whether a step can have proposed what it did shows only then."""

    def __init__(self, parsed: Parsed, index: States) -> None:
        self._parsed, self._index, self._starts = parsed, index, parsed.starts

    def begin(self, chain: int) -> Position[Any]:
        """Return the start that is recorded.

        Raises:
            ValueError: none is.
        """
        if chain not in self._starts:
            raise ValueError(f"there is no start of chain {chain} in samples.csv")
        return Position(chain, 0, self._index.state(self._starts[chain]))

    def ask(self, position: Position[Any], row: Row) -> Comparison[Any]:
        """Return the comparison of the row."""
        proposal = self._index.state(int(row["proposal_state"]))
        uniform, log_r0 = float(row["uniform"]) if row["uniform"] else self._open_uniform(row), float(row["log_r0"])
        step, max_votes = position.step + 1, self._parsed.config.max_votes
        return Comparison(position.chain, step, position.state, proposal, log_r0, uniform, max_votes)

    def _open_uniform(self, row: Row) -> float:
        """Return the least uniform at which the missing votes could still reject, below 1."""
        parsed = self._parsed
        if parsed.config.rule.evidence != "votes":
            return 0.0
        votes_for = parsed.votes_for(step_key(row))
        lowest = float(acceptance_probability(float(row["log_r0"]), votes_for, parsed.config.max_votes))
        return min(lowest, math.nextafter(1.0, 0.0))


def opened(parsed: Parsed) -> tuple[Draws, States]:
    """Return where the draws of a record's chains come from, and its states.

    Raises:
        RecordError: the states are not what the config's space can have.
    """
    draws, index = _drawn_again(parsed)
    return (Sealed(parsed, index) if parsed.is_sealed else draws), index


def _drawn_again(parsed: Parsed) -> tuple[Draws, States]:
    config, states, (walk_length, _) = parsed.config, parsed.states, parsed.tuned
    most = config.chains_at_most
    if not config.generates:
        with reading(tables.STATES.file):
            catalog = _catalog(states)
        return Draws(config.build(catalog, walk_length=walk_length)), States(states, most)
    if config.space.kind == "model-texts":
        texts = config.space.build(None)
        index = States(states, most, texts)
        return Recorded(config.plan_on(texts, walk_length), index, most), index
    plan: Plan[Any] = config.build(walk_length=walk_length)
    return Draws(plan), States(states, most, cast(Space[Any], plan.space))


def _catalog(states: Sequence[Row]) -> Catalog:
    for number, row in enumerate(states):
        if int(row["state_index"]) != number:
            with reading(tables.STATES.file, row):
                raise ValueError("states must be numbered from 0 without a gap")
    graph = tuple(tuple(int(other) for other in row["neighbours"].split()) for row in states)
    return Catalog(np.array([float(row["weight"]) for row in states]), graph if any(graph) else ())
