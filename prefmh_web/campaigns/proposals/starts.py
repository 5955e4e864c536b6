"""Where chains start that open while a campaign runs and make their objects: drawn by a task, while people wait."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.engine import openings
from prefmh_web.campaigns.models import ChainOpening
from prefmh_web.campaigns.started import objects, plan_of


def open_wanted(campaign_id: int) -> None:
    """Open the chains of a campaign that are still wanted."""
    openings.forget_needless()
    for opening in openings.wanted().filter(campaign=campaign_id).select_related("campaign"):
        while not _is_opened(opening):
            pass


def _is_opened(opening: ChainOpening) -> bool:
    """Draw the start of the next chain, outside any transaction, and open it if its number is still free."""
    campaign = opening.campaign
    place = campaign.chains.count()
    drawn = sampler.begin(plan_of(campaign), place)
    return openings.fulfil(opening, place, objects.starting(campaign, place, drawn.state))
