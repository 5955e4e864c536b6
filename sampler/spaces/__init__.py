"""Spaces: what chains move in. Today a catalog, of texts, molecules or images.

To add a kind of object: copy one of the three files and add its class to `OBJECT_KINDS`.
"""

from __future__ import annotations

from sampler.spaces.catalog import Catalog, CatalogRecipe
from sampler.spaces.images import Images
from sampler.spaces.molecules import Molecules, draw_molecule
from sampler.spaces.objects import CatalogError, Item, ObjectKind, Reading, Refusal
from sampler.spaces.texts import Texts

OBJECT_KINDS: dict[str, ObjectKind] = {kind.name: kind for kind in (Texts(), Molecules(), Images())}

__all__ = [
    "OBJECT_KINDS",
    "Catalog",
    "CatalogError",
    "CatalogRecipe",
    "Item",
    "ObjectKind",
    "Reading",
    "Refusal",
    "draw_molecule",
]
