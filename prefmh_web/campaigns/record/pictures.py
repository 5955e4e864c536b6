"""The pictures that an image model has made of the chains' objects, as files of the record, by the objects' numbers.

Only those that the site has stored: patterns are quickly made again from their codes, and pictures of an uploaded
archive are the researcher's own.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from django.core.files.base import File
from django.core.files.storage import default_storage

import sampler
from prefmh_web.campaigns.record.snapshot import Snapshot

FOLDER = "pictures"
_ROWS_AT_ONCE = 500
logger = logging.getLogger(__name__)


def are_in(snapshot: Snapshot) -> bool:
    """True where an image model makes the objects."""
    return isinstance(snapshot.recipe.space, sampler.ServedImagesRecipe)


def name_of(state: int) -> str:
    """Return the name in the archive of the picture of the object with this number."""
    return f"{FOLDER}/{state}.png"


def files(snapshot: Snapshot) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield each picture's name in the archive, and its bytes in pieces. One is open at a time, once it is read.

    A file that the storage has lost is left out, and the log names it: the rest of the record is still whole.
    """
    if not are_in(snapshot):
        return
    found = snapshot.campaign.states.filter(weight__isnull=True).exclude(picture="").order_by("place")
    for place, stored_as in found.values_list("place", "picture").iterator(_ROWS_AT_ONCE):
        if not snapshot.has_state(place):
            continue
        try:
            file = default_storage.open(stored_as)
        except FileNotFoundError:
            logger.exception("the picture %s is lost, and not in the export", stored_as)
            continue
        yield name_of(place), _pieces(file)


def _pieces(file: File[Any]) -> Iterator[bytes]:
    with file:
        yield from file.chunks()
