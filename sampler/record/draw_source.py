"""Where a replay gets a chain's draws from: drawn again or, where only the campaign's model could, as recorded.

Uniforms are drawn again in either case, and of a text that only a model can write also how much of the text before it
the move kept: that is drawn before anything is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol

from sampler.chain import Comparison, Plan, Position, ask, begin
from sampler.kernels.mixture import Mixture
from sampler.kernels.suffix import Suffix
from sampler.record.state_index import GeneratedIndex, state_number
from sampler.spaces.texts.space import Writing
from sampler.streams import Purpose, stream


class DrawSource(Protocol):
    """The draws of a campaign's chains."""

    waits_for_seed: ClassVar[bool]
    """Whether the seed is not told yet, so that nothing is drawn again."""

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

    def impossible(self, comparison: Comparison[Any]) -> Iterator[tuple[str, str]]:
        """Yield what a recorded proposal is and what it should be, where the step cannot have proposed it."""
        ...


class Redrawn:
    """Draws from the seed alone."""

    waits_for_seed: ClassVar[bool] = False

    def __init__(self, plan: Plan[Any]) -> None:
        self._plan = plan

    def begin(self, chain: int) -> Position[Any]:
        """Return where a chain starts."""
        return begin(self._plan, chain)

    def ask(self, position: Position[Any], row: Mapping[str, str]) -> Comparison[Any]:
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

    waits_for_seed: ClassVar[bool] = False

    def __init__(self, plan: Plan[Any], index: GeneratedIndex, most: int) -> None:
        self._plan, self._index, self._most = plan, index, most

    def begin(self, chain: int) -> Position[Any]:
        """Return the start that is recorded."""
        return Position(chain, 0, self._index.state(state_number(chain, 0, self._most)))

    def ask(self, position: Position[Any], row: Mapping[str, str]) -> Comparison[Any]:
        """Return the comparison with the proposal of the row, and the base ratio of the move that the step drew."""
        step, plan = position.step + 1, self._plan
        proposal = self._index.state(int(row["proposal"]))
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
