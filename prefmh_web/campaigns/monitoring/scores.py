"""How the scorers of a campaign are getting on. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Avg, Count, Q

from prefmh_web.campaigns.models import Campaign, CampaignScorer, Score

_REASONS_SHOWN = 3


@dataclass(frozen=True)
class ScorerStanding:
    """One scorer.

    Args:
        mean_now: of its numbers for the objects where the chains stand now, one of each chain; None without any.
        chains_counted: how many of the chains that mean is over.
        reasons: why objects have no number, the most frequent first, each with how many they are.
    """

    scorer: CampaignScorer
    scored: int
    without: int
    mean_now: float | None
    chains_counted: int
    reasons: list[tuple[str, int]]


def standing_of(campaign: Campaign) -> list[ScorerStanding]:
    """Return how each scorer of a campaign is getting on; nothing where there is none."""
    if not campaign.config.all_scorers:
        # Most have none, and the page asks the database little.
        return []
    return [_standing(scorer) for scorer in campaign.scorers.select_related("campaign")]


def _standing(scorer: CampaignScorer) -> ScorerStanding:
    counts = scorer.scores.aggregate(
        scored=Count("pk", filter=Q(value__isnull=False)), without=Count("pk", filter=Q(value__isnull=True))
    )
    # Each chain once, though several may stand at one object.
    heads = scorer.campaign.chains.filter(head__scores__scorer=scorer, head__scores__value__isnull=False)
    now = heads.aggregate(mean=Avg("head__scores__value"), chains=Count("pk"))
    failed = Score.objects.filter(scorer=scorer, value__isnull=True).values_list("reason")
    reasons = failed.annotate(count=Count("pk")).order_by("-count", "reason")[:_REASONS_SHOWN]
    return ScorerStanding(scorer, counts["scored"], counts["without"], now["mean"], now["chains"], list(reasons))
