"""The record as files: JSON documents, CSV tables, and what people saw. `sampler.tables` declares them. And what it
says: the page, the API and the ZIP show the same results.

They are streamed row by row, one by one or as one ZIP, as they stood at the moment of a `Snapshot`.

Of the pictures and recordings, only those are files of it that the site has stored: patterns are quickly made again
from their codes. Of an uploaded archive they are those that a chain has stood on or that were proposed; nothing else in
the record needs the others.

preferences.jsonl has a line for each vote, in the form that libraries for preference tuning read and in the order of
votes.csv, late votes included: `prompt`, `chosen` and `rejected`, and the keys of the vote. Checks, gold pairs and
repeats are no votes, and in no line; no line says who voted.
"""

from __future__ import annotations

import csv
import io
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from sys import intern
from typing import Any, AnyStr
from zipfile import ZIP_DEFLATED, ZIP_STORED

from django.conf import settings
from django.core.files.base import File
from django.core.files.storage import default_storage
from django.db.models import Case, Q
from django.utils import timezone
from zipstream import ZipStream

import sampler
from prefmh_web import hooks
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.models import Campaign, Comparison, Deleted, Judge, Measured, NotPossible, Score
from prefmh_web.campaigns.record import rows
from prefmh_web.campaigns.record.rows import Row, Snapshot, votes_of
from prefmh_web.objects import media
from prefmh_web.settings import SOURCE
from sampler import tables
from sampler.judges import Context, ContextLine, shared_context

BYTE_ORDER_MARK = "\ufeff"
# JSON may hold them as they are, and yet programs that read line by line end a line there.
_LINE_ENDS = {0x85: "\\u0085", 0x2028: "\\u2028", 0x2029: "\\u2029"}
_CHARACTERS_PER_CHUNK = 2**16
# Of compression. The default, 6, makes the archive a sixth smaller and takes three times as long.
_LEVEL = 1
_ROWS_BETWEEN = 500
# The rows are not quite known before; all is written only at the end of the file.
_NEARLY_ALL = 0.99
TABLES: dict[str, Callable[[Snapshot], Iterator[Row]]] = {
    table.file: getattr(rows, table.name) for table in (*tables.TABLES, tables.EVENTS)
}
"""By the file's name, in the order of the ZIP."""


def as_json(held: object) -> str:
    """Return what a JSON file holds."""
    return json.dumps(held, indent=2, ensure_ascii=False) + "\n"


def documents(campaign: Campaign, tuning: dict[str, Any] | None) -> dict[str, str]:
    """Return the JSON files of a started campaign's record, by their names.

    Args:
        tuning: what the warm-up has chosen.
    """
    found = {tables.CONFIG: as_json(campaign.public_config), tables.JUDGES: as_json(_judges(campaign))}
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
    about: dict[str, object] = {"judge_index": judge.index, "question": judge.question, "source": source}
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


def as_csv(found: Iterator[Row]) -> Iterator[str]:
    """Yield rows as CSV text, in pieces of some hundred rows, or of fewer where they are long."""
    buffer = io.StringIO()
    return _in_pieces(found, csv.writer(buffer).writerow, buffer)


def _in_pieces(found: Iterator[Any], write: Callable[[Any], object], buffer: io.StringIO) -> Iterator[str]:
    """Yield what `write` writes into a buffer, in pieces."""
    for each in found:
        write(each)
        if buffer.tell() > _CHARACTERS_PER_CHUNK:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    yield buffer.getvalue()


def results(snapshot: Snapshot) -> Iterator[str]:
    """Yield results.csv with a byte order mark, by which spreadsheets know its characters.

    Raises:
        NotPossible: the campaign is too large for that (`is_small_enough`).
    """
    yield BYTE_ORDER_MARK
    yield from as_csv(results_of(snapshot).rows())


def in_pieces(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines of text together, as large pieces as those of a CSV file."""
    buffer = io.StringIO()
    return _in_pieces(lines, buffer.write, buffer)


def archive(campaign: Campaign, tell: Callable[[float], None] = lambda share: None) -> Iterator[bytes]:
    """Yield a ZIP of the config and all tables, all of the same moment.

    Args:
        tell: is called with the share that is written, from 0 to 1, again and again, and with 1 at the end.

    Raises:
        Deleted: the campaign was deleted meanwhile.
    """
    snapshot = Snapshot.now(campaign)
    stream = ZipStream(compress_type=ZIP_DEFLATED, compress_level=_LEVEL)
    manifest = sampler.Manifest()
    following = _following(snapshot, tell)
    files: dict[str, tables.Table | None] = {}
    declared = {table.file: table for table in tables.EVERY} | {
        tables.STATES.file: tables.states_table(rows.columns_of(campaign)),
        tables.PROPERTIES.file: rows.properties_table(campaign),
    }

    def add(pieces: Iterable[str], name: str) -> None:
        files[name] = declared.get(name)
        stream.add(manifest.streamed(name, map(str.encode, pieces)), name)

    for name, text in documents(campaign, snapshot.tuning).items():
        add([text], name)
    for name, rows_of in TABLES.items():
        add(as_csv(following(rows_of(snapshot))), name)
    # No other rule asks anybody which of two objects they prefer.
    if campaign.config.rule.evidence == "votes":
        add(in_pieces(following(preferences(snapshot))), tables.PREFERENCES.file)
    if is_small_enough(snapshot):
        add(results(snapshot), tables.RESULTS.file)
    add(as_csv(following(rows.properties(snapshot))), tables.PROPERTIES.file)
    for of_people in hooks.load(hooks.RECORD_TABLES):
        for table, found in of_people(campaign):
            add(as_csv(chain([table.header], found)), table.file)
    if has_files(snapshot):
        files[f"{_FOLDERS[snapshot.config.space.objects]}/"] = None
    files |= {tables.CODEBOOK.file: tables.CODEBOOK, tables.MANIFEST: None}
    add(as_csv(tables.codebook(files, campaign.config.target_distribution)), tables.CODEBOOK.file)
    # Most of what is compressed comes out in large blocks, with nothing between them.
    yield from filter(None, _to_its_end(stream, snapshot, manifest))
    tell(1.0)


def _following(snapshot: Snapshot, tell: Callable[[float], None]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what wraps the rows of each table, and tells the share of all rows that has gone through.

    Long are the two tables of votes (votes, preferences), the two of steps (steps, samples) and the two of objects
    (states, properties); their rows are counted before.
    """
    steps, objects = sum(snapshot.steps.values()), snapshot.campaign.states.count()
    expected, written = 2 * (votes_of(snapshot).count() + steps + objects), count(1)

    def following(found: Iterator[Any]) -> Iterator[Any]:
        for row in found:
            number = next(written)
            if not number % _ROWS_BETWEEN:
                tell(min(_NEARLY_ALL, number / expected))
            yield row

    return following


def _to_its_end(stream: ZipStream, snapshot: Snapshot, manifest: sampler.Manifest) -> Iterator[bytes]:
    """Yield the archive. Pictures and recordings come after all else, one by one, for there may be very many, and they
    are compressed; at the end, once each file is hashed, the manifest.
    """
    yield from stream.all_files()
    for name, data in stored_files(snapshot):
        stream.add(manifest.streamed(name, data), name, compress_type=ZIP_STORED)
        yield from stream.all_files()
    campaign, now = snapshot.campaign.pk, sampler.moment(timezone.now())
    document = manifest.document(site=settings.SITE_URL, campaign=campaign, written_at=now)
    stream.add(document, tables.MANIFEST)
    # Without its end no program takes it for an archive.
    yield from whole(campaign, stream.all_files())
    yield from stream.footer()


def whole(campaign_id: int, pieces: Iterable[AnyStr]) -> Iterator[AnyStr]:
    """Yield the pieces of a download.

    Raises:
        Deleted: after the last one, where the campaign was deleted meanwhile: rows may be missing.
    """
    yield from pieces
    if not Campaign.objects.filter(pk=campaign_id).exclude(status=Campaign.Status.DELETING).exists():
        raise Deleted


_FOLDERS = {"images": "pictures", "audio": "recordings"}
_FILES_AT_ONCE = 500
logger = logging.getLogger(__name__)


def has_files(snapshot: Snapshot) -> bool:
    """True where the objects are stored files."""
    space = snapshot.config.space
    return space.objects in _FOLDERS and not isinstance(space, sampler.ImagesConfig)


def name_of_file(space: sampler.SpaceConfig, state: int, media_type: str) -> str:
    """Return the name in the archive of the file of the object with this number."""
    return f"{_FOLDERS[space.objects]}/{state}.{media.ending_of(media_type)}"


def stored_files(snapshot: Snapshot) -> Iterator[tuple[str, Iterator[bytes]]]:
    """Yield each file's name in the archive, and its bytes in pieces. One is open at a time, once it is read.

    A file that the storage has lost is left out, and the log names it: the rest of the record is still whole.
    """
    if not has_files(snapshot):
        return
    # Of an uploaded archive those that the chains have met, and all that chains make.
    asked = Comparison.objects.filter(chain__campaign=snapshot.campaign).values("proposal")
    is_shown = Q(weight__isnull=True) | Q(pk__in=asked) | Q(pk__in=snapshot.campaign.chains.values("start"))
    found = snapshot.campaign.states.filter(is_shown).exclude(picture="").order_by("index")
    for state, media_type, stored_as in found.values_list("index", "media_type", "picture").iterator(_FILES_AT_ONCE):
        if not snapshot.has_state(state):
            continue
        try:
            file = default_storage.open(stored_as)
        except FileNotFoundError:
            logger.exception("the file %s is lost, and not in the export", stored_as)
            continue
        yield name_of_file(snapshot.config.space, state, media_type), _pieces(file)


def _pieces(file: File[Any]) -> Iterator[bytes]:
    with file:
        yield from file.chunks()


# Two texts a vote, which may be long.
_LINES_AT_ONCE = 500
_KEYS: dict[str, str | Case] = {
    "chain_index": "comparison__chain__index",
    "step": "comparison__step",
    "number": "number",
    "judge_index": "judge__index",
    "lease": rows.LEASE,
    "slot": "slot",
}
_as_line = json.JSONEncoder(ensure_ascii=False).encode


def preferences(snapshot: Snapshot) -> Iterator[str]:
    """Yield a JSON object for each vote, with the end of its line.

    `prompt` is the judge's question below what the shown columns of a list have in common for the two objects;
    `chosen_context` and `rejected_context` hold what stood with one of the two only. Of a text
    `chosen` and `rejected` are the text, of a molecule the SMILES, of a picture or a recording the name of its file.
    """
    config, are_files = snapshot.config, has_files(snapshot)
    questions: dict[Any, str] = dict(snapshot.campaign.judges.values_list("index", "question"))
    # The objects stand beside each vote: looked up by themselves, they would take several times as long.
    told = ("index", "media_type", "content", *(("columns",) if config.context else ()))
    objects = [f"comparison__{which}__{name}" for which in ("current", "proposal") for name in told]
    found = votes_of(snapshot).values_list(*_KEYS.values(), rows.FOR_PROPOSAL, *objects)
    for row in found.iterator(_LINES_AT_ONCE):
        keys, (for_proposal, *cells) = row[: len(_KEYS)], row[len(_KEYS) :]
        if snapshot.has_vote(*keys[:3]):
            pair = [cells[: len(told)], cells[len(told) :]]
            if for_proposal == "1":
                pair.reverse()
            line = dict(zip(_KEYS, keys, strict=True))
            text = _as_line(_words_of(pair, questions[line["judge_index"]], config, are_files=are_files) | line)
            yield (text if text.isascii() else text.translate(_LINE_ENDS)) + "\n"


def _words_of(
    pair: Sequence[Sequence[Any]], question: str, config: sampler.ChainConfig, *, are_files: bool
) -> dict[str, str]:
    """Return what a line says of a question and of two objects, the chosen one first."""
    chosen, rejected = (
        name_of_file(config.space, index, media_type) if are_files else content
        for index, media_type, content, *_ in pair
    )
    shared, own = _contexts(config, [columns for *_, columns in pair]) if config.context else ("", ("", ""))
    words = {"prompt": "\n\n".join(filter(None, (shared, question))), "chosen": chosen, "rejected": rejected}
    return words | {"chosen_context": own[0], "rejected_context": own[1]}


def _contexts(config: sampler.ChainConfig, cells: Iterable[Mapping[str, str]]) -> tuple[str, Sequence[str]]:
    """Return what the shown columns of two objects have in common, and what each has of its own."""
    lines = (tuple(ContextLine(shown.label, each.get(shown.column, "")) for shown in config.context) for each in cells)
    found = shared_context(*lines)
    return _written(found.shared), [_written(each) for each in found.own]


def _written(context: Context) -> str:
    return "\n".join(f"{line.label}: {line.text}" for line in context)


_KEPT = 8
MAX_ROWS = 400_000
"""Samples and votes that are held in memory at once, half a kB each."""


def results_of(snapshot: Snapshot) -> sampler.CampaignResults:
    """Return what a campaign has found at a moment.

    Raises:
        NotPossible: it has too many samples and votes for that; the message says what to do.
    """
    if not is_small_enough(snapshot):
        raise NotPossible(
            f"The campaign has {_size(snapshot):,} samples and votes. Of more than {MAX_ROWS:,} the results are not "
            "computed here: download all and run “python -m sampler diagnose”."
        )
    samples = _read(tables.SAMPLES, rows.samples(snapshot))
    visited = {int(row["state_index"]) for row in samples}
    scorers = list(snapshot.campaign.scorers.values_list("frozen", flat=True))
    documents = {tables.CONFIG: snapshot.campaign.public_config, tables.SCORERS: scorers}
    record = sampler.Record(documents, {"samples": samples})
    for table in (tables.STATES, tables.STEPS, tables.VOTES, tables.SCORES, tables.EVENTS):
        record.tables[table.name] = _read(table, getattr(rows, table.name)(snapshot))
    record.tables["properties"] = list(_measured(snapshot, visited))
    return sampler.results_of(record)


_Computed = tuple[dict[int, int], dict[tuple[int, int], int], str, int, int]
# Of each campaign its last results, after what they were computed from: nothing else that they depend on changes.
_memory: dict[int, tuple[_Computed, sampler.CampaignResults]] = {}


def results_now(campaign: Campaign) -> sampler.CampaignResults:
    """Return what a started campaign has found by now. The last few results are kept while nothing changes them.

    Raises:
        NotPossible: as `results_of` does.
    """
    snapshot = Snapshot.now(campaign)
    # Scorers may lag behind the steps.
    there = Score.objects.filter(scorer__campaign=campaign, value__isnull=False)
    scores = there.count() if campaign.config.all_scorers else 0
    now = snapshot.steps, snapshot.open_votes, campaign.status, snapshot.config.steps, scores
    kept = _memory.pop(campaign.pk, None)
    results = kept[1] if kept and kept[0] == now else results_of(snapshot)
    _memory[campaign.pk] = now, results
    while len(_memory) > _KEPT:
        oldest, *_ = _memory
        _memory.pop(oldest, None)
    return results


def verdict_now(campaign: Campaign) -> str:
    """Return the verdict on the chains in a few words; that there is none, of a draft or of too large a campaign."""
    if campaign.is_draft:
        return sampler.NOT_JUDGED
    try:
        return results_now(campaign).verdict.is_that
    except NotPossible:
        return sampler.NOT_JUDGED


def kept_verdict(campaign: Campaign, steps: int) -> str:
    """Return the verdict on a finished campaign of so many decided steps, if it is in memory; else the empty text."""
    (decided, _, status, *_), results = _memory.get(campaign.pk, (({}, {}, "", 0, 0), None))
    is_of_now = status == campaign.status == Campaign.Status.FINISHED and sum(decided.values()) == steps
    return results.verdict.is_that if results and is_of_now else ""


def is_small_enough(snapshot: Snapshot) -> bool:
    """True where the results can be computed here."""
    return _size(snapshot) <= MAX_ROWS


def _size(snapshot: Snapshot) -> int:
    return snapshot.votes().count() + sum(snapshot.steps.values())


def _read(table: tables.Table, written: Iterator[Row]) -> list[tables.Row]:
    """Return rows as a reader of the export has them: as texts, by column, without protecting apostrophes. Of long
    tables they have what results read.
    """
    header = [str(name) for name in next(written)]
    kept = sampler.RESULTS_FROM.get(table.name, header)
    indices = [(name, header.index(name)) for name in kept]
    found = []
    for cells in written:
        # Numbers of states and steps come again and again: each text is held once.
        row = {name: "" if cells[at] is None else intern(str(cells[at])) for name, at in indices}
        table.unescape(row)
        found.append(row)
    return found


def _measured(snapshot: Snapshot, visited: set[int]) -> Iterator[tables.Row]:
    """Yield what was measured of the objects that a chain was at; what nobody has measured yet is measured now."""
    stored = dict(Measured.objects.filter(state__campaign=snapshot.campaign).values_list("state", "numbers"))
    names = sampler.properties_of_kind(snapshot.campaign.object_kind.name)
    for state in snapshot.campaign.states.select_related("campaign").defer("campaign__tuning"):
        if state.index in visited:
            numbers = stored.get(state.pk)
            if numbers is None:
                numbers = objects.numbers_of(snapshot.campaign, state)
            cells = {name: repr(numbers[name]) if name in numbers else "" for name in names}
            yield {"state_index": str(state.index), **cells}
