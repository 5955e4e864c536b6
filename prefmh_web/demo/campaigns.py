"""The three ready campaigns of `manage.py demo`, made through the same doors as a researcher's own; and simulated
people for each of them, those that *Start afresh* makes later included.

They vote while nobody else does, and stop when most steps are decided: the rest is left for whoever tries the demo.
"""

import asyncio
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import numpy as np
from django.contrib.auth.models import User
from django.db import close_old_connections
from django.db.models import Sum
from django.utils import timezone

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.frozen import decoder_of
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign, Invitation, Vote
from prefmh_web.config import CampaignConfig
from prefmh_web.demo import voters
from prefmh_web.demo.voters import Score, Voter
from prefmh_web.objects.kind import Pixels


@dataclass(frozen=True)
class DemoCampaign:
    """A campaign of the demo: a space, a kernel, a question, and what simulated people feel about an object's text or
    pixels.
    """

    name: str
    instructions: str
    space: dict
    kernel: dict
    question: str
    taste: Callable[[Any], float]


# A drug, of 26 heavy atoms; the weights keep what follows as large.
_CELECOXIB = "Cc1ccc(-c2cc(C(F)(F)F)nn2-c2ccc(S(N)(=O)=O)cc2)cc1"
_SMALLEST, _LARGEST = 20, 30
_WEIGHTS = sampler.MoleculesConfig().law.size_log_weights

DEMO_CAMPAIGNS = (
    DemoCampaign(
        "Story openings",
        "You will read two openings of a story. Choose by feeling; most people need less than half a minute.",
        # One prompt: all chains sample one distribution, and can be compared.
        {"kind": "texts", "scenarios": [0]},
        {
            "kind": "mixture",
            "parts": [
                {"weight": 0.1, "kernel": {"kind": "independent"}},
                {"weight": 0.9, "kernel": {"kind": "suffix"}},
            ],
        },
        "Which opening is more gothic?",
        voters.gothic_mood,
    ),
    DemoCampaign(
        "Molecules to follow up",
        "You are choosing compounds for the next round of a drug discovery project.",
        {
            "kind": "molecules",
            "start": _CELECOXIB,
            "size_log_weights": [*[None] * (_SMALLEST - 1), *_WEIGHTS[_SMALLEST - 1 : _LARGEST]],
            "elements": ["C", "N", "O", "F", "S", "Cl"],
            "alerts": ["BRENK"],
        },
        # Of single moves few pass p0: after a walk of fifty about two pairs in five differ, and cost a vote.
        {"kind": "walk", "kernel": {"kind": "fragments"}, "length": 50},
        "Which molecule would you rather follow up?",
        voters.drug_likeness,
    ),
    DemoCampaign(
        "Patterns",
        "",
        {"kind": "images"},
        sampler.PAPER_MIXTURE,
        "Which picture would you rather hang on your wall?",
        voters.colourfulness,
    ),
)
# One vote settles a step: somebody alone has a pair at once, hundreds of times.
_VOTES, _CHAINS, _STEPS = 1, 4, 2_000


def ensure_demo_campaigns(owner) -> list[Campaign]:
    """Return the owner's demo campaigns, making and starting those that are missing."""
    return [_find(owner, demo) or _make(owner, demo) for demo in DEMO_CAMPAIGNS]


def is_demo(campaign: Campaign) -> bool:
    """Tell whether simulated people know what a campaign asks."""
    asked, kind = [judge.question for judge in campaign.config.judges], campaign.config.space.kind
    return any(demo.space["kind"] == kind and [demo.question] == asked for demo in DEMO_CAMPAIGNS)


def hidden_scores(campaign: Campaign) -> dict[str, Score]:
    """Return, for the question of a demo campaign, what a simulated voter feels about an object, by its content."""
    demo = next(demo for demo in DEMO_CAMPAIGNS if demo.space["kind"] == campaign.config.space.kind)
    seen = _pixels_in(campaign) if campaign.object_kind.medium == "picture" else str
    return {demo.question: cache(lambda content: demo.taste(seen(content)))}


def _pixels_in(campaign: Campaign) -> Callable[[str], Any]:
    """Return what shows a voter the picture that the page names."""
    space = decoder_of(campaign)

    def pixels(name: str) -> Pixels:
        codes = campaign.states.filter(content=name).values_list("code", flat=True)
        return space.pixels(space.decode(codes[:1].get()))

    return pixels


def _find(owner, demo: DemoCampaign) -> Campaign | None:
    mine = Campaign.objects.filter(owner=owner, name=demo.name).exclude(status=Campaign.Status.DRAFT)
    # A campaign of that name from before the objects were generated is somebody's record, not this one.
    return next((campaign for campaign in mine if campaign.config.space.kind == demo.space["kind"]), None)


def _make(owner, demo: DemoCampaign) -> Campaign:
    described = {
        "name": demo.name,
        "instructions": demo.instructions,
        "space": demo.space,
        "kernel": demo.kernel,
        "judges": [{"question": demo.question, "votes": _VOTES}],
        "chains": _CHAINS,
        "steps": _STEPS,
    }
    campaign = changes.create(owner=owner, config=CampaignConfig.model_validate(described))
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
    people = Vote.objects.filter(judge__campaign=campaign_id, annotator__invitation__is_simulated=False)
    return not people.filter(cast_at__gte=timezone.now() - _PERSON_IS_VOTING).exists()


async def _attend(site: str, owner: User, count: int) -> None:
    attended: dict[int, list[asyncio.Task[None]]] = {}
    while True:
        for campaign_id, company in await asyncio.to_thread(_missing, site, owner, count, set(attended)):
            attended[campaign_id] = [asyncio.create_task(voter.run()) for voter in company]
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
