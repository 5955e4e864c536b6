"""Uploaded files: read into a campaign's states, kept for a form that was refused, removed once nobody asks for them.

Nothing else writes catalogs and their states. One reading of a file goes on at a time, whoever was told to read it: the
file is claimed, and the claim ends soon after its holder's process does.

    media/uploads/                    a file that arrived. Its row is written in the same breath, or never
    media/kept/<researcher>/<token>   a file on a form that was not saved, for an hour, so that nobody uploads twice; a
                                      few for each researcher, of which a new one takes the oldest's place. A form
                                      carries a signed ticket, which opens a file of the researcher who has sent it only
    incoming/                         a file on its way in. Whoever writes one moves it on or removes it within seconds

So what is an hour old and named by no row is nobody's.
"""

from __future__ import annotations

import logging
import secrets
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, BinaryIO

from django.conf import settings
from django.core import signing
from django.core.files.base import ContentFile, File
from django.core.files.storage import FileSystemStorage, Storage, default_storage
from django.db import transaction
from django.db.models import F

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.engine.locks import claim_end, held, unclaimed
from prefmh_web.campaigns.models import Campaign, Catalog, State
from prefmh_web.objects import media
from prefmh_web.transport import sockets

logger = logging.getLogger(__name__)

MAX_ATTEMPTS = 2
_PROGRESS_EVERY_S = 0.5
Graph = tuple[tuple[int, ...], ...]
_ENDINGS = (".csv", ".zip")
FOLDER = "kept"
# What is older nobody asks for again.
KEPT_FOR_S = 60 * 60
MAX_FILES = 4
_SALT = "prefmh_web.campaigns.catalogs"
_UPLOADS = "uploads"
# Uploads that a row has named: they are looked for once in a process's life, not every few seconds.
_named: set[str] = set()


def upload(campaign: Campaign, file: File[Any], filename: str) -> None:
    """Take a file for a draft campaign, in place of an earlier one, and queue its reading."""
    # A name of ours: the sender's may be longer than a file system takes.
    file.name = f"{campaign.pk}{PurePath(filename).suffix if PurePath(filename).suffix in _ENDINGS else ''}"
    catalog = Catalog.objects.filter(campaign=campaign).first() or Catalog(campaign=campaign, revision=0)
    replaced = catalog.file.name
    catalog.file, catalog.filename = file, PurePath(filename).name[:255]
    read_again(catalog)
    _remove_on_commit(replaced)


def read_again(catalog: Catalog) -> None:
    """Queue a new reading, after a new file or a new number of neighbours."""
    catalog.status = Catalog.Status.READING
    catalog.revision += 1
    catalog.attempts, catalog.rows_read, catalog.rows_total, catalog.error, catalog.refusals = 0, 0, None, "", []
    catalog.save()
    dispatch.read_catalog(catalog.pk, catalog.revision)


def remove(campaign: Campaign) -> None:
    """Remove a draft's file, if it has one, and the objects read from it."""
    for catalog in Catalog.objects.filter(campaign=campaign):
        replaced = catalog.file.name
        catalog.delete()
        campaign.states.all().delete()
        _remove_on_commit(replaced)
        transaction.on_commit(lambda: media.remove_pictures(campaign.pk), robust=True)


def _remove_on_commit(upload: str | None) -> None:
    if upload:
        transaction.on_commit(lambda: media.remove_upload(upload), robust=True)


def read(catalog_id: int, revision: int) -> None:
    """Read the file of a catalog into states; note what was refused. A stale or repeated call changes nothing.

    A reading that fails in a way nobody foresaw, or takes the process down, is tried once more and then refused.
    """
    unread = Catalog.objects.filter(pk=catalog_id, revision=revision, status=Catalog.Status.READING)
    catalog, until = unread.select_related("campaign").first(), claim_end()
    # A guarded update: of two that are told to read a file, one does.
    if catalog is None or not unread.filter(unclaimed()).update(claimed_until=until):
        return
    with held(Catalog, [catalog.pk], until):
        if catalog.attempts < MAX_ATTEMPTS:
            unread.update(attempts=F("attempts") + 1)
            _read(catalog)
        else:
            error = f"Reading this file has failed {catalog.attempts} times; the server's log says why."
            _finish(catalog, Catalog.Status.REFUSED, error=error)


def _read(catalog: Catalog) -> None:
    try:
        # Pictures wait on the disk of uploads until all are read: in memory they would be gigabytes.
        with tempfile.TemporaryFile(dir=settings.FILE_UPLOAD_TEMP_DIR) as pictures:
            _store(catalog, *_objects(catalog, pictures))
    except sampler.CatalogError as error:
        _finish(catalog, Catalog.Status.REFUSED, error=str(error))
    except FileNotFoundError:
        if Catalog.objects.filter(pk=catalog.pk, revision=catalog.revision).exists():
            raise
        # Deleted, or replaced, between the look and the opening.


def _objects(catalog: Catalog, pictures: BinaryIO) -> tuple[sampler.Reading, Graph]:
    """Return what the file holds, and which of its objects are near each other.

    Raises:
        CatalogError: the file gives no catalog.
        FileNotFoundError: it is gone.
    """
    space = catalog.campaign.config.space
    if not isinstance(space, sampler.CatalogConfig):
        raise sampler.CatalogError("this campaign no longer takes its objects from a file")
    kind = sampler.OBJECT_KINDS[space.objects]
    with catalog.file.open("rb") as file:
        reading = kind.read(file, _progress_of(catalog), pictures)  # type: ignore[arg-type]  # Django's files do as a BinaryIO does
    _require_columns(space, reading.extra_columns)
    neighbours = kind.neighbours(reading.items, space.neighbours) if space.neighbours else ((),) * len(reading.items)
    return reading, neighbours


def _require_columns(space: sampler.CatalogConfig, columns: Sequence[str]) -> None:
    for shown in space.context:
        if shown.column not in columns:
            found = ", ".join(f"“{name[:40]}”" for name in columns[:10]) or "no further columns"
            raise sampler.CatalogError(
                f"The setup shows the column “{shown.column}” with each pair; the file has {found}. Correct “Shown "
                "with each pair” in the setup, or upload another file."
            )


def _store(catalog: Catalog, reading: sampler.Reading, graph: Graph) -> None:
    states = [_state(catalog, index, item, graph[index]) for index, item in enumerate(reading.items)]
    refusals: list[list[str | int]] = [[refusal.source, refusal.reason] for refusal in reading.refusals]
    if reading.more_refusals:
        refusals.append(["and more", f"{reading.more_refusals:,} more are not listed", reading.more_refusals])
    with transaction.atomic():
        # First the campaign, as whoever deletes or changes it does.
        Campaign.objects.select_for_update(no_key=True).filter(pk=catalog.campaign_id).first()
        columns = list(reading.extra_columns)
        if _finish(catalog, Catalog.Status.READY, refusals=refusals, rows_read=len(states), columns=columns):
            State.objects.filter(campaign=catalog.campaign_id).delete()
            State.objects.bulk_create(states, batch_size=500)
    # None when the draft was deleted meanwhile: then no picture stays.
    current = Catalog.objects.filter(pk=catalog.pk).values_list("revision", flat=True).first()
    media.remove_pictures(catalog.campaign_id, keep_revision=current)


def _state(catalog: Catalog, index: int, item: sampler.Item, neighbours: tuple[int, ...]) -> State:
    state = State(
        campaign=catalog.campaign,
        index=index,
        content=item.content,
        weight=item.weight,
        neighbours=list(neighbours),
        media_type=item.media_type,
        columns=dict(item.extra),
    )
    if item.kept:
        ending = media.ending_of(item.media_type)
        name = media.picture_name(catalog.campaign_id, catalog.revision, index, ending)
        state.picture.save(name, ContentFile(item.picture), save=False)
    return state


def _finish(catalog: Catalog, status: Catalog.Status, **fields: object) -> bool:
    """Write the outcome, unless a newer file has come meanwhile or the campaign is a draft no more."""
    written = Catalog.objects.filter(
        pk=catalog.pk,
        revision=catalog.revision,
        status=Catalog.Status.READING,
        campaign__status=Campaign.Status.DRAFT,
    ).update(status=status, **fields)
    sockets.notify(sockets.watchers(catalog.campaign_id))
    return bool(written)


def _progress_of(catalog: Catalog) -> Callable[[int, int | None], None]:
    """Return what writes how far the reading is, twice a second at most."""
    due = time.monotonic() + _PROGRESS_EVERY_S

    def tell(done: int, total: int | None) -> None:
        nonlocal due
        if time.monotonic() < due:
            return
        due = time.monotonic() + _PROGRESS_EVERY_S
        same = Catalog.objects.filter(pk=catalog.pk, revision=catalog.revision)
        same.update(rows_read=done, rows_total=total)
        sockets.notify(sockets.watchers(catalog.campaign_id))

    return tell


@dataclass(frozen=True)
class RetainedUpload:
    """A file that is kept.

    Args:
        name: in the storage.
        filename: as the researcher knows it.
    """

    name: str
    filename: str

    @property
    def ticket(self) -> str:
        """What a form carries of it."""
        return signing.dumps([self.name, self.filename], salt=_SALT)

    def open(self) -> File[Any]:
        """Return the file, under the name that the researcher knows.

        Raises:
            FileNotFoundError: it was removed in this moment.
        """
        file: File[Any] = default_storage.open(self.name)
        file.name = self.filename
        return file

    def remove(self) -> None:
        """Remove it."""
        default_storage.delete(self.name)


def keep(researcher_id: int, file: File[Any]) -> RetainedUpload:
    """Keep a file of a researcher."""
    _make_room(researcher_id)
    file.seek(0)
    name = default_storage.save(f"{_folder(researcher_id)}/{secrets.token_urlsafe(24)}", file)
    return RetainedUpload(name, (file.name or "")[-255:])


def by_ticket(researcher_id: int, ticket: str) -> RetainedUpload | None:
    """Return the file of a ticket; None if it is none of the researcher's, too old, or gone."""
    try:
        name, filename = signing.loads(ticket, salt=_SALT, max_age=KEPT_FOR_S)
    except signing.BadSignature:
        return None
    is_theirs = name.startswith(f"{_folder(researcher_id)}/")
    return RetainedUpload(name, filename) if is_theirs and default_storage.exists(name) else None


def all_names() -> list[str]:
    """Return the names of all files that are kept."""
    if not default_storage.exists(FOLDER):
        return []
    return [name for folder in default_storage.listdir(FOLDER)[0] for name in _names_in(f"{FOLDER}/{folder}")]


def _make_room(researcher_id: int) -> None:
    found = _names_in(_folder(researcher_id))
    oldest_first = sorted(found, key=default_storage.get_modified_time)
    for name in oldest_first[: max(0, len(found) - MAX_FILES + 1)]:
        default_storage.delete(name)


def _names_in(folder: str, storage: Storage = default_storage) -> list[str]:
    if not storage.exists(folder):
        return []
    return [str(PurePath(folder, name)) for name in storage.listdir(folder)[1]]


def _folder(researcher_id: int) -> str:
    return f"{FOLDER}/{researcher_id}"


def remove_leftovers() -> None:
    """Remove what is forgotten. A folder that cannot be read or written is noted, and no reason to sweep nothing."""
    arrivals = FileSystemStorage(settings.FILE_UPLOAD_TEMP_DIR)
    try:
        for storage, names in (
            (arrivals, _names_in("", arrivals)),
            (default_storage, _unnamed_uploads()),
            (default_storage, all_names()),
        ):
            for name in names:
                if _is_old(name, storage):
                    storage.delete(name)
    except OSError as error:
        logger.warning("forgotten uploads cannot be removed: %s", error.strerror or error)


def _unnamed_uploads() -> Collection[str]:
    unknown = set(_names_in(_UPLOADS)) - _named
    if unknown:
        # After the folder was read: a row that came with its file meanwhile is seen.
        _named.update(unknown.intersection(Catalog.objects.values_list("file", flat=True)))
    return unknown - _named


def _is_old(name: str, storage: Storage) -> bool:
    try:
        return storage.get_modified_time(name).timestamp() < time.time() - KEPT_FOR_S
    except FileNotFoundError:
        # Moved on in this moment.
        return False
