"""Random streams that are functions of (seed, chain, step, purpose).

No generator's state is stored anywhere: a process that restarts, or a reader with the exported record, draws
the same numbers again. Kernels draw only with `Generator.random()`, the top 53 bits of each raw 64-bit output
of PCG64, which NumPy keeps stable between releases; so a record can be redrawn years later.
"""

from __future__ import annotations

import enum

import numpy as np


class Purpose(enum.IntEnum):
    """What a stream is for. The numbers are part of every record: add, never renumber."""

    START = 0
    PROPOSAL = 1
    UNIFORM = 2
    SIDES = 3
    JUDGES = 4
    PEOPLE_SIDES = 5
    CHECKS = 6
    """Its "chain" is an annotator's number, its "step" the number of their votes: see `judges/presentation.py`."""
    EDITOR = 7
    """Of a learned proposal; its "chain" is 0, its "step" 0 for the first weights, then the step it learns after."""


def stream(seed: int, chain: int, step: int, purpose: Purpose) -> np.random.Generator:
    """Return the generator for one purpose at one step of one chain; independent of every other.

    Raises:
        ValueError: seed, chain or step is negative.
    """
    for name, value in (("seed", seed), ("chain", chain), ("step", step)):
        if value < 0:
            raise ValueError(f"{name} must not be negative, not {value}")
    sequence = np.random.SeedSequence(seed, spawn_key=(chain, step, int(purpose)))
    return np.random.Generator(np.random.PCG64(sequence))
