"""Further steps by a researcher's decision: the one door through which a started campaign's config gets longer chains.

The chains go on from where they stand, each step under the stream of its number, as if the config had declared so many
steps from the start. The config says how many there are now, and each extension is an event.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

import sampler
from prefmh_web import hooks
from prefmh_web.campaigns import dispatch, events
from prefmh_web.campaigns.errors import Deleted, NotPossible
from prefmh_web.campaigns.lifecycle import status
from prefmh_web.campaigns.models import Campaign, Chain
from prefmh_web.transport import sockets


def extend(campaign: Campaign, steps: int, by: User | None = None) -> None:
    """Let every chain that was not ended walk so many steps more. A finished campaign is paused until it is resumed.

    Args:
        steps: of each chain.
        by: who has decided it; None on the command line.

    Raises:
        NotPossible: it is a draft; its budget does not cover them; all of its chains were ended; or the
            chains would get longer than a config allows.
    """
    if steps < 1:
        raise NotPossible("A campaign is extended by at least 1 step.")
    with transaction.atomic():
        # Chains first: the campaign is the last of all locks, and whoever decides a last step holds its chain.
        chains = list(campaign.chains.select_for_update(no_key=True).order_by("pk"))
        locked = Campaign.objects.select_for_update(no_key=True).get(pk=campaign.pk)
        if locked.chains.count() > len(chains):
            raise NotPossible("A chain opened in this very moment. Try again.")
        before = _demand_extensible(locked, chains)
        locked.config_data = _longer(locked, before + steps)
        for demand in hooks.load(hooks.EXTENSION_DEMANDS):
            demand(locked)
        _write(locked, before, steps, by)
        if locked.is_running:
            _go_on(locked, chains, before)
    # What the caller holds may have been read before somebody else changed it.
    campaign.refresh_from_db()
    sockets.nudge(sockets.voters(campaign.pk), sockets.watchers(campaign.pk))


def _demand_extensible(campaign: Campaign, chains: list[Chain]) -> int:
    """Return how many steps each chain walks now."""
    if campaign.is_draft:
        raise NotPossible("The campaign has not started. Change the steps in its setup.")
    if campaign.status == Campaign.Status.DELETING:
        raise Deleted
    if campaign.status == Campaign.Status.FINISHED and any(c.step < c.length and not c.ended_at for c in chains):
        raise NotPossible("The campaign was ended before its last step, and stays so.")
    if all(chain.ended_at for chain in chains):
        raise NotPossible("All chains were ended, so none can go on.")
    return campaign.config.steps


def _longer(campaign: Campaign, steps: int) -> dict[str, Any]:
    if steps > sampler.LONGEST_CHAIN:
        raise NotPossible(f"The chains cannot get {steps} steps long: they have at most {sampler.LONGEST_CHAIN:,}.")
    try:
        sampler.demand_sound(campaign.config.model_copy(update={"steps": steps}))
    except sampler.ConfigError as error:
        raise NotPossible(f"The chains cannot get {steps} steps long: {error}.") from error
    return {**campaign.config_data, "steps": steps}


def _write(campaign: Campaign, before: int, steps: int, by: User | None) -> None:
    campaign.steps_added += steps
    campaign.save(update_fields=["config_data", "steps_added"])
    campaign.chains.filter(ended_at__isnull=True).update(length=F("length") + steps)
    events.note(campaign.pk, events.Kind.EXTENDED, by, {"steps_before": before, "steps_after": before + steps})
    status.reopen(campaign)


def _go_on(campaign: Campaign, chains: list[Chain], before: int) -> None:
    """Let the chains that had walked all their steps go on; the others do so by themselves."""
    for chain in chains:
        if chain.step == before and not chain.ended_at:
            chain.campaign = campaign
            dispatch.propose(chain)
