"""The record as files: JSON documents, CSV tables, and what people saw. `sampler.tables` declares them.

They are streamed row by row, one by one or as one ZIP, as they stood at the moment of a `Snapshot`.
"""

import csv
import io
import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any
from zipfile import ZIP_DEFLATED, ZIP_STORED

from django.conf import settings
from django.utils import timezone
from zipstream import ZipStream

import sampler
from prefmh_web import hooks
from prefmh_web.campaigns.models import Campaign, Judge
from prefmh_web.campaigns.record import events, pictures, preferences, rows
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.settings.languages import SOURCE
from sampler import tables

_CHARACTERS_PER_CHUNK = 2**16
TABLES: dict[str, Callable[[Snapshot], Iterator[Row]]] = {
    table.file: getattr(rows, table.name) for table in tables.TABLES
} | {tables.EVENTS.file: events.rows}
"""By the file's name, in the order of the ZIP."""


def config(campaign: Campaign) -> str:
    """Return the config as JSON; while a campaign runs, with the hash of its seed in the seed's place."""
    return as_json(campaign.public_config)


def as_json(held: object) -> str:
    """Return what a JSON file holds."""
    return json.dumps(held, indent=2, ensure_ascii=False) + "\n"


def documents(campaign: Campaign, tuning: dict[str, Any] | None) -> dict[str, str]:
    """Return the JSON files of a started campaign's record, by their names.

    Args:
        tuning: what the warm-up has chosen.
    """
    found = {tables.CONFIG: config(campaign), tables.JUDGES: as_json(_judges(campaign))}
    if tuning is not None:
        found[tables.TUNING] = as_json(tuning)
    if campaign.config.all_scorers:
        found[tables.SCORERS] = as_json(list(campaign.scorers.values_list("frozen", flat=True)))
    return found


def _judges(campaign: Campaign) -> list[dict[str, object]]:
    """Return what answers each question: for a model, all that was fixed when the campaign started.

    `identities` are what its replies said they were from; `votes` and `ratings` name them by their numbers. One that
    is not accepted gave none.
    """
    found = campaign.judges.select_related("endpoint", "campaign").prefetch_related("identities")
    numbers = rows.identities(campaign)
    return [_judge(judge, numbers) for judge in found]


def _judge(judge: Judge, numbers: dict[int, int]) -> dict[str, object]:
    source = "model" if judge.is_model else "people"
    about: dict[str, object] = {"judge_index": judge.place, "question": judge.question, "source": source}
    if judge.panelist is not None:
        about |= {"source": "panelist", "panelist": judge.panelist}
    if not judge.is_model:
        language = judge.campaign.config.language
        return about if language == SOURCE else about | {"language": language}
    identities = [
        {
            "identity": numbers[identity.pk],
            "model": identity.model,
            "system_fingerprint": identity.system_fingerprint,
            "first_seen_at": sampler.moment(identity.first_seen_at),
            "accepted_at": sampler.moment(identity.accepted_at) or None,
        }
        for identity in judge.identities.all()
    ]
    return about | {"stopped_because": judge.stopped_because, **(judge.frozen or {}), "identities": identities}


def csv_text(snapshot: Snapshot, name: str) -> Iterator[str]:
    """Yield one of `TABLES` as CSV text, a piece at a time."""
    return as_csv(TABLES[name](snapshot))


def as_csv(found: Iterator[Row]) -> Iterator[str]:
    """Yield rows as CSV text, in pieces of some hundred rows, or of fewer where they are long."""
    buffer = io.StringIO()
    write = csv.writer(buffer).writerow
    for row in found:
        write(row)
        if buffer.tell() > _CHARACTERS_PER_CHUNK:
            yield _drain(buffer)
    yield _drain(buffer)


def in_pieces(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines of text together, as large pieces as those of a CSV file."""
    buffer = io.StringIO()
    for line in lines:
        buffer.write(line)
        if buffer.tell() > _CHARACTERS_PER_CHUNK:
            yield _drain(buffer)
    yield _drain(buffer)


def archive(campaign: Campaign) -> Iterator[bytes]:
    """Yield a ZIP of the config and all tables, all of the same moment."""
    snapshot = Snapshot.now(campaign)
    stream, manifest = ZipStream(compress_type=ZIP_DEFLATED), sampler.Manifest()
    files: dict[str, tables.Table | None] = {}
    declared = {table.file: table for table in tables.EVERY} | {
        tables.STATES.file: tables.states_table(rows.columns_of(campaign))
    }

    def add_text(text: str, name: str) -> None:
        files[name] = declared.get(name)
        stream.add(manifest.whole(name, text.encode()), name)

    def add_pieces(pieces: Iterator[str], name: str) -> None:
        files[name] = declared[name]
        stream.add(manifest.streamed(name, map(str.encode, pieces)), name)

    for name, text in documents(campaign, snapshot.tuning).items():
        add_text(text, name)
    for name, rows_of in TABLES.items():
        add_pieces(as_csv(rows_of(snapshot)), name)
    if preferences.are_in(campaign):
        add_pieces(in_pieces(preferences.lines(snapshot)), tables.PREFERENCES.file)
    for of_people in hooks.load(hooks.RECORD_TABLES):
        for table, found in of_people(campaign):
            add_pieces(as_csv(chain([table.header], found)), table.file)
    if pictures.are_in(snapshot):
        files[pictures.folder_of(snapshot)] = None
    files |= {tables.CODEBOOK.file: tables.CODEBOOK, tables.MANIFEST: None}
    add_text("".join(as_csv(tables.codebook(files, campaign.target_law))), tables.CODEBOOK.file)
    # Most of what is compressed comes out in large blocks, with nothing between them.
    return filter(None, _to_its_end(stream, snapshot, manifest))


def _to_its_end(stream: ZipStream, snapshot: Snapshot, manifest: sampler.Manifest) -> Iterator[bytes]:
    """Yield the archive. Pictures and recordings come after all else, one by one, for there may be very many, and they
    are compressed; at the end, once each file is hashed, the manifest.
    """
    yield from stream.all_files()
    for name, data in pictures.files(snapshot):
        stream.add(manifest.streamed(name, data), name, compress_type=ZIP_STORED)
        yield from stream.all_files()
    campaign, now = snapshot.campaign.pk, sampler.moment(timezone.now())
    document = manifest.document(site=settings.SITE_URL, campaign=campaign, written_at=now)
    stream.add(document, tables.MANIFEST)
    yield from stream.all_files()
    yield from stream.footer()


def _drain(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
