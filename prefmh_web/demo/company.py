"""Simulated people for each campaign of the demo, those that *Start afresh* makes later included.

They vote while nobody else does, and stop when most steps are decided: the rest is left for whoever tries the demo.
"""

import asyncio
import threading
from datetime import timedelta

import numpy as np
from django.contrib.auth.models import User
from django.db import close_old_connections
from django.db.models import Sum
from django.utils import timezone

from prefmh_web.campaigns.models import Campaign, Invitation, Vote
from prefmh_web.demo.campaigns import hidden_scores, is_demo
from prefmh_web.demo.voters import Voter

_LEFT = 0.2
"""The share of the steps that is left to people."""
_PERSON_IS_VOTING = timedelta(seconds=60)
_LOOK_EVERY_S = 5.0


def start_company(site: str, owner: User, count: int) -> None:
    """Let so many simulated people vote in each running demo campaign of an owner, as long as this process lives."""
    threading.Thread(target=asyncio.run, args=(_attend(site, owner, count),), name="voters", daemon=True).start()


def may_vote(campaign_id: int) -> bool:
    """True while simulated people are to vote: nobody else does, and enough steps are left."""
    close_old_connections()
    steps = Campaign.objects.filter(pk=campaign_id).aggregate(
        decided=Sum("chains__step", default=0), all=Sum("chains__length", default=0)
    )
    if steps["decided"] >= (1 - _LEFT) * steps["all"]:
        return False
    people = Vote.objects.filter(judge__campaign=campaign_id, annotator__invitation__is_simulated=False)
    return not people.filter(cast_at__gte=timezone.now() - _PERSON_IS_VOTING).exists()


async def _attend(site: str, owner: User, count: int) -> None:
    attended: dict[int, list[asyncio.Task[None]]] = {}
    while True:
        for campaign_id, voters in await asyncio.to_thread(_missing, site, owner, count, set(attended)):
            attended[campaign_id] = [asyncio.create_task(voter.run()) for voter in voters]
        await asyncio.sleep(_LOOK_EVERY_S)


def _missing(site: str, owner: User, count: int, attended: set[int]) -> list[tuple[int, list[Voter]]]:
    close_old_connections()
    running = Campaign.objects.filter(owner=owner, status=Campaign.Status.RUNNING).exclude(pk__in=attended)
    return [(campaign.pk, _voters(site, campaign, count)) for campaign in running if is_demo(campaign)]


def _voters(site: str, campaign: Campaign, count: int) -> list[Voter]:
    invitation, _ = Invitation.objects.get_or_create(campaign=campaign, is_simulated=True)
    scores, link = hidden_scores(campaign), f"{site}{invitation.get_absolute_url()}"
    return [
        Voter(link, scores, np.random.default_rng(seed), may_vote=lambda: may_vote(campaign.pk))
        for seed in np.random.SeedSequence().spawn(count)
    ]
