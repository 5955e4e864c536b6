"""Spaces: what chains move in. One folder each: `catalogs` (a list that is brought), `molecules`, `texts`, `images`.

To add a space that generates its objects:

1. copy a folder; its `space.py` holds a class with the methods of `space.Space`, and a recipe with a new `kind`;
2. add the recipe to `Generated` below, and how its objects are shown to `SHOWN_AS`;
3. give it a kernel (`sampler.kernels` says how), and say there in `MOVES_IN` that it moves here.

Nothing else is needed to simulate, record and replay. To offer it when a campaign is set up in the browser, copy one of
the forms in `prefmh_web/console/spaces`.

To add a kind of object to catalogs: copy one of the three files in `catalogs` and add its class to `OBJECT_KINDS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from sampler.objects.images.reading import Images
from sampler.objects.items import MAX_CHARACTERS as MAX_CATALOG_CHARACTERS
from sampler.objects.items import MAX_ITEMS as MAX_CATALOG_ITEMS
from sampler.objects.items import Item, ObjectKind, Reading, Refusal
from sampler.objects.molecules.reading import Molecules
from sampler.objects.tables import CatalogError
from sampler.objects.texts.reading import Texts
from sampler.spaces.catalog import Catalog, CatalogRecipe
from sampler.spaces.images.served import ServedImagesRecipe
from sampler.spaces.images.space import ImagesRecipe
from sampler.spaces.molecules.space import MoleculesRecipe
from sampler.spaces.texts.served import ServedTextsRecipe
from sampler.spaces.texts.space import TextsRecipe

Generated = MoleculesRecipe | TextsRecipe | ImagesRecipe | ServedImagesRecipe
SpaceRecipe = Annotated[CatalogRecipe | Generated | ServedTextsRecipe, Field(discriminator="kind")]

# How the objects of a space are shown; a catalog says so itself.
SHOWN_AS = {
    "molecules": "molecules",
    "texts": "texts",
    "images": "images",
    "model-texts": "texts",
    "model-images": "images",
}

OBJECT_KINDS: dict[str, ObjectKind] = {kind.name: kind for kind in (Texts(), Molecules(), Images())}

__all__ = [
    "MAX_CATALOG_CHARACTERS",
    "MAX_CATALOG_ITEMS",
    "OBJECT_KINDS",
    "Catalog",
    "CatalogError",
    "CatalogRecipe",
    "Generated",
    "Item",
    "ObjectKind",
    "Reading",
    "Refusal",
    "ServedImagesRecipe",
    "ServedTextsRecipe",
    "SpaceRecipe",
    "objects_of",
]


def objects_of(space: Mapping[str, Any]) -> str:
    """Return "texts", "molecules" or "images": how the objects of a recipe's space are shown.

    Raises:
        KeyError: `space` is no space of a recipe.
    """
    return str(space["objects"] if space["kind"] == "catalog" else SHOWN_AS[space["kind"]])
