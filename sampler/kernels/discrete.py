"""Independent draws from p0, and moves to a neighbour in a list.

Independent: q(x'|x) = p0(x'), so r0 = p0(x') p0(x) / (p0(x) p0(x')) = 1.

Neighbours: drawn uniformly, q(x'|x) = 1/deg(x) on an undirected graph. Degrees differ once nearest-neighbour lists are
made symmetric, so the ratio does not vanish:

    log r0 = log p0(x') - log p0(x) + log deg(x) - log deg(x').
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, Literal

import numpy as np
from pydantic import ConfigDict

from sampler.chain import Proposal, Refreshing, State
from sampler.declared import Declared
from sampler.spaces.catalog import Catalog

# Differences of log p0(x)/deg(x) below this are rounding, and reject less than once in a thousand million steps.
_LEVEL = 1e-9


class IndependentConfig(Declared):
    """The part of a config that says: propose by a fresh draw from p0."""

    model_config = ConfigDict(title="A fresh draw from all objects")

    # Of molecules p0 is known up to a constant only: no fresh draws there.
    moves_in: ClassVar[tuple[str, ...]] = ("catalog", "texts", "model-texts", "images", "model-images")
    """The kinds of space."""
    kind: Literal["independent"] = "independent"

    def build(self, space: Refreshing[State]) -> Independent[State]:
        """Return the kernel on this space."""
        return Independent(space)


class Independent(Generic[State]):
    """Propose x' ~ p0 whatever x is; log r0 = 0."""

    def __init__(self, space: Refreshing[State]) -> None:
        self._space = space

    @property
    def is_fast(self) -> bool:
        """True where the space's fresh draws are; see `Plan.is_fast_at`."""
        return bool(getattr(self._space, "is_fast", False))

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]:
        """Draw x' ~ p0. It may be `state` itself."""
        return Proposal(self._space.refresh(rng, state), 0.0)

    def walk(self, rng: np.random.Generator, state: State, steps: int) -> State:
        """Return the state after so many steps without judges: the last draw. See `chain.after_steps`."""
        return self._space.refresh(rng, state)

    def propose_batch(self, rngs: Sequence[np.random.Generator], states: Sequence[State]) -> list[Proposal[State]]:
        """Return what `propose` gives for each row, all at once where the space can draw so."""
        many: Callable[..., Sequence[State]] | None = getattr(self._space, "refresh_batch", None)
        if many is None:
            return [self.propose(rng, state) for rng, state in zip(rngs, states, strict=True)]
        return [Proposal(drawn, 0.0) for drawn in many(rngs, states)]


class NeighboursConfig(Declared):
    """The part of a config that says: propose one of the current item's nearest neighbours."""

    model_config = ConfigDict(title="An object similar to the current one")

    moves_in: ClassVar[tuple[str, ...]] = ("catalog",)
    """The kinds of space."""
    kind: Literal["neighbours"] = "neighbours"

    def build(self, catalog: Catalog) -> Neighbours:
        """Return the kernel on this catalog."""
        return Neighbours(catalog)


class Neighbours:
    """Propose one of the current item's neighbours, each with the same probability.

    Raises:
        ValueError: the catalog has no neighbour graph, or an item in it has no neighbour.
    """

    is_fast = True
    """A draw looks at one row of the graph; see `Plan.is_fast_at`."""

    def __init__(self, catalog: Catalog) -> None:
        if not catalog.neighbours or not all(catalog.neighbours):
            raise ValueError("neighbours must give every item of the catalog at least one neighbour")
        self._catalog, self._neighbours = catalog, catalog.neighbours
        self._log_target: list[float] = (catalog.log_p0 - np.log([len(row) for row in catalog.neighbours])).tolist()

    def propose(self, rng: np.random.Generator, state: int) -> Proposal[int]:
        """Draw a neighbour of `state`."""
        row = self._neighbours[state]
        proposal = row[min(int(rng.random() * len(row)), len(row) - 1)]
        return Proposal(proposal, self._log_target[proposal] - self._log_target[state])

    def alternates(self) -> bool:
        """True when every step without judges changes sides between two halves: the graph is bipartite, none rejected.

        None is rejected where p0(x)/deg(x) is the same for all x.
        """
        is_level = max(self._log_target) - min(self._log_target) < _LEVEL
        return is_level and self._catalog.is_bipartite()

    def walk(self, rng: np.random.Generator, state: int, steps: int) -> int:
        """Return the state after so many steps without judges; see `chain.after_steps`."""
        # A loop of some hundred nanoseconds a step: nothing is made but the numbers, all at once.
        neighbours, log_target = self._neighbours, self._log_target
        numbers = rng.random(2 * steps).tolist()
        for uniform, threshold in zip(numbers[::2], numbers[1::2], strict=True):
            row = neighbours[state]
            proposal = row[int(uniform * len(row))]
            log_r0 = log_target[proposal] - log_target[state]
            if log_r0 >= 0 or threshold < math.exp(log_r0):
                state = proposal
        return state
