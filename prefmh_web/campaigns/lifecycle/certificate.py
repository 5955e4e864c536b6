"""The seed of a certified campaign: drawn at its start and hidden until its end, with its hash published meanwhile.

What hides it is `Campaign.told_recipe`, through which whatever shows a recipe goes.
"""

from __future__ import annotations

import secrets
from typing import Any

import sampler
from prefmh_web.campaigns.models import Campaign

_SEEDS = 2**53


def recipe_at_start(campaign: Campaign) -> dict[str, Any]:
    """Return the recipe that a draft starts with: if it is certified, under a seed that nobody has seen."""
    if not campaign.is_certified:
        return dict(campaign.recipe)
    return {**campaign.recipe, "seed": secrets.randbelow(_SEEDS)}


def commit(campaign: Campaign) -> None:
    """Set the hash of a campaign's seed, and the random bits in it; nothing where the campaign is not certified."""
    if campaign.is_certified:
        campaign.seed_salt = secrets.token_hex(sampler.SALT_BYTES)
        campaign.seed_hash = sampler.hash_of_seed(campaign.parsed_recipe.seed, campaign.seed_salt)
