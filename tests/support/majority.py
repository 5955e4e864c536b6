"""The wrong rule that the statistical tests must find."""

import numpy as np

from sampler import Purpose, Verdict, advance, ask, begin, stream


def majority_chain(plan, judges, steps, chain):
    """A wrong campaign: the proposal needs more than half of every judge's votes, then min(1, r0) decides."""
    position = begin(plan, chain)
    for _ in range(steps):
        comparison = ask(plan, position)
        rng = stream(plan.seed, chain, comparison.step, Purpose.JUDGES)
        tally = [
            sum(judge.vote(rng, comparison.current, comparison.proposal) for _ in range(budget))
            for judge, budget in zip(judges, plan.budgets, strict=True)
        ]
        won = all(2 * votes > budget for votes, budget in zip(tally, plan.budgets, strict=True))
        accepted = won and comparison.uniform < min(1, np.exp(comparison.log_r0))
        position = advance(position, comparison, Verdict.ACCEPT if accepted else Verdict.REJECT)
        yield position
