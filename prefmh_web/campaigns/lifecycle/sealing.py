"""The seed of a campaign: drawn at its start unless somebody has typed it, and hidden until its end; its hash is shown
meanwhile.

What hides it is `Campaign.told_config`, through which whatever shows a config goes.
"""

from __future__ import annotations

import secrets
from typing import Any

import sampler
from prefmh_web.campaigns.models import Campaign

_SEEDS = 2**53


def config_at_start(campaign: Campaign) -> dict[str, Any]:
    """Return the config that a draft starts with: under a seed that nobody has seen, unless one was typed."""
    if campaign.is_seed_typed:
        return dict(campaign.config_data)
    return {**campaign.config_data, "seed": secrets.randbelow(_SEEDS)}


def seal(campaign: Campaign) -> None:
    """Set the hash of a campaign's seed, and the random bits in it."""
    campaign.seed_salt = secrets.token_hex(sampler.SALT_BYTES)
    campaign.seed_hash = sampler.hash_of_seed(campaign.config.seed, campaign.seed_salt)
