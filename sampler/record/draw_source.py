"""Where a replay gets a chain's draws from: drawn again or, where only the campaign's model could, as recorded.

Uniforms are drawn again in either case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from sampler.chain import Comparison, Plan, Position, ask, begin
from sampler.kernels.suffix import log_ratio_of_lengths
from sampler.recipe import Recipe
from sampler.record.state_index import GeneratedIndex, state_number
from sampler.spaces.texts.space import Writing
from sampler.streams import Purpose, stream


class DrawSource(Protocol):
    """The draws of a campaign's chains."""

    def begin(self, chain: int) -> Position[Any]:
        """Return where a chain starts."""
        ...

    def ask(self, position: Position[Any], row: Mapping[str, str]) -> Comparison[Any]:
        """Return a position's next comparison; `row` is what steps.csv says of it.

        Raises:
            KeyError: the row lacks a column.
            ValueError: it names a state that cannot be read.
        """
        ...


class Redrawn:
    """Draws from the seed alone."""

    def __init__(self, plan: Plan[Any]) -> None:
        self._plan = plan

    def begin(self, chain: int) -> Position[Any]:
        """Return where a chain starts."""
        return begin(self._plan, chain)

    def ask(self, position: Position[Any], row: Mapping[str, str]) -> Comparison[Any]:
        """Return the comparison that the plan draws, whatever the row says."""
        return ask(self._plan, position)


class Recorded:
    """Texts as the record has them, with the base ratio worked out from their lengths.

    A mixture does not say which of its parts made a proposal: of the ratios that its parts give, the recorded one is
    taken if it is among them.
    """

    def __init__(self, recipe: Recipe, index: GeneratedIndex) -> None:
        self._recipe, self._index = recipe, index

    def begin(self, chain: int) -> Position[Any]:
        """Return the start that is recorded."""
        return Position(chain, 0, self._index.state(state_number(chain, 0, self._recipe.chains)))

    def ask(self, position: Position[Any], row: Mapping[str, str]) -> Comparison[Any]:
        """Return the comparison with the proposal of the row."""
        step, recipe = position.step + 1, self._recipe
        proposal = self._index.state(int(row["proposal"]))
        possible = self._ratios(position.state, proposal)
        log_r0 = min(possible, key=lambda ratio: abs(ratio - float(row["log_r0"])))
        uniform = float(stream(recipe.seed, position.chain, step, Purpose.UNIFORM).random())
        return Comparison(position.chain, step, position.state, proposal, log_r0, uniform, recipe.budgets)

    def _ratios(self, current: Writing, proposal: Writing) -> set[float]:
        if current == proposal:
            return {0.0}
        return {
            log_ratio_of_lengths(current, proposal) if getattr(part, "cut", "") == "length" else 0.0
            for part in self._recipe.components
        }
