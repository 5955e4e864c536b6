"""Spaces: the base distributions p0 that chains move in. A list that is brought (`catalog`), `molecules`, `texts`, and
images, from `latents` of a model elsewhere or as `patterns`.

To add a space that generates its objects:

1. copy a file, `latents.py` for example: it holds a class with the methods of `sampler.Space`, and a config with a new
   `kind` and with `objects`, the kind of object that it makes;
2. add the config to `Generated` below;
3. give it a kernel (`sampler.kernels` says how), or name it in the `moves_in` of one that moves here.

Nothing else is needed to simulate, record and replay. The form of a campaign's setup is made of the declaration;
`prefmh_web/console/forms/setup_form.py` names the usual move of a space and the picture of its card.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import Field

from sampler.spaces.catalog import Catalog, CatalogConfig
from sampler.spaces.latents import ServedImagesConfig
from sampler.spaces.molecules.space import MoleculesConfig
from sampler.spaces.patterns import ImagesConfig
from sampler.spaces.texts import ServedTextsConfig, TextsConfig

Generated = MoleculesConfig | TextsConfig | ImagesConfig | ServedImagesConfig
SpaceConfig = Annotated[CatalogConfig | Generated | ServedTextsConfig, Field(discriminator="kind")]

_OBJECTS = {config.model_fields["kind"].default: config.objects for config in get_args(Generated | ServedTextsConfig)}
"""Of spaces that make one kind of object; a list says in the config which it has."""

__all__ = [
    "Catalog",
    "CatalogConfig",
    "Generated",
    "ServedImagesConfig",
    "ServedTextsConfig",
    "SpaceConfig",
    "objects_of",
]


def objects_of(space: Mapping[str, Any]) -> str:
    """Return the name of the kind of object of a config's space, as `OBJECT_KINDS` has it.

    Raises:
        KeyError: `space` is no space of a config.
    """
    return str(_OBJECTS[space["kind"]] if space["kind"] in _OBJECTS else space["objects"])
