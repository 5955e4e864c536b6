"""The three ready campaigns of `manage.py demo`, made through the same doors as a researcher's own."""

import random
from dataclasses import dataclass

from django.core.files.base import ContentFile

from prefmh_web.campaigns import lifecycle, setup
from prefmh_web.campaigns.models import Campaign
from prefmh_web.demo.catalogs import DEMO_CATALOGS, DemoCatalog
from prefmh_web.demo.voters import Score
from prefmh_web.embedded.tasks import wait_until_idle


@dataclass(frozen=True)
class DemoCampaign:
    """A campaign of the demo: its name and what is asked. Each question goes with one hidden score."""

    name: str
    instructions: str
    questions: tuple[tuple[str, int], ...]


DEMO_CAMPAIGNS = {
    "texts": DemoCampaign(
        "Story openings",
        "You will read two openings of a story. Choose by feeling; most people need less than half a minute.",
        (("Which opening is more gothic?", 2), ("Which opening is better written?", 1)),
    ),
    "molecules": DemoCampaign(
        "Molecules to follow up",
        "You are choosing compounds for the next round of a drug discovery project.",
        (("Which molecule would you rather follow up?", 1),),
    ),
    "images": DemoCampaign(
        "Patterns",
        "",
        (("Which picture would you rather hang on your wall?", 2),),
    ),
}
_KERNEL = {
    "kind": "mixture",
    "parts": [
        {"weight": 0.4, "kernel": {"kind": "independent"}},
        {"weight": 0.6, "kernel": {"kind": "neighbours"}},
    ],
}
_CHAINS, _STEPS, _NEIGHBOURS = 6, 200, 6


def ensure_demo_campaigns(owner) -> dict[str, Campaign]:
    """Return the owner's demo campaigns by kind of object, making and starting those that are missing."""
    return {catalog.objects: _find(owner, catalog) or _make(owner, catalog) for catalog in DEMO_CATALOGS}


def hidden_scores(campaign: Campaign) -> dict[str, Score]:
    """Return, for each question of a demo campaign, what a simulated voter feels about each object's place."""
    catalog = next(catalog for catalog in DEMO_CATALOGS if catalog.objects == campaign.objects_kind)
    contents = dict(campaign.states.values_list("place", "content"))
    questions = [judge["question"] for judge in campaign.recipe["judges"]]
    return {
        question: {place: score(content) for place, content in contents.items()}.__getitem__
        for question, score in zip(questions, catalog.scores, strict=True)
    }


def _find(owner, catalog: DemoCatalog) -> Campaign | None:
    name = DEMO_CAMPAIGNS[catalog.objects].name
    return Campaign.objects.filter(owner=owner, name=name).exclude(status=Campaign.Status.DRAFT).first()


def _make(owner, catalog: DemoCatalog) -> Campaign:
    demo = DEMO_CAMPAIGNS[catalog.objects]
    recipe = {
        "version": 1,
        "space": {"kind": "catalog", "objects": catalog.objects, "neighbours": _NEIGHBOURS},
        "kernel": _KERNEL,
        "judges": [{"question": question, "budget": budget} for question, budget in demo.questions],
        "chains": _CHAINS,
        "steps": _STEPS,
        # Drawn afresh: a voter who knew the seed would know the uniforms.
        "seed": random.SystemRandom().randrange(2**53),
    }
    campaign = setup.create(
        owner=owner,
        name=demo.name,
        instructions=demo.instructions,
        recipe=recipe,
        file=ContentFile(catalog.write(), catalog.filename),
        filename=catalog.filename,
    )
    # `create` has queued the reading of the file.
    wait_until_idle()
    lifecycle.start(Campaign.objects.get(pk=campaign.pk))
    campaign.refresh_from_db()
    return campaign
