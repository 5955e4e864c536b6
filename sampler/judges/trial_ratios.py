"""Base ratios as a kernel makes them, before anybody votes."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from sampler.chain import Plan, Tally, advance, ask, begin_many, tell


def trial_ratios(plan: Plan[Any], seed: int, chains: int, steps: int) -> list[float]:
    """Return log r0 of the proposals of some chains whose votes are coin flips; +inf where a state proposes itself.

    Args:
        plan: of a campaign; its own seed is not used, so that nothing is known of the campaign's draws.
        seed: in its place.
        chains, steps: how many.

    Raises:
        ValueError: as the space and the kernel do.
    """
    trial, rng = replace(plan, seed=seed), np.random.default_rng(seed)
    found: list[float] = []
    for position in begin_many(trial, range(chains)):
        for _ in range(steps):
            drawn = ask(trial, position)
            found.append(math.inf if drawn.is_identity else float(drawn.log_r0))
            votes = tuple(int(rng.binomial(budget, 0.5)) for budget in drawn.budgets)
            position = advance(position, drawn, tell(drawn, Tally(votes, tuple(drawn.budgets))))
    return found
