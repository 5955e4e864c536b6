"""A seed that was drawn is in no file; one that was chosen, as an experiment does, is."""

import sampler
from prefmh_web.experiments import campaigns
from prefmh_web.experiments.recipes import RECIPES, Part
from prefmh_web.setup.export import setup_of, text_of
from tests.support.campaigns import imported, written_file


def test_an_experiments_campaign_has_the_runs_number_as_its_seed(researcher):
    options = sampler.ExperimentOptions.of("molecules", methods=["mars-plain"])
    (method,) = options.chosen
    part = Part(options, method, options.directions[0].name, seed=11, endpoints={})
    recipe = sampler.parse_recipe(RECIPES["molecules"](part)).model_dump(mode="json")
    campaign = campaigns.ensure(researcher, "hash", part, recipe)
    assert campaign.recipe["seed"] == 11
    assert campaign.is_seed_typed
    assert "\nseed: 11\n" in text_of(setup_of(campaign))
    assert imported(written_file(campaign), researcher).recipe["seed"] == 11
