"""What is counted of the start of a campaign that died and is begun again."""

from __future__ import annotations

import pytest

from prefmh_web.campaigns.engine import spending
from prefmh_web.campaigns.models import ModelUsage
from prefmh_web.experiments import campaigns, run
from tests.experiments.test_recipes import CHAINS, PROMPTS, part_of

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("method", ["base", "pref-sep"])
def test_texts_prompts_and_trials_are_counted_once_for_each_start_that_died(method, django_user_model):
    part = part_of("stories", method)
    campaign = campaigns.ensure(django_user_model.objects.create_user("researcher"), "hash", part, run.recipe_of(part))
    for deaths in (1, 2):
        spending.note_repeated_start(campaign)
        counted = dict(ModelUsage.objects.filter(campaign=campaign).values_list("place", "repeated"))
        # Four requests a text at most, its prompt's among them; pref-sep has three judges, and base none.
        texts = deaths * 4 * PROMPTS * CHAINS
        judges = range(3 if method == "pref-sep" else 0)
        assert counted == {spending.PROPOSALS: texts, **dict.fromkeys(judges, deaths)}
