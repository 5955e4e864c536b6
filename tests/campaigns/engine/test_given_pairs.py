"""Pairs that were given: whoever has answered a pair gets no other step of its chain."""

import sampler
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.lifecycle import drafts
from prefmh_web.campaigns.models import Annotator, Side
from tests.support.stack import make_recipe, wait_until_idle


def test_each_person_answers_a_pair_once(researcher, idle_tasks):
    space = {"kind": "pairs", "objects": "texts", "pairs": [["One.", "Two."]]}
    judges = [{"question": "Which is better?", "budget": 1}]
    recipe = make_recipe(version=1, space=space, kernel={"kind": "neighbours"}, judges=judges, chains=1, steps=3)
    recipe = sampler.parse_recipe(recipe).model_dump(mode="json")
    campaign = drafts.create(owner=researcher, is_seed_typed=True, name="Pairs", recipe=recipe)
    lifecycle.start(campaign)
    wait_until_idle()
    first, second = (Annotator.objects.create(campaign=campaign) for _ in range(2))
    leases.answer(leases.take(first).key, first, Side.LEFT, 0)
    wait_until_idle()
    assert leases.take(first) is None
    taken = leases.take(second)
    assert taken.comparison.step == 2
    leases.answer(taken.key, second, Side.LEFT, 0)
    wait_until_idle()
    assert leases.take(first) is None
    assert leases.take(second) is None
