"""Chains with simulated judges, no web: judges with hidden scores (equation 5 of the paper) vote as people would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
from scipy.special import expit

from sampler.acceptance import Verdict
from sampler.chain import Plan, Position, State, Tally, advance, ask, begin, tell
from sampler.streams import Purpose, stream


@dataclass(frozen=True)
class BradleyTerry(Generic[State]):
    """Prefers y to x with probability sigma(s(y) - s(x)).

    Args:
        score: s, in nats of log-odds.
    """

    score: Callable[[State], float]

    def preference(self, current: State, proposal: State) -> float:
        """Return the probability that this judge prefers `proposal` to `current`."""
        return float(expit(self.score(proposal) - self.score(current)))

    def vote(self, rng: np.random.Generator, current: State, proposal: State) -> bool:
        """Draw one vote: True for the proposal."""
        return bool(rng.random() < self.preference(current, proposal))


def simulate(
    plan: Plan[State], judges: Sequence[BradleyTerry[State]], steps: int, chain: int = 0
) -> Iterator[Position[State]]:
    """Yield the positions 0..steps of one chain, asking judge after judge and stopping as early as allowed.

    Raises:
        ValueError: the plan has another number of judges.
    """
    if len(judges) != len(plan.budgets):
        raise ValueError(f"judges must be {len(plan.budgets)}, one for each budget, not {len(judges)}")
    position = begin(plan, chain)
    yield position
    for _ in range(steps):
        comparison = ask(plan, position)
        rng = stream(plan.seed, chain, comparison.step, Purpose.JUDGES)
        tally = Tally.empty(len(judges))
        while (verdict := tell(comparison, tally)) is Verdict.UNDECIDED:
            judge = next(i for i, budget in enumerate(plan.budgets) if tally.votes_cast[i] < budget)
            tally = tally.add(judge, judges[judge].vote(rng, comparison.current, comparison.proposal))
        position = advance(position, comparison, verdict)
        yield position
