"""Whole chains with simulated judges, no web: the same `ask` and `tell` in a loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sampler.acceptance import Verdict
from sampler.chain import Plan, Position, State, Tally, advance, ask, begin, tell
from sampler.judges.bradley_terry import BradleyTerry
from sampler.streams import Purpose, stream


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
