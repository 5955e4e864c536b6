"""Spaces: the base laws p0 that chains move in. A list that is brought (`catalog`), `molecules`, `texts`, `images`.

To add a space that generates its objects:

1. copy a folder; its `space.py` holds a class with the methods of `space.Space`, and a recipe with a new `kind` and
   with `objects`, the kind of object that it makes;
2. add the recipe to `Generated` below;
3. give it a kernel (`sampler.kernels` says how), or name it in the `moves_in` of one that moves here.

Nothing else is needed to simulate, record and replay. To offer it when a campaign is set up in the browser, copy one of
the forms in `prefmh_web/console/forms/spaces`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, get_args

from pydantic import Field

from sampler.spaces.catalog import Catalog, CatalogRecipe
from sampler.spaces.images.served import ServedImagesRecipe
from sampler.spaces.images.space import ImagesRecipe
from sampler.spaces.molecules.space import MoleculesRecipe
from sampler.spaces.texts.served import ServedTextsRecipe
from sampler.spaces.texts.space import TextsRecipe

Generated = MoleculesRecipe | TextsRecipe | ImagesRecipe | ServedImagesRecipe
SpaceRecipe = Annotated[CatalogRecipe | Generated | ServedTextsRecipe, Field(discriminator="kind")]

_OBJECTS = {recipe.model_fields["kind"].default: recipe.objects for recipe in get_args(Generated | ServedTextsRecipe)}
"""Of spaces that make one kind of object; a list says in the recipe which it has."""

__all__ = [
    "Catalog",
    "CatalogRecipe",
    "Generated",
    "ServedImagesRecipe",
    "ServedTextsRecipe",
    "SpaceRecipe",
    "objects_of",
]


def objects_of(space: Mapping[str, Any]) -> str:
    """Return the name of the kind of object of a recipe's space, as `OBJECT_KINDS` has it.

    Raises:
        KeyError: `space` is no space of a recipe.
    """
    return str(_OBJECTS[space["kind"]] if space["kind"] in _OBJECTS else space["objects"])
