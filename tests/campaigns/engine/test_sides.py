"""On a pair that people and models judge, the sides of the one do not follow from those of the other."""

import numpy as np
import pytest

import sampler
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Annotator, Lease, Side
from prefmh_web.endpoints.models import Endpoint
from tests.support.stack import make_campaign, make_recipe

CHAINS = 60
SOURCE = {"kind": "model", "endpoint": "A model"}
MODEL = {"question": "Which is darker?", "budget": 3, "source": SOURCE}
PEOPLE = {"question": "Which is better?", "budget": 3}


@pytest.mark.parametrize("judges", [[MODEL, PEOPLE], [PEOPLE, MODEL], [PEOPLE, MODEL, PEOPLE | {"question": "Or?"}]])
def test_the_sides_that_people_see_are_independent_of_those_that_models_see(researcher, idle_tasks, judges):
    # Nobody answers at this address: the model's votes stay out, what they would show is known all the same.
    Endpoint.objects.create(owner=researcher, name="A model", base_url="http://127.0.0.1:9/v1", model="tiny")
    campaign = make_campaign(researcher, recipe=make_recipe(judges=judges, chains=CHAINS, steps=2))
    place, budgets = judges.index(MODEL), tuple(judge["budget"] for judge in judges)
    shown: list[tuple[bool, tuple[bool, ...]]] = []
    for _ in range(CHAINS * 2):
        lease = leases.take(Annotator.objects.create(campaign=campaign))
        if lease is None:
            break
        chain, step = lease.comparison.chain.place, lease.comparison.step
        sides = sampler.presentations_of(campaign.recipe["seed"], chain, step, budgets, place, "random")
        shown.append((lease.proposal_side == Side.LEFT, sides))
    assert Lease.objects.count() >= CHAINS / 2
    people = np.array([first for first, _ in shown])
    for slot in range(MODEL["budget"]):
        model = np.array([sides[slot] for _, sides in shown])
        # Agreement of fair coins has standard deviation sqrt(n) / 2; four of them.
        assert abs(np.sum(people == model) - len(shown) / 2) < 2 * np.sqrt(len(shown)), f"slot {slot}"
