"""A step settled by scores: the rule compares the numbers that scorers gave its two objects."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Comparison
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.campaigns.started.objects import scores_of
from prefmh_web.campaigns.started.plans import asked_in


def verdict_at_opening(comparison: Comparison) -> sampler.Verdict:
    """Return the verdict where both objects have been scored before; otherwise undecided."""
    return verdict(comparison)


def verdict(comparison: Comparison) -> sampler.Verdict:
    """Return what the scores stored so far say of a comparison."""
    campaign, asked = comparison.chain.campaign, asked_in(comparison)
    rule = started_campaign(campaign).config.rule
    if not isinstance(rule, sampler.ScoredConfig):
        raise TypeError(f"campaign {campaign.pk} is decided by {rule.evidence}, not by scores")
    given = {} if asked.is_identity else scores_of(campaign, (comparison.current_id, comparison.proposal_id))
    current, proposal = (given.get(key, {}) for key in (comparison.current_id, comparison.proposal_id))
    return sampler.tell_by_scores(rule, asked, current, proposal)
