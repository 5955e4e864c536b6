"""The seed of a campaign: drawn at its start unless somebody has typed it, and hidden until its end; its hash is shown
meanwhile.

What hides it is `Campaign.public_config`, through which whatever shows a configuration goes.
"""

from __future__ import annotations

import secrets

import sampler
from prefmh_web.campaigns.models import Campaign, draw_seed


def seal(campaign: Campaign) -> None:
    """Set the hash of a campaign's seed, and the random bits in it."""
    campaign.seed_salt = secrets.token_hex(sampler.SALT_BYTES)
    campaign.seed_hash = sampler.hash_of_seed(campaign.seed, campaign.seed_salt)


def seed_at_start(campaign: Campaign) -> int:
    """Return the seed that a draft starts with: one that nobody has seen, unless one was typed."""
    return campaign.seed if campaign.is_seed_typed else draw_seed()
