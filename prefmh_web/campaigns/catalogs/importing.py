"""Reading an uploaded file into a campaign's states. Nothing else writes catalogs and their states."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import PurePath
from typing import Any, BinaryIO

from django.conf import settings
from django.core.files.base import ContentFile, File
from django.db import transaction
from django.db.models import F

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.catalogs.lock import reading_alone
from prefmh_web.campaigns.models import Campaign, Catalog, State
from prefmh_web.objects import media
from prefmh_web.transport import sockets

MAX_ATTEMPTS = 2
_PROGRESS_EVERY_S = 0.5
Graph = tuple[tuple[int, ...], ...]
_ENDINGS = (".csv", ".zip")


def upload(campaign: Campaign, file: File[Any], filename: str) -> Catalog:
    """Take a file for a draft campaign, in place of an earlier one, and queue its reading."""
    # A name of ours: the sender's may be longer than a file system takes.
    file.name = f"{campaign.pk}{PurePath(filename).suffix if PurePath(filename).suffix in _ENDINGS else ''}"
    catalog, is_new = Catalog.objects.get_or_create(
        campaign=campaign, defaults={"file": file, "filename": PurePath(filename).name[:255]}
    )
    if is_new:
        dispatch.read_catalog(catalog.pk, catalog.revision)
        return catalog
    replaced = catalog.file.name
    catalog.file = file
    catalog.filename = PurePath(filename).name[:255]
    catalog.save(update_fields=("file", "filename"))
    _remove_on_commit(replaced)
    return read_again(catalog)


def read_again(catalog: Catalog) -> Catalog:
    """Queue a new reading, after a new file or a new number of neighbours."""
    catalog.status = Catalog.Status.READING
    catalog.revision += 1
    catalog.attempts, catalog.rows_read, catalog.rows_total, catalog.error, catalog.refusals = 0, 0, None, "", []
    catalog.save(update_fields=("status", "revision", "attempts", "rows_read", "rows_total", "error", "refusals"))
    dispatch.read_catalog(catalog.pk, catalog.revision)
    return catalog


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
    with reading_alone(catalog_id) as alone:
        if not alone:
            return
        wanted = Catalog.objects.filter(pk=catalog_id, revision=revision, status=Catalog.Status.READING)
        catalog = wanted.select_related("campaign").first()
        if catalog is None:
            return
        if catalog.attempts >= MAX_ATTEMPTS:
            error = f"Reading this file has failed {catalog.attempts} times; the server's log says why."
            _finish(catalog, Catalog.Status.REFUSED, error=error)
            return
        wanted.update(attempts=F("attempts") + 1)
        _read(catalog)


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
        progress = _Progress(catalog)
        reading = kind.read(file, progress, pictures)  # type: ignore[arg-type]  # Django's files do as a BinaryIO does
    _demand_columns(space, reading.extra_columns)
    neighbours = kind.neighbours(reading.items, space.neighbours) if space.neighbours else ((),) * len(reading.items)
    return reading, neighbours


def _demand_columns(space: sampler.CatalogConfig, columns: Sequence[str]) -> None:
    for shown in space.context:
        if shown.column not in columns:
            found = ", ".join(f"“{name[:40]}”" for name in columns[:10]) or "no further columns"
            raise sampler.CatalogError(
                f"The setup shows the column “{shown.column}” with each pair; the file has {found}. Correct “Shown "
                "with each pair” in the setup, or upload another file."
            )


def _store(catalog: Catalog, reading: sampler.Reading, graph: Graph) -> None:
    states = [_state(catalog, place, item, graph[place]) for place, item in enumerate(reading.items)]
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


def _state(catalog: Catalog, place: int, item: sampler.Item, neighbours: tuple[int, ...]) -> State:
    state = State(
        campaign=catalog.campaign,
        place=place,
        content=item.content,
        weight=item.weight,
        neighbours=list(neighbours),
        media_type=item.media_type,
        columns=dict(item.extra),
    )
    if item.kept:
        ending = media.ending_of(item.media_type)
        name = media.picture_name(catalog.campaign_id, catalog.revision, place, ending)
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
    sockets.nudge(sockets.watchers(catalog.campaign_id))
    return bool(written)


class _Progress:
    """Writes how far the reading is, twice a second at most."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._next = time.monotonic() + _PROGRESS_EVERY_S

    def __call__(self, done: int, total: int | None) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PROGRESS_EVERY_S
        Catalog.objects.filter(pk=self._catalog.pk, revision=self._catalog.revision).update(
            rows_read=done, rows_total=total
        )
        sockets.nudge(sockets.watchers(self._catalog.campaign_id))
