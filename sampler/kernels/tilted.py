"""A walk that a score pulls: its inner chain is reversible for p0·exp(t), so log r0 = t(x) - t(x').

t is any fixed, bounded function of the state, known before the chain's first step with it. With t = 0 this is the plain
walk. Each value of t that a mixture draws keeps its own base ratio.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic

import numpy as np

from sampler.chain import Kernel, Proposal, State
from sampler.kernels.inner_chain import after_steps
from sampler.kernels.surrogates.surrogate import UNIT


class TiltedWalk(Generic[State]):
    """Propose the state after L steps of a kernel's chain for p0·exp(t); log r0 = t(x) - t(x').

    Args:
        kernel: what each step proposes with; its base ratio must be exact.
        length: L, at least 1.
        tilt: t of a state, in units of 2^-20: rounded once for each state, never as a difference.
    """

    def __init__(self, kernel: Kernel[State], length: int, tilt: Callable[[State], int]) -> None:
        self._inner, self._length, self._tilt = _Tilted(kernel, tilt), length, tilt

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]:
        """Walk from `state`. It may be where the walk ends."""
        end = after_steps(self._inner, rng, state, self._length)
        return Proposal(end, (self._tilt(state) - self._tilt(end)) * UNIT)


class _Tilted(Generic[State]):
    """A kernel whose base ratio is that against p0·exp(t)."""

    def __init__(self, kernel: Kernel[State], tilt: Callable[[State], int]) -> None:
        self._kernel, self._tilt = kernel, tilt

    def propose(self, rng: np.random.Generator, state: State) -> Proposal[State]:
        proposal = self._kernel.propose(rng, state)
        # Mostly the way back from a state is not walked, so only what may be taken is measured.
        if proposal.log_r0 == float("-inf"):
            return proposal
        pull = (self._tilt(proposal.state) - self._tilt(state)) * UNIT
        return Proposal(proposal.state, proposal.log_r0 + pull)
