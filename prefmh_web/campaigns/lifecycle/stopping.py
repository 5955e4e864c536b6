"""Looking, where the recipe has a stopping rule: measures what the chains have been at, and asks the rule.

look    if all chains wait for it, and this process does not look already; nothing happens otherwise

Many objects take minutes to be measured, and the sweep asks for the look every five seconds meanwhile.
"""

from __future__ import annotations

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine import looks, transitions
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.trajectories import trajectories_of
from prefmh_web.campaigns.proposals import measuring


def look(campaign_id: int) -> None:
    """Look at the chains of a campaign if all of them wait for that, and let them walk on or end."""
    campaign = Campaign.objects.filter(pk=campaign_id).first()
    step = None if campaign is None or campaign.is_draft else looks.wanted(campaign)
    if campaign is None or step is None:
        return
    seen = None
    with measuring.alone((campaign_id, step)) as is_alone:
        if is_alone and measuring.measure_some(campaign):
            # The others have their turn in between.
            dispatch.look(campaign)
        elif is_alone:
            seen = _seen(campaign, step)
    if seen is not None and looks.store(campaign, seen):
        transitions.finish_if_done(campaign)


def _seen(campaign: Campaign, step: int) -> sampler.Look:
    recipe = campaign.parsed_recipe
    if recipe.stopping is None:
        raise ValueError("the campaign has no stopping rule")
    along = trajectories_of(campaign).along(recipe.stopping.property)
    # One that was ended before has no part in the look.
    return sampler.look_at(step, recipe.left_out, [numbers for numbers in along.values() if len(numbers) > step])
