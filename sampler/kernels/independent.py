"""Independent draws from p0: q(x'|x) = p0(x'), so r0 = p0(x') p0(x) / (p0(x) p0(x')) = 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, Literal

import numpy as np
from pydantic import ConfigDict

from sampler.chain import Proposal, State
from sampler.declared import Declared
from sampler.spaces.space import Refreshing


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
    def is_cheap(self) -> bool:
        """True where the space's fresh draws are; see `Plan.is_cheap_at`."""
        return bool(getattr(self._space, "is_cheap", False))

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]:
        """Draw x' ~ p0. It may be `state` itself."""
        return Proposal(self._space.refresh(rng, state), 0.0)

    def walk(self, rng: np.random.Generator, state: State, steps: int) -> State:
        """Return the state after so many steps without judges: the last draw. See `inner_chain`."""
        return self._space.refresh(rng, state)

    def propose_batch(self, rngs: Sequence[np.random.Generator], states: Sequence[State]) -> list[Proposal[State]]:
        """Return what `propose` gives for each row, all at once where the space can draw so."""
        many: Callable[..., Sequence[State]] | None = getattr(self._space, "refresh_batch", None)
        if many is None:
            return [self.propose(rng, state) for rng, state in zip(rngs, states, strict=True)]
        return [Proposal(drawn, 0.0) for drawn in many(rngs, states)]
