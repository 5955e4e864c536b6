"""Campaigns under one seed: their random numbers are the same, so they are not independent of each other."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.db.models import Q

from prefmh_web.campaigns.models import Campaign


def warning_of_seed(seed: int | None, owner: User, campaign: Campaign | None = None) -> str:
    """Return what a researcher should know whose campaign has the seed of another one of theirs; nothing if none has.

    Args:
        seed: that somebody has typed; None where none was.
        campaign: the one that has it, if it is stored.
    """
    if seed is None:
        return ""
    others = Campaign.objects.filter(owner=owner, seed=seed).exclude(status=Campaign.Status.DELETING)
    # Of a seed that was drawn and is hidden not even a guess is confirmed.
    is_known = Q(config_data__seed=seed) | Q(status=Campaign.Status.FINISHED) | Q(seed_told_at__isnull=False)
    others = others.filter(is_known)
    found = (others.exclude(pk=campaign.pk) if campaign else others).order_by("pk").first()
    if found is None:
        return ""
    return (
        f"Your campaign “{found.name}” (number {found.pk}) has the same seed: the random numbers of the two are the "
        "same, so they are not independent. Empty the seed, and one is drawn."
    )


def warning_of(campaign: Campaign) -> str:
    """Return the same of a draft; nothing once it has started, when its seed cannot change."""
    if not (campaign.is_draft and campaign.is_seed_typed):
        return ""
    return warning_of_seed(campaign.seed, campaign.owner, campaign)
