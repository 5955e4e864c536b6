"""Spaces: what chains move in. Today a catalog, of texts, molecules or images.

To add a kind of object: copy one of the three files and add its class to `OBJECT_KINDS`.
"""

from __future__ import annotations

from sampler.spaces.catalogs.catalog import Catalog, CatalogRecipe
from sampler.spaces.catalogs.images import Images
from sampler.spaces.catalogs.molecules import Molecules
from sampler.spaces.catalogs.objects import CatalogError, Item, ObjectKind, Reading, Refusal
from sampler.spaces.catalogs.texts import Texts
from sampler.spaces.molecules.drawing import draw_molecule

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
