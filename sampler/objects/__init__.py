"""Kinds of object: how files of them are read, which are near each other, what can be measured, how they are drawn.

To add a kind: copy one of the folders, and add the class of its `reading.py` to `OBJECT_KINDS`.
"""

from sampler.objects.audio.reading import Audio
from sampler.objects.images.reading import Images
from sampler.objects.items import MAX_CHARACTERS as MAX_CATALOG_CHARACTERS
from sampler.objects.items import MAX_ITEMS as MAX_CATALOG_ITEMS
from sampler.objects.items import Item, ObjectKind, Reading, Refusal
from sampler.objects.markdown.reading import Markdown
from sampler.objects.molecules.reading import Molecules
from sampler.objects.tables import CatalogError, extra_columns_of
from sampler.objects.texts.reading import Texts

_KINDS: tuple[ObjectKind, ...] = (Texts(), Markdown(), Molecules(), Images(), Audio())
OBJECT_KINDS: dict[str, ObjectKind] = {kind.name: kind for kind in _KINDS}

__all__ = [
    "MAX_CATALOG_CHARACTERS",
    "MAX_CATALOG_ITEMS",
    "OBJECT_KINDS",
    "CatalogError",
    "Item",
    "ObjectKind",
    "Reading",
    "Refusal",
    "extra_columns_of",
]
