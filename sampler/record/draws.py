"""What a replay draws again: where chains start, what each step proposes, and by which numbers a record names states.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np

from sampler.acceptance import acceptance_probability
from sampler.chain import Comparison, Plan, Position, ask, begin
from sampler.config import ChainConfig
from sampler.kernels.mixture import Mixture
from sampler.kernels.suffix import Suffix
from sampler.record import tables
from sampler.record.differences import Row, StepKey, quoted, reading, step_key
from sampler.spaces.catalog import Catalog
from sampler.spaces.space import Space
from sampler.spaces.texts import RecordedTexts, Writing
from sampler.streams import Purpose, stream


def state_number(chain: int, step: int, most: int) -> int:
    """Return the number of the state that step `step` of a chain proposes, one of `most` chains at most."""
    return step * most + chain


class Reader(Protocol):
    """The part of a `Space` that reads a record."""

    def decode(self, code: str) -> Any:
        """Return the state of a code."""
        ...

    def is_close(self, one: Any, other: Any) -> bool:
        """True when two states are the same but for rounding."""
        ...

    def content(self, state: Any) -> str:
        """Return what a person reads."""
        ...


class StateIndex(Protocol):
    """The states of a record, looked up by a replay that has drawn them again."""

    def state(self, number: int) -> Any:
        """Return the state that the record holds under a number.

        Raises:
            ValueError: there is none, or it cannot be read.
        """
        ...

    def number(self, chain: int, step: int, state: Any) -> int:
        """Return the number under which the record should hold the state that this step proposed."""
        ...

    def row(self, number: int) -> Row | None:
        """Return the row of the state of this number; None if there is none."""
        ...

    def compare(self, number: int, state: Any) -> Iterator[tuple[str, str]]:
        """Yield what the record says and what it should say, where the state of this number is another one.

        Raises:
            KeyError: the record lacks a column.
        """
        ...


class ListedStates:
    """Those of an uploaded list: each is its number. Their content is the researcher's, and nothing else says what it
    should be.
    """

    def __init__(self, count: int) -> None:
        self._count = count

    def state(self, number: int) -> int:
        """Return the number, if there is such a state.

        Raises:
            ValueError: there is none.
        """
        if not 0 <= number < self._count:
            raise ValueError(f"there is no state {number} in states.csv")
        return number

    def number(self, chain: int, step: int, state: int) -> int:
        """Return the item's place in the list."""
        return state

    def row(self, number: int) -> None:
        """Return nothing: nothing is said of these rows."""

    def compare(self, number: int, state: int) -> Iterator[tuple[str, str]]:
        """Yield nothing."""
        yield from ()


class GeneratedIndex:
    """States made as the chains went, each with the code that `Space.encode` wrote.

    Args:
        space: what reads the codes: a `Space`, or as much of one as can be had without its model.
        most: how many chains there can be.
        rows: the rows of states.csv.

    Raises:
        KeyError: a row lacks a column.
        ValueError: a number is none, or stands twice.
    """

    def __init__(self, space: Reader, most: int, rows: Sequence[Row]) -> None:
        self._space, self._most = space, most
        self._rows: dict[int, Row] = {}
        for row in rows:
            with reading(tables.STATES.file, row):
                if self._rows.setdefault(int(row["state_index"]), row) is not row:
                    raise ValueError("states.csv must list each state once")

    def state(self, number: int) -> Any:
        """Return the state that the record holds under a number.

        Raises:
            KeyError: a row lacks a column.
            ValueError: there is no such state, or it cannot be read.
        """
        if number not in self._rows:
            raise ValueError(f"there is no state {number} in states.csv")
        with reading(tables.STATES.file, self._rows[number]):
            return self._space.decode(self._rows[number]["code"])

    def number(self, chain: int, step: int, state: Any) -> int:
        """Return the number that the step gives."""
        return state_number(chain, step, self._most)

    def row(self, number: int) -> Row | None:
        """Return the row of the state of this number; None if there is none."""
        return self._rows.get(number)

    def compare(self, number: int, state: Any) -> Iterator[tuple[str, str]]:
        """Yield where code or content differ. What another machine may round otherwise is no difference."""
        row = self._rows.get(number)
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


class DrawSource(Protocol):
    """The draws of a campaign's chains."""

    def begin(self, chain: int) -> Position[Any]:
        """Return where a chain starts."""
        ...

    def ask(self, position: Position[Any], row: Row) -> Comparison[Any]:
        """Return a position's next comparison; `row` is what steps.csv says of it.

        Raises:
            KeyError: the row lacks a column.
            ValueError: it names a state that cannot be read.
        """
        ...

    def impossible(self, comparison: Comparison[Any]) -> Iterator[tuple[str, str]]:
        """Yield what a recorded proposal is and what it should be, where the step cannot have proposed it."""
        ...


class Redrawn:
    """Draws from the seed alone."""

    def __init__(self, plan: Plan[Any]) -> None:
        self._plan = plan

    def begin(self, chain: int) -> Position[Any]:
        """Return where a chain starts."""
        return begin(self._plan, chain)

    def ask(self, position: Position[Any], row: Row) -> Comparison[Any]:
        """Return the comparison that the plan draws, whatever the row says."""
        return ask(self._plan, position)

    def impossible(self, comparison: Comparison[Any]) -> Iterator[tuple[str, str]]:
        """Yield nothing: what is drawn again is compared as a whole."""
        yield from ()


class Recorded:
    """Texts as the record has them; which move made them, and from which token on, is drawn again.

    Args:
        plan: of texts that a model writes, on as much of their space as there is without the model.
        index: the record's states.
        most: how many chains there can be.
    """

    def __init__(self, plan: Plan[Any], index: GeneratedIndex, most: int) -> None:
        self._plan, self._index, self._most = plan, index, most

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


class Awaited:
    """Draws as recorded, until the seed is told.

    Args:
        config: of the record.
        index: the record's states.
        starts: the number of the state at which each chain starts.
        votes_for: how many counted votes for the proposal each judge has given in a step.
    """

    def __init__(
        self,
        config: ChainConfig,
        index: StateIndex,
        starts: Mapping[int, int],
        votes_for: Callable[[StepKey], Sequence[int]],
    ) -> None:
        self._config, self._index, self._starts, self._votes_for = config, index, starts, votes_for

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
        step, budgets = position.step + 1, self._config.budgets
        return Comparison(position.chain, step, position.state, proposal, log_r0, uniform, budgets)

    def impossible(self, comparison: Comparison[Any]) -> Iterator[tuple[str, str]]:
        """Yield nothing: whether the step can have proposed it shows once the seed is told."""
        yield from ()

    def _open_uniform(self, row: Row) -> float:
        """Return the least uniform at which the missing votes could still reject, below 1."""
        if self._config.rule.evidence != "votes":
            return 0.0
        votes_for = self._votes_for(step_key(row))
        lowest = float(acceptance_probability(float(row["log_r0"]), votes_for, self._config.budgets))
        return min(lowest, math.nextafter(1.0, 0.0))


def opened(
    config: ChainConfig,
    states: Sequence[Row],
    walk_length: int | None,
    starts: Mapping[int, int] | None,
    votes_for: Callable[[StepKey], Sequence[int]],
) -> tuple[DrawSource, StateIndex]:
    """Return where the draws of a record's chains come from, and its states.

    Args:
        states: the rows of states.csv by their numbers.
        walk_length: of the steps after a warm-up.
        starts: the number of the state at which each chain starts, while the seed is not told; else None.
        votes_for: as in `Awaited`.

    Raises:
        RecordError: the states are not what the config's space can have.
    """
    draws, index = _drawn_again(config, states, walk_length)
    return (draws if starts is None else Awaited(config, index, starts, votes_for)), index


def _drawn_again(
    config: ChainConfig, states: Sequence[Row], walk_length: int | None
) -> tuple[DrawSource, ListedStates | GeneratedIndex]:
    if not config.generates:
        with reading(tables.STATES.file):
            catalog = _catalog(states)
        return Redrawn(config.build(catalog, walk_length=walk_length)), ListedStates(len(states))
    if config.space.kind == "model-texts":
        texts = RecordedTexts(config.space)
        index = GeneratedIndex(texts, config.chains_at_most, states)
        return Recorded(config.plan_on(texts, walk_length), index, config.chains_at_most), index
    plan: Plan[Any] = config.build(walk_length=walk_length)
    return Redrawn(plan), GeneratedIndex(cast(Space[Any], plan.space), config.chains_at_most, states)


def _catalog(states: Sequence[Row]) -> Catalog:
    for number, row in enumerate(states):
        if int(row["state_index"]) != number:
            with reading(tables.STATES.file, row):
                raise ValueError("states must be numbered from 0 without a gap")
    graph = tuple(tuple(int(other) for other in row["neighbours"].split()) for row in states)
    return Catalog(np.array([float(row["weight"]) for row in states]), graph if any(graph) else ())
