"""The three ready campaigns of `manage.py demo`, made through the same doors as a researcher's own; and simulated
people for each of them, those that *Start afresh* makes later included.

They vote while nobody else does, and stop when most steps are decided: the rest is left for whoever tries the demo.
"""

import asyncio
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from django.contrib.auth.models import User
from django.db import close_old_connections
from django.db.models import Sum
from django.utils import timezone

from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.frozen import decoder_of
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Invitation, Vote
from prefmh_web.config import CampaignConfig, questions_of
from prefmh_web.config_files import config_in
from prefmh_web.demo import voters
from prefmh_web.demo.voters import Score, SimulatedVoter
from prefmh_web.objects.kind import Pixels

_TASTES: dict[str, Callable[[Any], float]] = {
    "texts": voters.gothic_mood,
    "molecules": voters.drug_likeness,
    "images": voters.colourfulness,
}
"""What simulated people feel about an object's text or pixels. The file of each campaign has the name of its space."""


@cache
def _configs() -> dict[str, CampaignConfig]:
    folder = Path(__file__).parent
    return {kind: config_in((folder / f"{kind}.yaml").read_bytes()) for kind in _TASTES}


def ensure_demo_campaigns(owner: User) -> list[Campaign]:
    """Return the owner's demo campaigns, making and starting those that are missing."""
    return [_find(owner, config) or _make(owner, config) for config in _configs().values()]


def is_demo(campaign: Campaign) -> bool:
    """Tell whether simulated people know what a campaign asks."""
    demo = _configs().get(campaign.config.space.kind)
    return demo is not None and questions_of(demo) == questions_of(campaign.config)


def hidden_scores(campaign: Campaign) -> dict[str, Score]:
    """Return, for the question of a demo campaign, what a simulated voter feels about an object, by its content."""
    taste, [question] = _TASTES[campaign.config.space.kind], questions_of(campaign.config)
    seen = _pixels_in(campaign) if campaign.object_kind.medium == "picture" else str
    return {question: cache(lambda content: taste(seen(content)))}


def _pixels_in(campaign: Campaign) -> Callable[[str], Any]:
    """Return what shows a voter the picture that the page names."""
    space = decoder_of(campaign)

    def pixels(name: str) -> Pixels:
        codes = campaign.states.filter(content=name).values_list("code", flat=True)
        return space.pixels(space.decode(codes[:1].get()))

    return pixels


def _find(owner: User, config: CampaignConfig) -> Campaign | None:
    mine = Campaign.objects.filter(owner=owner, name=config.name).exclude(status=Campaign.Status.DRAFT)
    # One of that name that asks something else is somebody's own.
    return next(filter(is_demo, mine), None)


def _make(owner: User, config: CampaignConfig) -> Campaign:
    campaign = changes.create(owner=owner, config=config)
    lifecycle.start(campaign)
    return campaign


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
    people = Vote.objects.filter(judge__campaign=campaign_id, voter__invitation__is_simulated=False)
    return not people.filter(cast_at__gte=timezone.now() - _PERSON_IS_VOTING).exists()


async def _attend(site: str, owner: User, count: int) -> None:
    attended: dict[int, list[asyncio.Task[None]]] = {}
    while True:
        for campaign_id, company in await asyncio.to_thread(_missing, site, owner, count, set(attended)):
            attended[campaign_id] = [asyncio.create_task(voter.run()) for voter in company]
        await asyncio.sleep(_LOOK_EVERY_S)


def _missing(site: str, owner: User, count: int, attended: set[int]) -> list[tuple[int, list[SimulatedVoter]]]:
    close_old_connections()
    running = Campaign.objects.filter(owner=owner, status=Campaign.Status.RUNNING).exclude(pk__in=attended)
    return [(campaign.pk, _voters(site, campaign, count)) for campaign in running if is_demo(campaign)]


def _voters(site: str, campaign: Campaign, count: int) -> list[SimulatedVoter]:
    invitation, _ = Invitation.objects.get_or_create(campaign=campaign, is_simulated=True)
    scores, link = hidden_scores(campaign), f"{site}{invitation.get_absolute_url()}"
    return [
        SimulatedVoter(link, scores, np.random.default_rng(seed), may_vote=lambda: may_vote(campaign.pk))
        for seed in np.random.SeedSequence().spawn(count)
    ]
