"""What settles a step, for each kind of evidence that rules use.

votes      a tally of who preferred which object: `sampler.tell` over those that count
ratings    whole numbers that models gave each object alone: the rule compares the means of the two
scores     numbers that scorers gave each object: the rule compares those of the two
none       nothing: every proposal is accepted
"""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.frozen import asked_in, started_campaign
from prefmh_web.campaigns.models import Campaign, Comparison, State
from prefmh_web.campaigns.objects import scores_of


def verdict_at_opening(comparison: Comparison) -> sampler.Verdict:
    """Return what is known of a comparison that has just been opened: a verdict that no vote can change, one by ratings
    or scores that both objects have from before, or that it is undecided.
    """
    evidence = started_campaign(comparison.chain.campaign).config.rule.evidence
    if evidence == "votes":
        return by_votes(comparison, sampler.Tally.empty(len(asked_in(comparison).budgets)))
    if evidence == "ratings":
        return by_ratings(comparison)
    return by_scores(comparison) if evidence == "scores" else sampler.Verdict.ACCEPT


def by_votes(comparison: Comparison, tally: sampler.Tally) -> sampler.Verdict:
    """Return what the votes that count say of a comparison."""
    return sampler.tell(asked_in(comparison), tally)


def by_ratings(comparison: Comparison) -> sampler.Verdict:
    """Return what the ratings stored so far say of a comparison."""
    campaign = comparison.chain.campaign
    ratings = [ratings_of(campaign, state) for state in (comparison.current, comparison.proposal)]
    return sampler.tell_by_ratings(_pointwise_rule(campaign), asked_in(comparison), *ratings)


def mean_ratings(campaign: Campaign, state: State) -> tuple[float, ...] | None:
    """Return an object's mean rating by each judge; None while one of its ratings is missing."""
    budgets = started_campaign(campaign).budgets
    return sampler.mean_ratings(_pointwise_rule(campaign), budgets, ratings_of(campaign, state))


def ratings_of(campaign: Campaign, state: State) -> list[list[int]]:
    """Return an object's ratings so far, by judge and slot."""
    stored = sorted(state.ratings.all(), key=lambda rating: rating.slot)
    judges = started_campaign(campaign).judges
    return [[rating.value for rating in stored if rating.judge_id == judge.pk] for judge in judges]


def by_scores(comparison: Comparison) -> sampler.Verdict:
    """Return what the scores stored so far say of a comparison."""
    campaign, asked = comparison.chain.campaign, asked_in(comparison)
    rule = started_campaign(campaign).config.rule
    if not isinstance(rule, sampler.ScoredConfig):
        raise TypeError(f"campaign {campaign.pk} is decided by {rule.evidence}, not by scores")
    given = {} if asked.is_identity else scores_of(campaign, (comparison.current_id, comparison.proposal_id))
    current, proposal = (given.get(key, {}) for key in (comparison.current_id, comparison.proposal_id))
    return sampler.tell_by_scores(rule, asked, current, proposal)


def _pointwise_rule(campaign: Campaign) -> sampler.PointwiseConfig:
    rule = started_campaign(campaign).config.rule
    if not isinstance(rule, sampler.PointwiseConfig):
        raise TypeError(f"campaign {campaign.pk} is decided by {rule.evidence}, not by ratings")
    return rule
