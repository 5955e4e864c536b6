"""Where chains start that open while a campaign runs and make their objects: drawn by a task, while people wait."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import sampler
from prefmh_web.campaigns.engine import caps, openings, reserved_starts, spending
from prefmh_web.campaigns.models import Campaign, ChainOpening
from prefmh_web.campaigns.proposals.backends import backend_of
from prefmh_web.campaigns.started import objects, plan_of
from prefmh_web.endpoints.errors import EndpointError

logger = logging.getLogger(__name__)


def open_wanted(campaign_id: int) -> None:
    """Open the chains of a campaign that are still wanted: as many at once as one call of its model serves."""
    openings.forget_needless()
    campaign = Campaign.objects.get(pk=campaign_id)
    # Drawn by a worker that died before it could open them.
    openings.open_drawn(campaign)
    is_more_wanted = True
    while is_more_wanted:
        with reserved_starts.reserved(campaign, backend_of(campaign).batch_size) as mine:
            is_more_wanted = bool(mine) and _drawn(campaign, mine)
        openings.open_drawn(campaign)


def _drawn(campaign: Campaign, wanted: Mapping[int, ChainOpening]) -> bool:
    """Draw the starts of chains, outside any transaction, and store them; False if the model does not make them."""
    fit = caps.texts_that_fit(campaign, len(wanted))
    # The lowest numbers first: no later chain opens before them.
    wanted = {place: wanted[place] for place in sorted(wanted)[:fit]}
    if not wanted:
        return False
    try:
        with spending.counted(campaign.pk, spending.PROPOSALS):
            drawn = sampler.begin_many(plan_of(campaign), tuple(wanted))
            backend_of(campaign).prepare(campaign, [position.state for position in drawn])
            rows = [objects.starting(campaign, position.chain, position.state) for position in drawn]
        for position, row in zip(drawn, rows, strict=True):
            reserved_starts.store(wanted[position.chain], row)
    except EndpointError as failure:
        # Wanted still: the sweep tries again.
        logger.warning("campaign %s opens no chain now, the model makes no start: %s", campaign.pk, failure)
        return False
    return True


def look_ahead() -> None:
    """Want chains ahead of time in running campaigns where a model makes the objects, and takes seconds over it."""
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING).defer("tuning"):
        if campaign.config.is_elastic and backend_of(campaign).is_slow:
            openings.look_ahead(campaign)
