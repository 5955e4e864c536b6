"""The pictures and recordings that people and models compared, as files of the record, by the objects' numbers.

Only those that the site has stored: patterns are quickly made again from their codes. Of an uploaded archive they are
those that a chain has stood on or that were proposed; nothing else in the record needs the others. A pair that was
given shows the same picture in every step, so there the files have the names of the pictures.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db.models import Q

import sampler
from prefmh_web.campaigns.models import Chain, Comparison
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.objects import media

_FOLDERS = {"images": "pictures", "audio": "recordings"}
_ROWS_AT_ONCE = 500
logger = logging.getLogger(__name__)


def are_in(snapshot: Snapshot) -> bool:
    """True where the objects are stored files."""
    space = snapshot.config.space
    return space.objects in _FOLDERS and not isinstance(space, sampler.ImagesConfig)


def folder_of(snapshot: Snapshot) -> str:
    """Return the folder of the archive in which the files are, where there are any."""
    return f"{_FOLDERS[snapshot.config.space.objects]}/"


def name_of(space: sampler.SpaceConfig, state: int, media_type: str) -> str:
    """Return the name in the archive of the file of the object with this number."""
    return f"{_FOLDERS[space.objects]}/{state}.{media.ending_of(media_type)}"


def files(snapshot: Snapshot) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield each file's name in the archive, and its bytes in pieces. One is open at a time, once it is read.

    A file that the storage has lost is left out, and the log names it: the rest of the record is still whole.
    """
    if not are_in(snapshot):
        return
    found = snapshot.campaign.states.filter(_is_shown(snapshot)).exclude(picture="").order_by("place")
    for state, media_type, stored_as in found.values_list("place", "media_type", "picture").iterator(_ROWS_AT_ONCE):
        if not snapshot.has_state(state):
            continue
        try:
            file = default_storage.open(stored_as)
        except FileNotFoundError:
            logger.exception("the file %s is lost, and not in the export", stored_as)
            continue
        yield name_of(snapshot.config.space, state, media_type), _pieces(file)


def _is_shown(snapshot: Snapshot) -> Q:
    """Return what holds of an uploaded archive's files that the chains have met, and of all that chains make."""
    asked = Comparison.objects.filter(chain__campaign=snapshot.campaign).values("proposal")
    started = Chain.objects.filter(campaign=snapshot.campaign).values("start")
    return Q(weight__isnull=True) | Q(pk__in=asked) | Q(pk__in=started)


def _pieces(file: File[Any]) -> Iterator[bytes]:
    with file:
        yield from file.chunks()
