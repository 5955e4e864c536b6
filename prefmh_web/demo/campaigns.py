"""The three ready campaigns of `manage.py demo`, made through the same doors as a researcher's own."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.frozen import decoder_of
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import CampaignConfig
from prefmh_web.demo import voters
from prefmh_web.demo.voters import Score
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
