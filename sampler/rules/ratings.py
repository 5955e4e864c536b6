"""The second half of a step whose rule rates each object alone: what `tell` is to votes.

    ask(plan, position)                                    as ever (`chain.py`): log r0 is kept and U drawn, before
    tell_by_ratings(rule, comparison, current, proposal)   ACCEPT iff U < the rule's acceptance, once all ratings are in

Every object gets N_i ratings by judge i, once: whoever keeps the record keeps them with the object, since a chain that
rated its state anew at every step would have no target that anyone wrote down. There is no stopping early.
"""

from __future__ import annotations

from collections.abc import Sequence

from sampler.acceptance import Verdict
from sampler.chain import Comparison, State
from sampler.judges.replies import mean_rating
from sampler.rules.config import PointwiseConfig

Ratings = Sequence[Sequence[int]]
"""An object's ratings so far, one sequence a judge."""


def tell_by_ratings(
    rule: PointwiseConfig, comparison: Comparison[State], current: Ratings, proposal: Ratings
) -> Verdict:
    """Return the verdict; UNDECIDED while a rating is missing. A proposal to stay needs none.

    Raises:
        ValueError: as `mean_ratings`.
    """
    if comparison.is_identity:
        return Verdict.ACCEPT
    before, after = (mean_ratings(rule, comparison.budgets, given) for given in (current, proposal))
    if before is None or after is None:
        return Verdict.UNDECIDED
    accepted = comparison.uniform < rule.acceptance(comparison.log_r0, before, after)
    return Verdict.ACCEPT if accepted else Verdict.REJECT


def mean_ratings(rule: PointwiseConfig, budgets: Sequence[int], given: Ratings) -> tuple[float, ...] | None:
    """Return an object's mean rating by each judge; None while one of its N_i ratings is missing.

    Raises:
        ValueError: there are ratings of another number of judges, or a judge has given more than its budget, or one
            off the scale.
    """
    if len(given) != len(budgets):
        raise ValueError(f"ratings must be of {len(budgets)} judges, not {len(given)}")
    if any(len(ratings) > budget for ratings, budget in zip(given, budgets, strict=True)):
        raise ValueError(f"ratings must be {' '.join(map(str, budgets))} by judge at most")
    if any(len(ratings) < budget for ratings, budget in zip(given, budgets, strict=True)):
        return None
    return tuple(mean_rating(ratings, rule.scale) for ratings in given)
