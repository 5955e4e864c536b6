"""The record as files: campaign.json, judges.json, after a warm-up tuning.json, and five CSV files.

Further files tell of chains that opened while the campaign ran, of suspended steps, of what was added to
the steps, of the further columns of an uploaded list, of what models thought and took, and of scorers; each only where
there is something to tell.

They are streamed row by row, one by one or as one ZIP.

`sampler.schema` defines the tables and their cells; `rows.py` and `steps.py` read them as they stood at the moment of a
`Snapshot`.
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
from prefmh_web.campaigns.record import calls, pictures, preferences, reasons, rows, scores, suspended
from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.campaigns.record.steps import steps
from prefmh_web.settings.languages import SOURCE
from sampler import codebook, schema

_CHARACTERS_PER_CHUNK = 2**16
_ROWS = {
    "votes": rows.votes,
    "steps": steps,
    "states": rows.states,
    "samples": rows.samples,
    "ratings": rows.ratings,
}
TABLES: dict[str, Callable[[Snapshot], Iterator[Row]]] = {table.file: _ROWS[table.name] for table in schema.TABLES}
"""By the file's name, in the order of the ZIP."""
_CHAINS: dict[str, Callable[[Snapshot], Iterator[Row]]] = {schema.CHAINS.file: rows.chains}
_SUSPENDED: dict[str, Callable[[Snapshot], Iterator[Row]]] = {schema.SUSPENDED.file: suspended.rows}
_COLUMNS: dict[str, Callable[[Snapshot], Iterator[Row]]] = {schema.COLUMNS.file: rows.columns}
_CALLS: dict[str, Callable[[Snapshot], Iterator[Row]]] = {schema.CALLS.file: calls.rows}
_REASONS: dict[str, Callable[[Snapshot], Iterator[Row]]] = {schema.REASONS.file: reasons.rows}
_SCORES: dict[str, Callable[[Snapshot], Iterator[Row]]] = {schema.SCORES.file: scores.rows}
_EXTENSIONS: dict[str, Callable[[Snapshot], Iterator[Row]]] = {schema.EXTENSIONS.file: rows.extensions}


def config(campaign: Campaign) -> str:
    """Return the config as JSON; while a campaign runs, with the hash of its seed in the seed's place."""
    return json.dumps(campaign.public_config, indent=2, ensure_ascii=False) + "\n"


def as_json(held: dict[str, Any]) -> str:
    """Return an object as a JSON file: what a warm-up has counted and chosen, or what upper rooms add."""
    return json.dumps(held, indent=2, ensure_ascii=False) + "\n"


def judges(campaign: Campaign) -> str:
    """Return what answers each question, as JSON: for a model, all that was fixed when the campaign started.

    `identities` are what its replies said they were from; `votes` and `ratings` name them by their numbers. One that
    is not accepted gave none.
    """
    found = campaign.judges.select_related("endpoint", "campaign").prefetch_related("identities")
    return json.dumps([_judge(judge) for judge in found], indent=2, ensure_ascii=False) + "\n"


def _judge(judge: Judge) -> dict[str, object]:
    source = "model" if judge.is_model else "people"
    about: dict[str, object] = {"judge": judge.place, "question": judge.question, "source": source}
    if judge.panelist is not None:
        about |= {"source": "panelist", "panelist": judge.panelist}
    if not judge.is_model:
        language = judge.campaign.config.language
        return about if language == SOURCE else about | {"language": language}
    identities = [
        {
            "identity": identity.pk,
            "model": identity.model,
            "system_fingerprint": identity.system_fingerprint,
            "first_seen_at": schema.moment(identity.first_seen_at),
            "accepted_at": schema.moment(identity.accepted_at) or None,
        }
        for identity in judge.identities.all()
    ]
    return about | {"stopped_because": judge.stopped_because, **(judge.frozen or {}), "identities": identities}


def csv_text(snapshot: Snapshot, name: str) -> Iterator[str]:
    """Yield one of `tables_of` a campaign as CSV text, a piece at a time."""
    return as_csv(tables_of(snapshot.campaign)[name](snapshot))


def tables_of(campaign: Campaign) -> dict[str, Callable[[Snapshot], Iterator[Row]]]:
    """Return the tables of a started campaign's record, by the file's name."""
    config = campaign.config
    found = TABLES | (_CHAINS if config.is_elastic else {})
    found |= _EXTENSIONS if campaign.steps_added else {}
    found |= (_COLUMNS if rows.columns_of(campaign) else {}) | (_SCORES if scores.are_in(campaign) else {})
    found |= _REASONS if reasons.are_in(campaign) else {}
    found |= _SUSPENDED if suspended.are_in(campaign) else {}
    return found | (_CALLS if calls.are_in(campaign) else {})


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
    files: dict[str, list[schema.Cell]] = {}

    def add_text(text: str, name: str) -> None:
        files[name] = []
        stream.add(manifest.whole(name, text.encode()), name)

    def add_pieces(pieces: Iterator[str], name: str) -> None:
        stream.add(manifest.streamed(name, map(str.encode, pieces)), name)

    def add_table(found: Iterator[Row], name: str) -> None:
        files[name] = list(next(found))
        add_pieces(as_csv(chain([files[name]], found)), name)

    add_text(config(campaign), schema.CONFIG)
    add_text(judges(campaign), schema.JUDGES)
    if snapshot.tuning is not None:
        add_text(as_json(snapshot.tuning), schema.TUNING)
    if scores.are_in(campaign):
        add_text(scores.scorers(campaign), schema.SCORERS)
    for documents in hooks.load(hooks.RECORD_DOCUMENTS):
        for name, held in documents(campaign):
            add_text(as_json(held), name)
    for texts in hooks.load(hooks.RECORD_TEXTS):
        for name, text in texts(campaign):
            add_text(text, name)
    for name, rows_of in tables_of(campaign).items():
        add_table(rows_of(snapshot), name)
    if preferences.are_in(campaign):
        files[preferences.FILE] = list(preferences.keys_of(snapshot))
        add_pieces(in_pieces(preferences.lines(snapshot)), preferences.FILE)
    for tables in hooks.load(hooks.RECORD_TABLES):
        for name, found in tables(campaign):
            add_table(found, name)
    if pictures.are_in(snapshot):
        files[pictures.folder_of(snapshot)] = []
    files |= {schema.CODEBOOK.file: schema.CODEBOOK.header, schema.MANIFEST: []}
    about = "".join(as_csv(codebook(files, campaign.target_law)))
    stream.add(manifest.whole(schema.CODEBOOK.file, about.encode()), schema.CODEBOOK.file)
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
    campaign, now = snapshot.campaign.pk, schema.moment(timezone.now())
    document = manifest.document(site=settings.SITE_URL, campaign=campaign, written_at=now)
    stream.add(document, schema.MANIFEST)
    yield from stream.all_files()
    yield from stream.footer()


def _drain(buffer: io.StringIO) -> str:
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    return text
