"""The one door through which a stopping rule decides: how far chains walk before it looks, and what a look changes.

    wanted    the step at which a look is due
    store     stores what was seen there, and lets all chains walk on to the next look, or none

Chains walk to the next look and wait there. What they show is computed outside of any transaction
(`lifecycle/stopping.py`); it is a function of decided steps, which never change, so it does not matter who looks, or
how often. `transitions.finish_if_done` asks for a look when the last chain has come, and so does the sweep. As with
further rounds, the campaign's lock is enough: no other transaction holds a chain that has walked all its steps.
"""

from __future__ import annotations

from dataclasses import asdict

from django.db import transaction
from django.db.models import F
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.models import Campaign, StoppingLook
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.transport import nudges


def wanted(campaign: Campaign) -> int | None:
    """Return the step at which all chains of a campaign wait for the stopping rule to look; None where none do."""
    started = started_campaign(campaign)
    rule = started.recipe.stopping if started.is_readable else None
    if rule is None or not campaign.is_under_way:
        return None
    walking = campaign.chains.filter(ended_at__isnull=True)
    length = walking.values_list("length", flat=True).first()
    if (
        length is None
        or length not in rule.looks(started.recipe.steps)
        or walking.filter(step__lt=F("length")).exists()
    ):
        return None
    return None if campaign.looks.filter(step=length).exists() else length


def store(campaign: Campaign, seen: sampler.Look) -> bool:
    """Store what was seen at a step; unless that stops them, all chains walk on to the next look.

    Returns:
        False where no look at this step is due, because somebody else has stored it.
    """
    recipe = campaign.parsed_recipe
    if recipe.stopping is None:
        raise ValueError("the campaign has no stopping rule")
    with transaction.atomic():
        locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        if wanted(locked) != seen.step:
            return False
        stops = recipe.stopping.is_met(seen)
        StoppingLook.objects.create(campaign=locked, stops=stops, looked_at=timezone.now(), **asdict(seen))
        if not stops:
            _walk_on(locked, recipe.stopping.length_after(locked.looks.count(), recipe.steps))
        nudges.nudge(nudges.watchers(campaign.pk))
    return True


def _walk_on(campaign: Campaign, length: int) -> None:
    walking = campaign.chains.filter(ended_at__isnull=True)
    walking.update(length=length)
    for chain in walking:
        chain.campaign = campaign
        dispatch.propose(chain)
