"""The sampler's value of a stored comparison."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Comparison
from prefmh_web.campaigns.started.campaign import started_campaign


def asked_in(comparison: Comparison) -> sampler.Comparison[int]:
    """Return the sampler's value of a stored comparison. Numbers of rows stand for the objects: all that a verdict
    asks of them is whether they are the same.
    """
    return sampler.Comparison(
        comparison.chain.place,
        comparison.step,
        comparison.current_id,
        comparison.proposal_id,
        comparison.log_r0,
        comparison.uniform,
        started_campaign(comparison.chain.campaign).budgets,
    )
