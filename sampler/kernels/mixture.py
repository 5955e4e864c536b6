"""A mixture of kernels with fixed weights.

Each component's move is corrected by the component's own base ratio. The marginal transition is then a convex
combination of kernels each reversible for the target, hence reversible itself; the weights never appear in r0.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, groupby
from typing import Annotated, Any, Generic, Literal

import numpy as np
from pydantic import AfterValidator, ConfigDict, Field

from sampler.chain import Kernel, Proposal, State, after_steps, propose_many
from sampler.declared import Declared, ui
from sampler.kernels.crank_nicolson import CrankNicolsonConfig
from sampler.kernels.discrete import IndependentConfig, NeighboursConfig
from sampler.kernels.fragments import FragmentsConfig
from sampler.kernels.suffix import SuffixConfig

ComponentConfig = IndependentConfig | NeighboursConfig | FragmentsConfig | SuffixConfig | CrankNicolsonConfig


def _weighed(things: tuple[Any, ...]) -> tuple[Any, ...]:
    total = math.fsum(thing.weight for thing in things)
    if abs(total - 1) > 1e-9:
        raise ValueError(f"the weights must sum to 1, not {total:g}")
    return things


SUM_TO_ONE = AfterValidator(_weighed)
"""Of a tuple of things that each have a weight."""


class MixturePart(Declared):
    """One component and the probability that a step uses it."""

    weight: float = Field(gt=0, le=1, title="Share of the moves, in percent", json_schema_extra=ui(unit="percent"))
    kernel: Annotated[ComponentConfig, Field(discriminator="kind", title="Move")]


class MixtureConfig(Declared):
    """The part of a config that says: at each step use one of these kernels."""

    model_config = ConfigDict(title="One of several moves, drawn by lot")

    kind: Literal["mixture"] = "mixture"
    parts: Annotated[tuple[MixturePart, ...], SUM_TO_ONE] = Field(
        min_length=1, max_length=8, title="Moves", json_schema_extra=ui(rows="Add a move")
    )

    @property
    def components(self) -> tuple[ComponentConfig, ...]:
        """The parts' kernels."""
        return tuple(part.kernel for part in self.parts)

    def build(self, space: Any) -> Mixture[Any]:
        """Return the kernel on this space, which every part must move in."""
        return Mixture([part.weight for part in self.parts], [part.kernel.build(space) for part in self.parts])


class Weights:
    """Indices 0 to k - 1, each drawn with its probability.

    Args:
        weights: positive, sum 1, shape (k,).
    """

    def __init__(self, weights: Sequence[float]) -> None:
        self._cumulative = list(accumulate(weights))

    def index(self, number: float) -> int:
        """Return the index in whose share a uniform number lies."""
        # Rounding may leave the sum a little below 1.
        return min(bisect_right(self._cumulative, number), len(self._cumulative) - 1)


class Mixture(Generic[State]):
    """Use component j with probability weights[j], whatever the state; return that component's log r0.

    Args:
        weights: positive, sum 1, shape (k,).
        components: k kernels on one space.
    """

    def __init__(self, weights: Sequence[float], components: Sequence[Kernel[State]]) -> None:
        if len(weights) != len(components) or not components:
            raise ValueError("weights must give one number for each component")
        self._shares = Weights(weights)
        self._components = tuple(components)
        self.is_fast = all(getattr(component, "is_fast", False) for component in self._components)
        """True where every component is; see `Plan.is_fast_at`."""

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]:
        """Choose a component, then draw from it."""
        return self.choose(rng).propose(rng, state)

    def walk(self, rng: np.random.Generator, state: State, steps: int) -> State:
        """Return the state after so many steps without judges, each by a component of its own; see `after_steps`."""
        chosen = map(self._shares.index, rng.random(steps).tolist())
        for index, run in groupby(chosen):
            state = after_steps(self._components[index], rng, state, sum(1 for _ in run))
        return state

    def propose_batch(self, rngs: Sequence[np.random.Generator], states: Sequence[State]) -> list[Proposal[State]]:
        """Return what `propose` gives for each row, by one call of each component that can draw for many at once."""
        chosen = [self.choose(rng) for rng in rngs]
        proposals: dict[int, Proposal[State]] = {}
        for component in self._components:
            rows = [row for row, each in enumerate(chosen) if each is component and row not in proposals]
            drawn = propose_many(component, [rngs[row] for row in rows], [states[row] for row in rows])
            proposals |= dict(zip(rows, drawn, strict=True))
        return [proposals[row] for row in range(len(states))]

    def choose(self, rng: np.random.Generator) -> Kernel[State]:
        """Draw the component that proposes: the first number of a proposal."""
        return self._components[self._shares.index(rng.random())]
