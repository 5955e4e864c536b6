"""A campaign's recipe as the sampler's value, and what starting writes into it.

Campaigns that prefmh 0.1.0 started have recipes of version 1. Where version 2 means the same by them, the migration has
made them version 2; the others keep theirs, and with it the rule that their first steps were decided by. They are read
here in that meaning, so that they can be watched, finished and exported. Their export is a record of version 1, as its
recipe says: prefmh 0.1.0 replays it to the last step, and this program's `replay` names that program. To call it
version 2 would be untrue, since the same ratings decide otherwise there; to change the rule half-way would leave a
chain that samples no law at all.
"""

import sampler
from prefmh_web.campaigns.models import Campaign


def recipe_of(campaign: Campaign) -> sampler.Recipe:
    """Return a campaign's recipe.

    Raises:
        sampler.RecipeError: it does not parse; of what has started that cannot be.
    """
    if campaign.recipe.get("version") == 1 and campaign.started_at is not None:
        return sampler.parse_first_version(campaign.recipe)
    return sampler.parse_recipe(campaign.recipe)


def freeze(campaign: Campaign) -> None:
    """Write the law that the chains will sample into the recipe of a campaign that is being started."""
    campaign.recipe = campaign.recipe | {"target": recipe_of(campaign).law}
    campaign.save(update_fields=["recipe"])


def target_of(campaign: Campaign) -> str:
    """Return the law that a campaign's chains sample, in plain text."""
    try:
        return campaign.recipe.get("target") or recipe_of(campaign).law
    except sampler.RecipeError as error:
        return f"none: the setup cannot be started ({error})"
