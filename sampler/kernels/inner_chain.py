"""The chain of a kernel without judges: it accepts with min(1, r0), so it is reversible for p0.

A kernel may have a method `walk(rng, state, steps)` that does the same in one go. Its law must be the law of the steps
taken one by one; the random numbers may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sampler.chain import Kernel, State


def after_steps(kernel: Kernel[State], rng: np.random.Generator, state: State, steps: int) -> State:
    """Return the state after `steps` steps of the kernel's chain without judges."""
    at_once: Callable[[np.random.Generator, State, int], State] | None = getattr(kernel, "walk", None)
    if at_once is not None:
        return at_once(rng, state, steps)
    for _ in range(steps):
        proposal = kernel.propose(rng, state)
        if proposal.log_r0 >= 0 or rng.random() < math.exp(proposal.log_r0):
            state = proposal.state
    return state
