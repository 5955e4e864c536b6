"""Campaigns that find in a warm-up how far to walk: twelve texts of different lengths, in a ring of neighbours."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Campaign
from tests.support.stack import make_campaign, make_recipe

TEXTS = "text,weight\n" + "".join(f"{'far ' * place}away,{1 + place % 3}\n" for place in range(12))
WARM_UP = {"steps": 6, "grid": [1, 3, 9], "properties": ["words"], "settling": 2, "patience_minutes": 5}


def warming_recipe(warm_up: dict | None = None, **changes) -> dict:
    """Return a recipe as it is stored, with changes of the warm-up and of the rest."""
    kernel = {"kind": "walk", "kernel": {"kind": "neighbours"}, "length": 5, "warm_up": WARM_UP | (warm_up or {})}
    judges = [{"question": "Which is darker?", "budget": 1}]
    recipe = {"version": 1} | make_recipe(kernel=kernel, judges=judges, chains=3, steps=12) | changes
    return sampler.parse_recipe(recipe).model_dump(mode="json")


def warming_campaign(owner, warm_up: dict | None = None, **changes) -> Campaign:
    """Return a started campaign with a warm-up."""
    return make_campaign(owner, file=TEXTS, recipe=warming_recipe(warm_up, **changes))
