"""How far a campaign walks between two pairs, chosen once at the end of its warm-up. The one door to that choice.

    choose_length    once every chain of the start has decided its last step of the warm-up
    end_warm_up      by the researcher, when a chain has waited for longer than the config's patience
    over             campaigns whose warm-up is over

Chains that open later run a warm-up, too, and wait at its end for the choice. They have no part in it.
No chain opens a step after the warm-up before this is chosen (`Chain.waits_for_others`). The choice is a function of
decided steps, which never change, so it does not matter who makes it, or how often; it is stored by a guarded update.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.errors import NotPossible
from prefmh_web.campaigns.models import OF_THE_START, Campaign, Chain, Comparison
from prefmh_web.campaigns.monitoring.trajectories import late_chains
from prefmh_web.transport import sockets


def over() -> QuerySet[Campaign]:
    """Running campaigns of which all chains of the start wait at the end of the warm-up."""
    before_its_end = Chain.objects.filter(OF_THE_START, campaign=OuterRef("pk"), step__lt=OuterRef("warm_up"))
    warming_up = Campaign.objects.filter(status=Campaign.Status.RUNNING, warm_up__gt=0, walk_length__isnull=True)
    return warming_up.filter(~Exists(before_its_end))


def choose_length(campaign_id: int) -> None:
    """Choose how far the steps after the warm-up walk; nothing happens before every chain of the start has decided its
    last one.
    """
    campaign = over().filter(pk=campaign_id).first()
    if campaign is not None:
        _store(campaign, sampler.tuned(campaign.config, list(_warm_up_steps(campaign))))


def end_warm_up(campaign: Campaign) -> None:
    """Let the steps after the warm-up walk as far as the config says, whatever the warm-up has found so far.

    Raises:
        NotPossible: the length is chosen, or no chain has waited for long enough.
    """
    if not campaign.is_warming_up:
        raise NotPossible("The warm-up is over.")
    if not late_chains(campaign).exists():
        raise NotPossible("The warm-up of a running campaign can be ended only when a chain has waited for too long.")
    tuning = sampler.ended_early(campaign.config, sampler.moment(timezone.now()))
    if not _store(campaign, tuning):
        raise NotPossible("The warm-up is over.")


def _store(campaign: Campaign, tuning: dict[str, Any]) -> bool:
    """Store the choice and let the chains go on; False if one is stored already."""
    with transaction.atomic():
        open_campaign = Campaign.objects.filter(pk=campaign.pk, warm_up__gt=0, walk_length__isnull=True)
        if not open_campaign.update(walk_length=tuning["length"], tuning=tuning):
            return False
        for chain in campaign.chains.filter(step__gte=campaign.warm_up, step__lt=F("length")):
            dispatch.propose(chain)
        sockets.nudge(sockets.watchers(campaign.pk))
    return True


def _warm_up_steps(campaign: Campaign) -> Iterator[sampler.WarmUpStep]:
    """Yield the steps of a warm-up in which every chain of the start has decided its last one."""
    counted = Q(votes__number__isnull=False)
    for_proposal = counted & Q(votes__chosen_side=F("votes__proposal_side"))
    first = campaign.chains.filter(OF_THE_START)
    found = Comparison.objects.filter(chain__in=first, step__lte=campaign.warm_up)
    found = found.annotate(cast=Count("votes", filter=counted), won=Count("votes", filter=for_proposal))
    columns = (
        "chain__place", "step", "cast", "won", "verdict",
        "current__content", "current__code", "proposal__content", "proposal__code",
    )  # fmt: skip
    for chain, step, cast, won, verdict, *objects in found.order_by("chain__place", "step").values_list(*columns):
        before, proposal = (objects[0], objects[1]), (objects[2], objects[3])
        accepted = verdict == Comparison.Verdict.ACCEPT
        yield sampler.WarmUpStep(chain, step, cast, won, before, proposal, accepted)
