"""Where chains start that open while a campaign runs and make their objects: drawn by a task, while people wait."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import sampler
from prefmh_web.campaigns.engine import openings
from prefmh_web.campaigns.models import Campaign, ChainOpening
from prefmh_web.campaigns.proposals.backends import backend_of
from prefmh_web.campaigns.started import objects, plan_of
from prefmh_web.endpoints.errors import EndpointError

logger = logging.getLogger(__name__)


def open_wanted(campaign_id: int) -> None:
    """Open the chains of a campaign that are still wanted: as many at once as one call of its model serves."""
    openings.forget_needless()
    campaign = Campaign.objects.get(pk=campaign_id)
    wanted = openings.wanted().filter(campaign=campaign).select_related("campaign")
    while found := list(wanted[: backend_of(campaign).batch_size]):
        try:
            _open(campaign, found)
        except EndpointError as failure:
            # Wanted still: the sweep tries again.
            logger.warning("campaign %s opens no chain now, the model makes no start: %s", campaign_id, failure)
            return


def _open(campaign: Campaign, wanted: Sequence[ChainOpening]) -> None:
    """Draw the starts of the next chains, outside any transaction, and open those whose numbers are still free.

    Raises:
        EndpointError: the model does not make them.
    """
    drawn = sampler.begin_many(plan_of(campaign), len(wanted), campaign.chains.count())
    backend_of(campaign).prepare(campaign, [position.state for position in drawn])
    for opening, position in zip(wanted, drawn, strict=True):
        start = objects.starting(campaign, position.chain, position.state)
        if not openings.fulfil(opening, position.chain, start):
            return


def look_ahead() -> None:
    """Want chains ahead of time in running campaigns where a model makes the objects, and takes seconds over it."""
    for campaign in Campaign.objects.filter(status=Campaign.Status.RUNNING).defer("tuning", "surrogates"):
        if not campaign.unreadable and campaign.parsed_recipe.is_elastic and backend_of(campaign).is_slow:
            openings.look_ahead(campaign)
