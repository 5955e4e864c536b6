"""The language models that write texts: behind an endpoint of a researcher's, or run by the site itself."""

from __future__ import annotations

import sampler
from prefmh_web.endpoints.errors import Unable
from prefmh_web.endpoints.language_model import ServedModel
from prefmh_web.endpoints.local.models import local_model, model_names
from prefmh_web.endpoints.models import Endpoint


def writer_for(owner_id: int, space: sampler.ServedTextsConfig) -> sampler.LanguageModel:
    """Return the model that a config's space names.

    Args:
        owner_id: whose endpoint it is, unless the site runs the model itself.

    Raises:
        Unable: there is no model of that name, it cannot take and return token ids, or it cannot be run here.
    """
    if is_run_here(space):
        try:
            return local_model(
                space.model,
                limit=space.limit,
                temperature=space.temperature,
                system=space.system,
                prompts=space.prompts,
            )
        except (ImportError, OSError, ValueError) as error:
            raise Unable(f"{space.model} cannot be run here: {error}") from error
    endpoint = Endpoint.objects.filter(owner=owner_id, name=space.model).first()
    if endpoint is None:
        raise Unable(f"there is no endpoint “{space.model}”")
    return ServedModel(
        endpoint, limit=space.limit, temperature=space.temperature, system=space.system, prompts=space.prompts
    )


def is_run_here(space: sampler.ServedTextsConfig) -> bool:
    """Return whether the model is one of the site's own, which the worker of the queue “gpu” runs."""
    return space.model in model_names()
