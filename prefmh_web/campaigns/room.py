"""How many more votes a comparison can use from a judge, such that none of those on their way can come too late.

On their way are people's leases and models' turns. Seen without a lock this is a guess; who takes a place looks again
with the comparison `loop.locked`. The comparison's votes, leases and turns are best prefetched.
"""

from collections import Counter

from django.utils import timezone

import sampler
from prefmh_web.campaigns import plans
from prefmh_web.campaigns.models import Comparison, Judge


def has_room(comparison: Comparison, judge: Judge) -> bool:
    """True when one more vote for this judge cannot make any vote late."""
    return room(comparison, judge, most=1) == 1


def room(comparison: Comparison, judge: Judge, most: int) -> int:
    """Return how many votes, up to `most`, may be asked of this judge at once; see `has_room`."""
    if comparison.verdict:
        return 0
    campaign = comparison.chain.campaign
    tally = plans.tally_of(campaign, (vote for vote in comparison.votes.all() if vote.counted))
    out = _leased(comparison) + _asked_of_models(comparison)
    promised = [out[each.pk] for each in plans.judges_of(campaign)]
    budgets = plans.budgets_of(campaign)
    for found in range(most):
        asked = sampler.askable(
            comparison.log_r0, comparison.uniform, tally.votes_for, tally.votes_cast, promised, budgets
        )
        if not asked[judge.place]:
            return found
        promised[judge.place] += 1
    return most


def _leased(comparison: Comparison) -> Counter[int]:
    return Counter(lease.judge_id for lease in comparison.leases.all() if lease.is_live)


def _asked_of_models(comparison: Comparison) -> Counter[int]:
    if not plans.uses_models(comparison.chain.campaign):
        return Counter()
    now = timezone.now()
    return Counter({turn.judge_id: turn.asked for turn in comparison.turns.all() if turn.asked and turn.until > now})
