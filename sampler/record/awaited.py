"""The draws of a record whose seed is not told yet: starts, proposals, base ratios and uniforms as they are recorded.

What the votes make of them can be checked all the same. The uniform of a step that is still open is not in the record;
in its place stands one under which the votes leave the step open, if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol

from sampler.acceptance import acceptance_probability
from sampler.chain import Comparison, Position
from sampler.config import ChainConfig
from sampler.record.cells import whole_numbers


class States(Protocol):
    """The states of a record, by their numbers."""

    def state(self, number: int) -> Any:
        """Return the state of a number.

        Raises:
            ValueError: there is none, or it cannot be read.
        """
        ...


class ListedStates:
    """Those of an uploaded list: each is its number."""

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


class Awaited:
    """Draws as recorded, until the seed is told.

    Args:
        config: of the record.
        states: of the record.
        starts: the number of the state at which each chain starts.
    """

    waits_for_seed: ClassVar[bool] = True

    def __init__(self, config: ChainConfig, states: States, starts: Mapping[int, int]) -> None:
        self._config, self._states, self._starts = config, states, starts

    def begin(self, chain: int) -> Position[Any]:
        """Return the start that is recorded.

        Raises:
            ValueError: none is.
        """
        if chain not in self._starts:
            raise ValueError(f"there is no start of chain {chain} in samples.csv")
        return Position(chain, 0, self._states.state(self._starts[chain]))

    def ask(self, position: Position[Any], row: Mapping[str, str]) -> Comparison[Any]:
        """Return the comparison of the row."""
        # The same object, so that it is equal to itself in every space.
        is_identity = row["proposal"] == row["current"]
        proposal = position.state if is_identity else self._states.state(int(row["proposal"]))
        uniform = float(row["uniform"]) if row["uniform"] else self._open_uniform(row)
        budgets = self._config.budgets
        return Comparison(
            position.chain, position.step + 1, position.state, proposal, float(row["log_r0"]), uniform, budgets
        )

    def impossible(self, comparison: Comparison[Any]) -> Iterator[tuple[str, str]]:
        """Yield nothing: whether the step can have proposed it shows once the seed is told."""
        yield from ()

    def _open_uniform(self, row: Mapping[str, str]) -> float:
        """Return the least uniform at which the missing votes could still reject, below 1."""
        if self._config.rule.evidence != "votes":
            return 0.0
        votes_for = whole_numbers(row["votes_for"])
        lowest = float(acceptance_probability(float(row["log_r0"]), votes_for, self._config.budgets))
        return min(lowest, math.nextafter(1.0, 0.0))
