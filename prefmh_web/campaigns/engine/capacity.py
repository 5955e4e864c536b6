"""How many more votes a comparison can use from a judge, such that none of those on their way can come too late.

On their way are people's leases and models' turns. Seen without a lock this is a guess; who takes a place looks again
with the comparison `transitions.locked`. The comparison's votes, leases and turns are best prefetched.
"""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache

from django.utils import timezone

import sampler
from prefmh_web.campaigns import started
from prefmh_web.campaigns.models import Campaign, Comparison, Judge


def has_room(comparison: Comparison, judge: Judge) -> bool:
    """True when one more vote for this judge cannot make any vote late."""
    return room(comparison, judge, most=1) == 1


def room(comparison: Comparison, judge: Judge, most: int) -> int:
    """Return how many votes, up to `most`, may be asked of this judge at once; see `has_room`."""
    if comparison.verdict:
        return 0
    campaign = comparison.chain.campaign
    tally = started.tally_of(campaign, (vote for vote in comparison.votes.all() if vote.counted))
    out = _leased(comparison) + _asked_of_models(comparison)
    for found in range(most):
        if not askable(campaign, comparison.log_r0, comparison.uniform, tally, out)[judge.place]:
            return found
        out[judge.pk] += 1
    return most


def askable(
    campaign: Campaign, log_r0: float, uniform: float, tally: sampler.Tally, out: Mapping[int, int]
) -> tuple[bool, ...]:
    """Say, for each judge's place, whether an open comparison can use one more vote.

    Args:
        out: how many votes are on their way, by the judge's number; judges with none may be absent.
    """
    promised = tuple(out.get(judge.pk, 0) for judge in started.judges_of(campaign))
    return _askable(log_r0, uniform, tally.votes_for, tally.votes_cast, promised, started.budgets_of(campaign))


# A function of these values alone, and everybody who looks for a question asks it again of the same comparisons.
_askable = lru_cache(maxsize=10_000)(sampler.askable)


def on_their_way(asked: int, until: datetime | None) -> int:
    """Return how many votes a model's turn may still bring."""
    return asked if asked and until > timezone.now() else 0


def _leased(comparison: Comparison) -> Counter[int]:
    return Counter(lease.judge_id for lease in comparison.leases.all() if lease.is_live)


def _asked_of_models(comparison: Comparison) -> Counter[int]:
    if not started.uses_models(comparison.chain.campaign):
        return Counter()
    return Counter({turn.judge_id: on_their_way(turn.asked, turn.until) for turn in comparison.turns.all()})
