"""A step settled by ratings: the rule compares the mean ratings of its two objects."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Campaign, Comparison, State
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.campaigns.started.plans import asked_in


def verdict_at_opening(comparison: Comparison) -> sampler.Verdict:
    """Return the verdict where both objects have been rated before; otherwise undecided."""
    return verdict(comparison)


def verdict(comparison: Comparison) -> sampler.Verdict:
    """Return what the ratings stored so far say of a comparison."""
    campaign = comparison.chain.campaign
    ratings = [ratings_of(campaign, state) for state in (comparison.current, comparison.proposal)]
    return sampler.tell_by_ratings(_rule(campaign), asked_in(comparison), *ratings)


def mean_ratings(campaign: Campaign, state: State) -> tuple[float, ...] | None:
    """Return an object's mean rating by each judge; None while one of its ratings is missing."""
    budgets = started_campaign(campaign).budgets
    return sampler.mean_ratings(_rule(campaign), budgets, ratings_of(campaign, state))


def ratings_of(campaign: Campaign, state: State) -> list[list[int]]:
    """Return an object's ratings so far, by judge and slot."""
    stored = sorted(state.ratings.all(), key=lambda rating: rating.slot)
    judges = started_campaign(campaign).judges
    return [[rating.value for rating in stored if rating.judge_id == judge.pk] for judge in judges]


def _rule(campaign: Campaign) -> sampler.PointwiseConfig:
    rule = started_campaign(campaign).config.rule
    if not isinstance(rule, sampler.PointwiseConfig):
        raise TypeError(f"campaign {campaign.pk} is decided by {rule.evidence}, not by ratings")
    return rule
