"""A step settled by votes: `sampler.tell` over the tally of those that count."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Comparison
from prefmh_web.campaigns.started.plans import asked_in


def verdict_at_opening(comparison: Comparison) -> sampler.Verdict:
    """Return a verdict that no vote can change; otherwise undecided."""
    asked = asked_in(comparison)
    return verdict(comparison, sampler.Tally.empty(len(asked.budgets)))


def verdict(comparison: Comparison, tally: sampler.Tally) -> sampler.Verdict:
    """Return what the votes that count say of a comparison."""
    return sampler.tell(asked_in(comparison), tally)
