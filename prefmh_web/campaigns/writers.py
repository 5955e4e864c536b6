"""The model that writes a campaign's texts, by the name its recipe gives."""

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.language_model import ServedModel
from prefmh_web.endpoints.models import Endpoint


def writer_of(campaign: Campaign) -> sampler.LanguageModel:
    """Return the model of a campaign.

    Raises:
        Unable: there is no endpoint of that name, or it cannot take and return token ids.
    """
    space = sampler.parse_recipe(campaign.recipe).space
    endpoint = Endpoint.objects.filter(owner=campaign.owner_id, name=space.model).first()
    if endpoint is None:
        raise Unable(f"there is no endpoint “{space.model}”")
    return ServedModel(
        endpoint, limit=space.limit, temperature=space.temperature, system=space.system, prompts=space.prompts
    )
