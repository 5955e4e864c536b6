"""The model that writes a campaign's texts, by the name its recipe gives."""

import sampler
from prefmh_web.campaigns import recipes
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.language_model import ServedModel
from prefmh_web.endpoints.local.models import local_model, model_names
from prefmh_web.endpoints.models import Endpoint


def writer_of(campaign: Campaign) -> sampler.LanguageModel:
    """Return the model of a campaign: behind an endpoint of its owner's, or one that the site runs itself.

    Raises:
        Unable: there is no model of that name, it cannot take and return token ids, or it cannot be run here.
    """
    space = recipes.recipe_of(campaign).space
    options = {"limit": space.limit, "temperature": space.temperature, "system": space.system, "prompts": space.prompts}
    if is_run_here(campaign):
        try:
            return local_model(space.model, **options)
        except (ImportError, OSError, ValueError) as error:
            raise Unable(f"{space.model} cannot be run here: {error}") from error
    endpoint = Endpoint.objects.filter(owner=campaign.owner_id, name=space.model).first()
    if endpoint is None:
        raise Unable(f"there is no endpoint “{space.model}”")
    return ServedModel(endpoint, **options)


def is_run_here(campaign: Campaign) -> bool:
    """True when a campaign's objects are made by one of the site's own models, in the worker of the queue “gpu”."""
    is_own_writer = campaign.is_written_by_a_model and campaign.recipe["space"]["model"] in model_names()
    return is_own_writer or campaign.is_painted_by_a_model
