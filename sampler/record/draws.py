"""A record whose config is read, and what a replay draws again of it: where chains start, what each step proposes, and
by which numbers a record names states.

A list's state is its item's number already. A state that is generated gets one from the step that proposed it,

    number = step * most + chain        (step 0: where the chain starts; most: the chains that there can be),

so that numbers need no counter, are the same whichever process writes them, and can be worked out again. A proposal
equal to the current state keeps the number the state has.

Draws come from the seed; texts that only the campaign's model can write are taken as recorded, but how much of the text
before it a move kept is drawn again. While the seed is not told, starts, proposals, base ratios and uniforms are taken
as recorded. What the votes make of them can be checked all the same. The uniform of a step that is still open is not in
the record; in its place stands one under which the votes leave the step open, if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np

from sampler.acceptance import acceptance_probability
from sampler.chain import Comparison, Plan, Position, ask, begin
from sampler.config import ChainConfig
from sampler.kernels.mixture import Mixture
from sampler.kernels.suffix import Suffix
from sampler.record import tables
from sampler.record.commitment import Commitment
from sampler.record.record import Difference, Record, Row, StepKey, quoted, reading, step_key
from sampler.record.tuning_record import chosen_in
from sampler.spaces.catalog import Catalog
from sampler.spaces.space import Space
from sampler.spaces.texts import Writing
from sampler.streams import Purpose, stream


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
    def waits_for_seed(self) -> bool:
        """Whether the seed is not told yet: nothing that was drawn from it can be drawn again."""
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
        rows = self.record["steps"] + self.record["samples"] if self.config.is_elastic else []
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
        return Comparison(position.chain, step, position.state, proposal, log_r0, uniform, plan.budgets)

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


class Awaited(Draws):
    """Draws as recorded, until the seed is told; whether a step can have proposed what it did shows only then."""

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
        # The same object, so that it is equal to itself in every space.
        is_identity = row["proposal_state"] == row["current_state"]
        proposal = position.state if is_identity else self._index.state(int(row["proposal_state"]))
        uniform, log_r0 = float(row["uniform"]) if row["uniform"] else self._open_uniform(row), float(row["log_r0"])
        step, budgets = position.step + 1, self._parsed.config.budgets
        return Comparison(position.chain, step, position.state, proposal, log_r0, uniform, budgets)

    def _open_uniform(self, row: Row) -> float:
        """Return the least uniform at which the missing votes could still reject, below 1."""
        parsed = self._parsed
        if parsed.config.rule.evidence != "votes":
            return 0.0
        votes_for = parsed.votes_for(step_key(row))
        lowest = float(acceptance_probability(float(row["log_r0"]), votes_for, parsed.config.budgets))
        return min(lowest, math.nextafter(1.0, 0.0))


def opened(parsed: Parsed) -> tuple[Draws, States]:
    """Return where the draws of a record's chains come from, and its states.

    Raises:
        RecordError: the states are not what the config's space can have.
    """
    draws, index = _drawn_again(parsed)
    return (Awaited(parsed, index) if parsed.waits_for_seed else draws), index


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
