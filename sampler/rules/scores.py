"""The second half of a step whose rule goes by scorers' numbers: what `tell` is to votes.

    ask(plan, position)                                   as ever (`chain.py`): log r0 is kept and U drawn, before
    tell_by_scores(rule, comparison, current, proposal)   ACCEPT iff U < the rule's acceptance, once all numbers are in

Every object gets its numbers once: whoever keeps the record keeps them with the object.
"""

from __future__ import annotations

from sampler.acceptance import Verdict
from sampler.chain import Comparison, State
from sampler.rules.scored import ScoredConfig, Scores, numbers_of


def tell_by_scores(rule: ScoredConfig, comparison: Comparison[State], current: Scores, proposal: Scores) -> Verdict:
    """Return the verdict; UNDECIDED while a number is missing. A proposal to stay needs none.

    Args:
        current, proposal: the objects' numbers, by scorer.

    Raises:
        ValueError: as `numbers_of`.
    """
    if comparison.is_identity:
        return Verdict.ACCEPT
    before, after = (numbers_of(rule, given) for given in (current, proposal))
    if before is None or after is None:
        return Verdict.UNDECIDED
    accepted = comparison.uniform < rule.acceptance(comparison.log_r0, before, after)
    return Verdict.ACCEPT if accepted else Verdict.REJECT
