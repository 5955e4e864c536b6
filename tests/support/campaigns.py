"""Campaigns through the real doors, the people who vote in them, and their records."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import math
import operator
import shutil
import sqlite3
import struct
import sys
import tempfile
import threading
import time
import uuid
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import soundfile
from celery.signals import before_task_publish, task_postrun
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from django.contrib.sessions.backends.db import SessionStore
from django.core.cache import caches
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client, override_settings
from django.utils import timezone
from PIL import Image

import sampler
from prefmh_web import celery as tasks_here
from prefmh_web import embedded
from prefmh_web.accounts.models import make_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases, transitions
from prefmh_web.campaigns.engine.locks import locked
from prefmh_web.campaigns.lifecycle import changes
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Invitation, Judge, Lease, Side, Vote
from prefmh_web.campaigns.record import export
from prefmh_web.celery import THREADS
from prefmh_web.celery import app as celery_app
from prefmh_web.config import CampaignConfig, Caps, Study
from prefmh_web.demo.voters import Voter
from prefmh_web.embedded import Clock, server
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.endpoints.truth import plainness
from prefmh_web.tasks import settle_parts, sweep, sweep_leases
from prefmh_web.transport import publishing
from prefmh_web.voting import admission
from sampler import (
    OBJECT_KINDS,
    ExperimentInput,
    ExperimentOptions,
    Reading,
    outputs,
    settings_document,
    settings_text,
    tables,
    tournament_schedule,
)
from sampler.experiments.metrics import RunFiles
from sampler.experiments.options import Place
from sampler.experiments.outputs import write_table
from tests.support.models import TEXTS, Script, Writer, anything_else, chat_reply, is_vote, port_from, scripted_server
from tests.support.sampling import mixture

# A hash that takes no time: a quarter of a second for each account of a test is a third of the suite's.


class QuickHasher(PBKDF2PasswordHasher):
    """The usual hash after one round. Processes without this class can check it, since it tells its rounds."""

    iterations = 1


# Uploads as a researcher would send them, built in memory.


def read(kind: str, data: bytes) -> Reading:
    """Read an upload of this kind of object, ignoring its progress."""
    return OBJECT_KINDS[kind].read(io.BytesIO(data), lambda done, total: None)


def spreadsheet(rows: Iterable[Sequence[object]], delimiter: str = ",") -> bytes:
    """Return rows, the header first, as a spreadsheet would save them."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=delimiter).writerows(rows)
    return text.getvalue().encode()


def archive(files: Mapping[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return a ZIP of these files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return data.getvalue()


def refused(kind: str, good: Mapping[str, bytes], name: str, content: bytes) -> str:
    """Return why one file of an archive is refused; the good ones beside it must be kept."""
    reading = read(kind, archive({**good, name: content}))
    assert [item.content for item in reading.items] == [*good]
    (refusal,) = reading.refusals
    assert refusal.source == name
    return refusal.reason


def picture(colour: object = "red", size: tuple[int, int] = (8, 6), kind: str = "PNG", **saving: object) -> bytes:
    """Return an image of one colour."""
    return saved(Image.new("RGB", size, colour), kind, **saving)


def saved(image: Image.Image, kind: str = "PNG", **saving: object) -> bytes:
    """Return the image as a file's bytes."""
    data = io.BytesIO()
    image.save(data, kind, **saving)
    return data.getvalue()


def linear_grey_profile() -> bytes:
    """Return an ICC profile of greys whose numbers are proportional to light."""
    white = b"XYZ " + bytes(4) + struct.pack(">3i", *(round(each * 2**16) for each in (0.9642, 1.0, 0.8249)))
    curve = b"curv" + bytes(8)
    tags = {b"wtpt": white, b"kTRC": curve}
    at, spreadsheet, content = 128 + 4 + 12 * len(tags), struct.pack(">I", len(tags)), b""
    for name, tag in tags.items():
        spreadsheet += name + struct.pack(">II", at + len(content), len(tag))
        content += tag
    header = struct.pack(">I4xI", at + len(content), 0x02100000) + b"mntrGRAYXYZ " + bytes(12) + b"acsp"
    return header.ljust(68, b"\0") + white[8:].ljust(60, b"\0") + spreadsheet + content


def png(**chunks: bytes) -> bytes:
    """Return a PNG of these chunks and its end, checksums right."""
    written = b"\x89PNG\r\n\x1a\n"
    for name, content in (chunks | {"IEND": b""}).items():
        named = name.encode() + content
        written += struct.pack(">I", len(content)) + named + struct.pack(">I", zlib.crc32(named))
    return written


def png_that_claims(width: int, height: int, pixels: int = 100) -> bytes:
    """Return a PNG whose header announces this size, with as many bytes of black behind the tightest compression."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return png(IHDR=header, IDAT=zlib.compress(bytes(pixels), 9))


# Recordings as a researcher would send them, built in memory.


def tone(
    hertz: float = 440.0, seconds: float = 0.5, rate: int = 16_000, channels: int = 1, loudness: float = 0.5
) -> np.ndarray:
    """Return the samples of a tone, shape (frames, channels)."""
    time = np.arange(round(seconds * rate)) / rate
    return np.tile((loudness * np.sin(2 * np.pi * hertz * time))[:, None], channels)


def recorded(samples: np.ndarray, rate: int = 16_000, kind: str = "WAV", subtype: str | None = None) -> bytes:
    """Return samples as the bytes of a file."""
    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind, subtype=subtype)
    return file.getvalue()


def recording(hertz: float = 440.0, kind: str = "WAV", subtype: str | None = None, **of_tone: float) -> bytes:
    """Return a tone as the bytes of a file."""
    samples = tone(hertz, **of_tone)
    return recorded(samples, int(of_tone.get("rate", 16_000)), kind, subtype)


# Celery workers of the server stack's tests, and when they have nothing left to do.


class _Undone:
    """The tasks that threads of this process have given hints of and its worker has not done."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._changed = threading.Condition()

    def add(self, headers: dict, **_) -> None:
        with self._changed:
            self._ids.add(headers["id"])

    def discard(self, task_id: str, **_) -> None:
        with self._changed:
            self._ids.discard(task_id)
            self._changed.notify_all()

    def wait(self, timeout: float) -> None:
        deadline = time.monotonic() + timeout
        while True:
            # A hint is either on its way to the broker or among these; a task that is done may have given another.
            is_sent = publishing.wait_until_sent(max(0.0, deadline - time.monotonic()))
            with self._changed:
                is_done = self._changed.wait_for(lambda: not self._ids, max(0.0, deadline - time.monotonic()))
                if not (is_sent and is_done):
                    raise TimeoutError(f"{len(self._ids)} tasks are still queued or running")
            if publishing.wait_until_sent(0) and not self._ids:
                return


_here: _Undone | None = None


@contextlib.contextmanager
def worker_in_this_process() -> Iterator[None]:
    """Let a worker do this process's tasks on threads of it, where a test's settings and stand-ins hold."""
    global _here
    # On import it makes a task of its own.
    from celery.contrib.testing.worker import start_worker

    _here = _Undone()
    before_task_publish.connect(_here.add, weak=False)
    task_postrun.connect(_here.discard, weak=False)
    with start_worker(celery_app, pool="threads", concurrency=3, perform_ping_check=False, queues=list(THREADS)):
        yield


def wait_for_worker(timeout: float) -> None:
    """Return once no task of a worker in this process is queued or running, those that tasks queue included; where the
    workers are other processes, once they have read the files of all campaigns.

    Raises:
        TimeoutError: there was still something to do after `timeout` seconds.
    """
    if _here is not None:
        _here.wait(timeout)
        return
    publishing.wait_until_sent(timeout)
    # What a worker of another process has taken, no broker tells. What makers of campaigns wait for is this.
    deadline = time.monotonic() + timeout
    while files := _files_to_read():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{files} files are still being read")
        time.sleep(0.01)


def _files_to_read() -> int:
    from prefmh_web.campaigns.models import Catalog

    return Catalog.objects.filter(status=Catalog.Status.READING).count()


# The tests' SQLite database put back as it was, by copying pages: a millisecond, where a flush takes thirty.


# Numbers of rows are never given twice in a run: what a process remembers by them is another test's.
_NUMBERS: Iterator[int] = itertools.count(1000, 1000)
_REMEMBERING = tuple(
    f"prefmh_web.{name}." for name in ("voting", "campaigns", "console", "objects", "participants", "setup")
)
_empty = sqlite3.connect(":memory:", check_same_thread=False)
_numbered_from = 0


def keep_empty() -> None:
    """Remember the database as it is now, before the first test."""
    connection.ensure_connection()
    connection.connection.backup(_empty)
    _number_on()
    connection.close()


def make_empty() -> None:
    """Put the database back as it was before the first test."""
    connection.ensure_connection()
    _empty.backup(connection.connection)
    _number_on()


def _number_on() -> None:
    """Let every table give its next row a number beyond all that were given in this run."""
    global _numbered_from
    _numbered_from = next(_NUMBERS)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM sqlite_sequence")
        cursor.execute(
            "INSERT INTO sqlite_sequence (name, seq) SELECT name, %s FROM sqlite_schema"
            " WHERE type = 'table' AND sql LIKE '%%AUTOINCREMENT%%'",
            [_numbered_from],
        )


@dataclass(frozen=True)
class _Copy:
    """The database and the media after a campaign was made, the numbers of its row and of its owner's, and beyond which
    number all its rows are.
    """

    database: sqlite3.Connection
    media: Path
    campaign: int
    owner: int
    numbered_from: int


_copies: dict[str, _Copy] = {}
_folder = tempfile.TemporaryDirectory(prefix="prefmh-copies-")


def copied(owner, made_of: object, make: Callable[[], Campaign]) -> Campaign:
    """Return the campaign that `make` makes: of the same parts made once in a run, and copied from then on.

    It is made anew where the database has more in it than the owner, and on other databases than SQLite.

    Args:
        made_of: all that `make` depends on; its `repr` tells two apart.
    """
    if not settings.EMBEDDED or not _holds_only_an_owner():
        return make()
    key = repr((owner.username, made_of, settings.SCORERS, settings.LOCAL_MODELS, settings.LOCAL_IMAGE_MODELS))
    if found := _copies.get(key):
        return _restored(found, owner)
    campaign = make()
    database, media = sqlite3.connect(":memory:", check_same_thread=False), Path(_folder.name) / str(len(_copies))
    connection.connection.backup(database)
    if settings.MEDIA_ROOT.exists():
        shutil.copytree(settings.MEDIA_ROOT, media)
    _copies[key] = _Copy(database, media, campaign.pk, owner.pk, _numbered_from)
    return campaign


def _holds_only_an_owner() -> bool:
    """True where nothing but the owner and their group was stored since the database was empty."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_sequence WHERE seq > %s", [_numbered_from])
        filled = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT (SELECT count(*) FROM django_session), (SELECT count(*) FROM auth_user)")
        return filled <= {"auth_user", "auth_user_groups"} and cursor.fetchone() == (0, 1)


def _restored(found: _Copy, owner) -> Campaign:
    global _numbered_from
    _numbered_from = found.numbered_from
    found.database.backup(connection.connection)
    if found.media.exists():
        shutil.copytree(found.media, settings.MEDIA_ROOT, dirs_exist_ok=True)
    # Of another test whose campaign had the same number.
    _forget()
    owner.pk = found.owner
    owner.refresh_from_db()
    return Campaign.objects.get(pk=found.campaign)


def _forget() -> None:
    """Empty what this process remembers of campaigns. Connections to servers, which others keep, stay open."""
    for name, module in list(sys.modules.items()):
        if name.startswith(_REMEMBERING):
            for each in vars(module).values():
                if hasattr(each, "cache_clear") and each.__module__ == name:
                    each.cache_clear()
    caches["default"].clear()


# Driving the whole application: campaigns through the real doors, the real server, people who vote.


MIXTURE = mixture((0.5, "independent"), (0.5, "neighbours"))


PICTURES = archive({f"{number}.png": picture((number * 20, 90, 30)) for number in range(4)})
OF_PICTURES = {"kind": "catalog", "objects": "images", "neighbours": 2}


def wait_until_idle(timeout: float = 120) -> None:
    """Return once no task is queued or running, those that tasks queue included.

    Raises:
        TimeoutError: there was still one after `timeout` seconds.
    """
    if not settings.EMBEDDED:
        wait_for_worker(timeout)
        return
    while pending := set(tasks_here._running):
        if not wait(pending, timeout, return_when="FIRST_COMPLETED").done:
            raise TimeoutError(f"{len(pending)} tasks are still running")


def _sweep() -> None:
    """Sweep once, as the embedded clock does or as beat does."""
    if settings.EMBEDDED:
        embedded.sweep_everything()
    else:
        sweep.delay()
        sweep_leases.delay()
        settle_parts.delay()


def on_own_connection(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return work for a thread, which closes the database connection of its own at the end."""

    def worked(*given: Any) -> Any:
        try:
            return work(*given)
        finally:
            connection.close()

    return worked


def sweep_everything() -> None:
    """Sweep once, and wait until all that follows from it is done."""
    _sweep()
    wait_until_idle()


def make_config(**changes) -> dict:
    """Return a config for twelve texts, with changes."""
    return {
        "space": {"kind": "catalog", "objects": "texts", "neighbours": 3},
        "kernel": MIXTURE,
        "judges": [{"question": "Which is darker?", "votes": 2}, {"question": "Which is better?", "votes": 1}],
        "chains": 3,
        "steps": 50,
        "seed": 20261121,
    } | changes


def whole_config(config, *, name: str = "Made", is_seed_typed: bool = True, filename: str = "", **fields):
    """Return the configuration of a campaign: the parts of `make_config`, and further fields by short names."""
    described = {key: value for key, value in dict(config).items() if key != "target"} | {"name": name}
    if not is_seed_typed:
        described.pop("seed", None)
    if filename:
        # As a browser's upload is named: without folders.
        described["file"] = {"name": filename.rpartition("/")[2]}
    answering = {"seconds": fields.pop("lease_seconds", 120)}
    answering |= {
        key: fields.pop(key) for key in ("suspend_after_skips", "suspend_after_reports", "undo") if key in fields
    }
    caps = {"cost": fields.pop("cost_cap", None), "requests": fields.pop("request_cap", None)}
    scorers = fields.pop("scorer_names", "").split()
    described |= {"answering": answering, "caps": caps, "scorers": scorers}
    return CampaignConfig.model_validate(described | fields)


def create_draft(*, owner, config, file=None, filename: str = "", **fields) -> Campaign:
    """Return a draft; see `whole_config`."""
    given = whole_config(config, filename=filename, **fields)
    return changes.create(owner=owner, config=given, file=file)


def set_study(campaign, fields, excluded=(), by=None) -> None:
    """Change what is asked of people, by the fields of a study."""
    config = Campaign.objects.get(pk=campaign.pk).typed_config
    described = config.study.model_dump() | dict(fields)
    if excluded:
        described["refused"] = [{"number": each.pk, "name": each.name} for each in excluded]
    described["codes"] = {key: code for key, code in described["codes"].items() if code}
    changes.apply(campaign, config.model_copy(update={"study": Study.model_validate(described)}), by)


def set_caps(campaign, by, *, cost_cap, request_cap) -> None:
    """Change the caps of a campaign."""
    config = Campaign.objects.get(pk=campaign.pk).typed_config
    caps = Caps(cost=cost_cap, requests=request_cap)
    changes.apply(campaign, config.model_copy(update={"caps": caps}), by)


def make_draft(owner, *, file: bytes | str = TEXTS, filename: str = "texts.csv", config=None, **fields) -> Campaign:
    """Return a draft whose file has been read; it starts under the seed of its config."""
    content = file.encode() if isinstance(file, str) else file
    fields = {"name": "Twelve texts", "instructions": "", "lease_seconds": 120, "is_seed_typed": True} | fields
    campaign = create_draft(
        owner=owner, file=ContentFile(content, filename), filename=filename, config=config or make_config(), **fields
    )
    wait_until_idle()
    campaign.catalog.refresh_from_db()
    return campaign


def make_campaign(owner, **options) -> Campaign:
    """Return a started campaign whose first comparisons are open."""
    return copied(owner, options, lambda: start_campaign(owner, **options))


def start_campaign(owner, **options) -> Campaign:
    """Return the same, made and started now, so that this process remembers all that a start leaves in memory."""
    return started_now(make_draft(owner, **options))


def started_now(campaign: Campaign) -> Campaign:
    """Start a draft, let all tasks come to rest, and return the campaign as it is then."""
    lifecycle.start(campaign)
    wait_until_idle()
    campaign.refresh_from_db()
    return campaign


def invitation_path(campaign: Campaign) -> str:
    return campaign.invitations.get().get_absolute_url()


class LiveServer:
    """The server of `manage.py serve` on a thread of this process: database, layer and tasks are shared."""

    def __init__(self) -> None:
        self.port = port_from(18_000)
        self.url = f"http://127.0.0.1:{self.port}"
        self._server = server("127.0.0.1", self.port)
        self._thread = threading.Thread(target=self._server.run, name="server")
        self._clock = Clock(_sweep, every_s=1)

    def start(self) -> None:
        self._thread.start()
        self._clock.start()
        while not self._server.started:
            assert self._thread.is_alive(), f"the server on port {self.port} could not start"
            time.sleep(0.01)

    def drop_connections(self) -> None:
        """Cut every open connection, sockets included, as a bad network does."""
        for each in list(self._server.server_state.connections):
            each.loop.call_soon_threadsafe(each.transport.abort)

    def unsent(self) -> list[int]:
        """Return how many bytes wait in this process for each open connection to take them in."""
        connections = list(self._server.server_state.connections)
        return [connection.transport.get_write_buffer_size() for connection in connections]

    def stop(self) -> None:
        self._clock.stop()
        self._server.should_exit = True
        self._thread.join()
        wait_until_idle()


def vote_until_finished(
    campaign: Campaign, annotators: list[Annotator], scores: dict[int, Callable[[int], float]], rng: np.random.Generator
) -> int:
    """Let people with hidden scores vote through their leases, in random order, until the campaign is finished.

    Between two votes all tasks come to rest, so the same generator always gives the same campaign.

    Args:
        scores: for each judge's place, the hidden score of each state's place.

    Returns:
        The number of votes cast.
    """
    judges = {place: sampler.BradleyTerry(score) for place, score in scores.items()}
    votes = 0
    while True:
        wait_until_idle()
        annotator = annotators[int(rng.integers(len(annotators)))]
        lease = leases.take(annotator)
        if lease is None:
            campaign.refresh_from_db()
            if campaign.status == Campaign.Status.FINISHED:
                return votes
            continue
        prefers_right = judges[lease.judge.place].vote(rng, lease.first.place, lease.second.place)
        leases.answer(lease.key, annotator, Side.SECOND if prefers_right else Side.FIRST, 0)
        votes += 1


def voted_to_the_end(campaign: Campaign, people: int = 3) -> Campaign:
    """Let some people vote who like late objects by the first judge's question and early ones by the second's."""
    annotators = [Annotator.objects.create(campaign=campaign) for _ in range(people)]
    likes = {0: lambda place: place / 6, 1: lambda place: -place / 6}
    vote_until_finished(campaign, annotators, likes, np.random.default_rng(5))
    return Campaign.objects.get(pk=campaign.pk)


def voted_campaign(owner, **options) -> Campaign:
    """Return a campaign whose last vote is cast, as `voted_to_the_end` does."""
    return copied(owner, ("voted", options), lambda: voted_to_the_end(start_campaign(owner, **options)))


def live_page(browser: Client, campaign: Campaign) -> str:
    """Return the campaign's own page."""
    return browser.get(campaign.get_absolute_url()).content.decode()


# Tasks of this process one after another, on one thread: the same campaign then runs the same way every time.


@contextmanager
def tasks_in_turn() -> Iterator[None]:
    """Run every queue's tasks in the order in which they are given; at the end, wait for the last.

    Embedded, each queue has threads of its own, and which of two tasks comes first is chance. The thread keeps no
    connection to the database when it goes.
    """
    usual = dict(tasks_here._pools)
    with ThreadPoolExecutor(1, thread_name_prefix="task-in-turn") as one:
        tasks_here._pools.update(dict.fromkeys(usual, one))
        try:
            yield
            wait_until_idle()
        finally:
            one.submit(connections.close_all).result()
            tasks_here._pools.update(usual)


# Votes cast past the pages: each answers a lease of its own, as `transitions.cast_vote` wants.


def cast(
    comparison: Comparison, judge: Judge, annotator: Annotator, side: Side = Side.FIRST, key: uuid.UUID | None = None
) -> Vote:
    """Cast a vote whose proposal comes first; the same key again answers the same lease."""
    key = key or uuid.uuid4()
    with locked(comparison.pk) as comparison:
        now = timezone.now()
        given = {"comparison": comparison, "judge": judge, "annotator": annotator, "proposal_side": Side.FIRST}
        lease, _ = Lease.objects.get_or_create(key=key, defaults={**given, "issued_at": now, "expires_at": now})
        ballot = Vote(key=key, judge=judge, proposal_side=Side.FIRST, chosen_side=side, annotator=annotator)
        return transitions.cast_vote(comparison, ballot, lease)


# Panels: campaigns whose people are named, each with a link of their own.


def panel_judges(panelists: int, *questions: str, names: tuple[str, ...] = ()) -> list[dict]:
    """Return the judges of a panel; without names, each has their number for one."""
    return [
        {"question": question, "votes": 1, "source": {"kind": "panelist", "name": name}}
        for question in questions or ("Which is darker?",)
        for name in names or map(str, range(1, panelists + 1))
    ]


def panel_campaign(owner, panelists: int = 3, *, names: tuple[str, ...] = (), config=None, **options) -> Campaign:
    """Return a started campaign of a panel; `config` changes that of `make_config`."""
    described = make_config(**{"judges": panel_judges(panelists, names=names)} | (config or {}))
    return make_campaign(owner, config=described, **options)


def link_of(campaign: Campaign, panelist: int) -> Invitation:
    """Return the invitation of a panelist."""
    return campaign.invitations.get(panelist=panelist)


def sit_down(campaign: Campaign, panelist: int) -> Annotator:
    """Open the link of a panelist and press the button; return who that is, as an engine reads them."""
    person = admission.join(SessionStore(), link_of(campaign, panelist))
    return Annotator.objects.select_related("campaign").get(pk=person.pk)


# A scripted model that rates objects, the campaigns that it judges, and the fixtures of both.


TWO = [("How dark is it?", 3), ("How good is it?", 1)]
ONE = TWO[:1]


@dataclass(frozen=True)
class NoisyRater:
    """A model that likes some words, and gives each reply a point more or less, by its seed."""

    words: tuple[str, ...] = ("red", "dog", "the", "and")

    def __call__(self, body: dict) -> dict:
        if not is_vote(body):
            return anything_else(body)
        prompt = "".join(part["text"] for part in parts_of(body)).lower()
        noise = np.random.default_rng(body["seed"]).integers(-1, 2)
        rating = 4 + sum(prompt.count(word) for word in self.words) % 4 + noise
        return chat_reply(str(rating))


def parts_of(body: dict) -> list[dict]:
    content = body["messages"][-1]["content"]
    return [{"text": content}] if isinstance(content, str) else content


@pytest.fixture(name="script")
def rating_script() -> Iterator[Script]:
    with scripted_server(NoisyRater()) as script:
        script.strikes = is_vote
        yield script


# What *Test* keeps of a server whose votes are what it tells.
TRUE_LAW = {"requests": 1, "fields": [{"field": "truth", "effect": "obeyed", "evidence": "as often as it tells"}]}


def registered(owner, url: str, settings, name: str = "A model", **fields) -> Endpoint:
    """Return an endpoint for a server on this machine, which may be called; *Test* has seen that its law is true."""
    settings.ENDPOINT_ALLOWED_HOSTS = ["127.0.0.1"]
    settings.ENDPOINT_ALLOW_PRIVATE = ["127.0.0.0/8"]
    fields = {"model": "tiny", "dialect": Dialect.VLLM, "profile": TRUE_LAW} | fields
    made = Endpoint(owner=owner, name=name, base_url=url, **fields)
    made.samples_plainly, made.sampling_words = plainness(made)
    made.save()
    return made


@pytest.fixture(name="endpoint")
def rating_endpoint(researcher, script, settings) -> Endpoint:
    return registered(researcher, script.url, settings)


def rated_config(form: str = "separate", questions=TWO, **changes) -> dict:
    source = {"kind": "model", "endpoint": "A model", "temperature": 0.7}
    judges = [{"question": question, "votes": budget, "source": source} for question, budget in questions]
    return make_config(judges=judges, rule={"kind": "pointwise", "form": form}, chains=2, steps=10) | changes


def make(owner, *args, **changes) -> Campaign:
    return start_campaign(owner, config=rated_config(*args, **changes))


def swept(campaign: Campaign, times: int = 20) -> Campaign:
    """Sweep so many times, and no more once the campaign does not run; return it as it is then."""
    for _ in range(times):
        campaign.refresh_from_db()
        if not campaign.is_running:
            break
        sweep()
        wait_until_idle()
    campaign.refresh_from_db()
    return campaign


# People of the tests, who vote through real sockets.


@dataclass
class CarefulVoter(Voter):
    """A voter who notes each vote once the server has answered it: those the person has seen acknowledged."""

    acknowledged: list[str] = field(default_factory=list)

    async def _decide(self, screen):
        # The page answers a vote with another screen; with the same pair again it has not been read yet.
        if self.sent and screen.values.get("lease") != self.sent[-1] and self.sent[-1] not in self.acknowledged:
            self.acknowledged.append(self.sent[-1])
        return await super()._decide(screen)


class AnyScore(dict):
    """Hidden scores for whatever is asked: what takes longer to say is liked a little more."""

    def __missing__(self, question: str):
        return lambda content: len(content) / 50


# Campaigns that find in a warm-up how far to walk: twelve texts of different lengths, in a ring of neighbours.


WARM_UP_TEXTS = "text,weight\n" + "".join(f"{'far ' * place}away,{1 + place % 3}\n" for place in range(12))
WARM_UP = {"steps": 6, "grid": [1, 3, 9], "properties": ["words"], "burn_in": 2, "patience_minutes": 5}


def warming_config(warm_up: dict | None = None, **changes) -> dict:
    """Return a config as it is stored, with changes of the warm-up and of the rest."""
    kernel = {"kind": "walk", "kernel": {"kind": "neighbours"}, "length": 5, "warm_up": WARM_UP | (warm_up or {})}
    judges = [{"question": "Which is darker?", "votes": 1}]
    config = {"version": 1} | make_config(kernel=kernel, judges=judges, chains=3, steps=12) | changes
    return sampler.parse_config(config).model_dump(mode="json")


def warming_campaign(owner, warm_up: dict | None = None, **changes) -> Campaign:
    """Return a started campaign with a warm-up."""
    return make_campaign(owner, file=WARM_UP_TEXTS, config=warming_config(warm_up, **changes))


# Folders of runs whose truth is known: records, ratings and votes are drawn from what a test has planted.


Score = Callable[[str, Place], float | None]


def begin_run(
    folder: Path,
    options: ExperimentOptions,
    inputs: Mapping[str, list[ExperimentInput]] | None = None,
    models: Mapping[str, str] | None = None,
):
    """Write settings.json, and return the run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text(settings_text(settings_document(options, inputs=inputs, models=models)))
    return RunFiles(folder)


def write_scores(run: RunFiles, names: Iterable[str], score: Score) -> None:
    """Write scores.csv: what `score` gives each kept state, by name."""
    states = [
        state for method in run.options.chosen for direction in run.options.directions
        for state in run.kept(method, direction)
    ]  # fmt: skip
    rows = (
        {**state._asdict(), "name": name, "value": value, "source": "planted", "asks": None}
        for name in names
        for state in states
        if (value := score(name, state)) is not None
    )
    write_table(run.folder, outputs.SCORES, rows)


def write_votes(run: RunFiles, wins: Callable[[str, str, str, int], float], rng: np.random.Generator) -> None:
    """Write votes.csv; `wins` is the chance of `one` over `other`, by property, methods and prompt."""
    votes = []
    for slot in tournament_schedule(run.options):
        match = slot.match
        chance = wins(slot.about, match.one.method, match.other.method, match.prompt)
        key = dict(zip(outputs.VOTE_KEY, (*slot.key, 0), strict=True))
        votes.append({**key, "chose_one": bool(rng.random() < chance), "voter": "planted", "asks": 1})
    write_table(run.folder, outputs.VOTES, votes)


def write_record(run: RunFiles, name: str, contents: Callable[[int, int], str], chains: int, steps: int) -> None:
    """Write a record that holds what `contents` gives each chain and step, and nothing else."""
    rows = [
        tables.SAMPLES.row(
            chain_index=chain, step=step, state_index=0, content=contents(chain, step), phase=tables.SAMPLING
        )
        for chain in range(chains)
        for step in range(steps + 1)
    ]
    path = run.folder / "records" / name
    path.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("campaign.json", json.dumps({}))
        for table in tables.TABLES:
            text = io.StringIO(newline="")
            csv.writer(text).writerows([table.header, *(rows if table is tables.SAMPLES else [])])
            archive.writestr(table.file, text.getvalue())


# Records of small campaigns, one for each kind of space and rule, made through the real doors.
#
# `example_record` makes each once in a run. The same campaign comes out whenever it is made: the seed is given, people
# and model answer by a checksum of what they are shown.


_SEED = 20261122
MODEL = "A model"
EXAMPLE_TEXTS = [
    (f"The {colour} {thing} stood there.", 1 + place % 3)
    for place, (colour, thing) in enumerate((c, t) for c in ("red", "blue", "grey") for t in ("house", "tree", "sea"))
]
# The second is written with what a spreadsheet would run, the third with what a CSV has to quote.
ODD_TEXTS = [("=1+1 is what she said", 2), ('He said, "no",\nand went.', 1)]
SMILES = ["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CC(C)O", "c1ccncc1", "CCOC", "C1CCCCC1", "CC#N", "OCCO"]
COLOURS = ["red", "green", "blue", "white", "black", "orange", "purple", "grey"]


@dataclass(frozen=True)
class Case:
    """One campaign.

    Args:
        space, kernel, judges, rule: of its config.
        file: name and content of the upload, of a catalog.
        steps: of each of its two chains.
        people: how many vote; none where models alone do.
    """

    space: Mapping[str, Any]
    kernel: Mapping[str, Any]
    judges: tuple[Mapping[str, Any], ...]
    rule: Mapping[str, Any] = field(default_factory=lambda: {"kind": "n-vote"})
    file: tuple[str, bytes] | None = None
    steps: int = 4
    people: int = 4

    def config(self) -> dict[str, Any]:
        """Return the config of this campaign."""
        described = {"space": self.space, "kernel": self.kernel, "judges": list(self.judges), "rule": self.rule}
        return described | {"chains": 2, "steps": self.steps, "seed": _SEED}


def _asked(question: str, votes: int, **more: Any) -> dict[str, Any]:
    return {"question": question, "votes": votes, **more}


def _by_model(votes: str = "sampled", **more: Any) -> dict[str, Any]:
    return {"source": {"kind": "model", "endpoint": MODEL, "temperature": 0.8, "votes": votes, **more}}


def _catalog(objects: str, neighbours: int = 3) -> dict[str, Any]:
    return {"kind": "catalog", "objects": objects, "neighbours": neighbours}


def _texts_file() -> tuple[str, bytes]:
    return "texts.csv", spreadsheet([("text", "weight"), *EXAMPLE_TEXTS, *ODD_TEXTS])


def _molecules_file() -> tuple[str, bytes]:
    return "molecules.csv", spreadsheet([("smiles", "weight"), *((smiles, 1 + len(smiles) % 4) for smiles in SMILES)])


def _images_file() -> tuple[str, bytes]:
    pictures = {f"{colour}.png": picture(colour) for colour in COLOURS}
    weights = spreadsheet([("file", "weight"), *((name, len(name) / 4) for name in pictures)])
    return "pictures.zip", archive({**pictures, "weights.csv": weights})


_WRITING = mixture((0.2, "independent"), (0.8, "suffix"))
_BOTH = mixture((0.3, "independent"), (0.7, "neighbours"))
_PEOPLE = (_asked("Which is darker?", 2), _asked("Which is better?", 1))
_TWINS = tuple(_asked("Which is darker?", 2, order=f"proposal-{place}") for place in ("first", "second"))
_RATED = _asked("How dark is it?", 2, **_by_model())


def _rated(form: str, *more: Mapping[str, Any], **rule: Any) -> Case:
    pointwise = {"kind": "pointwise", "form": form, **rule}
    judges = (_RATED, *more)
    return Case(_catalog("texts"), _BOTH, judges, pointwise, _texts_file(), people=0)


EXAMPLES: dict[str, Case] = {
    # One for each kind of space.
    "catalog-texts": Case(_catalog("texts"), _BOTH, _PEOPLE, file=_texts_file()),
    "catalog-molecules": Case(_catalog("molecules"), _BOTH, _PEOPLE, file=_molecules_file()),
    "catalog-images": Case(_catalog("images"), _BOTH, _PEOPLE, file=_images_file()),
    "texts": Case({"kind": "texts", "scenarios": [3, 14]}, _WRITING, _PEOPLE),
    "molecules": Case({"kind": "molecules"}, {"kind": "fragments"}, _PEOPLE, steps=24),
    "patterns": Case({"kind": "images"}, sampler.PAPER_MIXTURE, _PEOPLE),
    "model-texts": Case(
        {"kind": "model-texts", "model": MODEL, "prompts": ["Write about the sea.", "Write about a cat."], "limit": 12},
        _WRITING,
        _PEOPLE,
    ),
    # One for each rule, and for each way of asking. (N votes in random order: above.)
    "two-judge-order": Case(_catalog("texts"), _BOTH, _TWINS, file=_texts_file()),
    "people-and-model": Case(
        _catalog("texts"),
        _BOTH,
        (_asked("Which is darker?", 2), _asked("Which is darker?", 2, **_by_model()), _asked("Which is better?", 1)),
        file=_texts_file(),
    ),
    "model-asked-first": Case(
        _catalog("texts"),
        _BOTH,
        (
            _asked("Which is darker?", 2, order="balanced", **_by_model("log-probabilities", first=True)),
            _asked("Which is better?", 2),
        ),
        file=_texts_file(),
    ),
    "model-two-judge-order": Case(
        _catalog("texts"),
        _BOTH,
        tuple({**twin, **_by_model("log-probabilities")} for twin in _TWINS),
        file=_texts_file(),
        people=0,
    ),
    "ratings-separate": _rated("separate", _asked("How good is it?", 1, **_by_model())),
    "ratings-joint": _rated("joint", lowest=0),
    "ratings-difference": _rated("difference"),
    "ratings-power": _rated("power", beta=20.0),
}


@cache
def example_record(name: str) -> Path:
    """Return the export of a case; the tests' own database is not touched."""
    folder = Path(_examples_folder().name)
    path = folder / f"{name}.zip"
    with scripted_server(Checksum()) as script, _empty_database(script):
        path.write_bytes(b"".join(export.archive(_finished(EXAMPLES[name], _owner(script)))))
    return path


@cache
def _examples_folder() -> tempfile.TemporaryDirectory:
    return tempfile.TemporaryDirectory(prefix="prefmh-examples-")


@contextmanager
def _empty_database(script: Script) -> Iterator[None]:
    """Let the application work on an empty database, its tasks one after another, with leave to call the model."""
    usual = connection.settings_dict["NAME"]
    connections.close_all()
    with tempfile.TemporaryDirectory(prefix="prefmh-example-") as folder:
        connection.settings_dict["NAME"] = f"{folder}/prefmh.sqlite3"
        server = urlsplit(script.url)
        allowed = {"ENDPOINT_ALLOWED_HOSTS": [server.netloc], "ENDPOINT_ALLOW_PRIVATE": [f"{server.hostname}/32"]}
        try:
            with override_settings(MEDIA_ROOT=Path(folder) / "media", **allowed), tasks_in_turn():
                call_command("migrate", verbosity=0, interactive=False)
                yield
        finally:
            connections.close_all()
            connection.settings_dict["NAME"] = usual


def _owner(script: Script):
    """Return the researcher whom all belongs to, with the model registered."""
    owner = get_user_model().objects.create_user("ada")
    make_researcher(owner)
    # One request at a time, so that replies come in the order in which they are asked for.
    fields = {"base_url": script.url, "model": "checksum", "dialect": Dialect.VLLM, "concurrency": 1}
    endpoint = Endpoint(owner=owner, name=MODEL, profile=TRUE_LAW, samples_plainly=True, **fields)
    endpoint.full_clean()
    endpoint.save()
    return owner


def _finished(case: Case, owner) -> Campaign:
    """Return a campaign whose record has all that a record can have: a skip, an expiry, a vote that came too late."""
    campaign = _started(case, owner)
    if not case.people:
        # Models have finished it by now, and nobody can join it any more.
        return campaign
    invitation = campaign.invitations.first()
    hasty, sleepy, *crowd = (_joined(invitation) for _ in range(case.people + 2))
    if skipped := leases.take(hasty):
        leases.skip(skipped.key, hasty)
    if unanswered := leases.take(sleepy):
        Lease.objects.filter(ended_at__isnull=True).update(expires_at=timezone.now() - timedelta(minutes=1))
        leases.expire()
    _vote(campaign, crowd, np.random.default_rng(_SEED))
    if unanswered:
        leases.answer(unanswered.key, sleepy, Side.FIRST, 90_000)
    return campaign


def _started(case: Case, owner) -> Campaign:
    filename, content = case.file or ("", b"")
    file = ContentFile(content, filename) if case.file else None
    made = create_draft(owner=owner, name="Example", config=case.config(), file=file, filename=filename)
    wait_until_idle()
    # What was read of the file is on the campaign's row of another process, as it were.
    campaign = Campaign.objects.get(pk=made.pk)
    lifecycle.request_start(campaign)
    wait_until_idle()
    campaign.refresh_from_db()
    return campaign


_PROSE = ("The sea is calm.", "Waves come and go.", "Salt is in the air.", "The tide turns.")


@dataclass
class Checksum:
    """A model whose mind is a checksum of the prompt. The seed is not heeded: a reply follows from the prompt and from
    how often it has been asked, so that whoever asks in the same order gets the same answers.
    """

    asked: Counter[str] = field(default_factory=Counter)
    writes: Writer = field(default_factory=Writer)

    def __call__(self, body: dict) -> dict:
        is_chat = "messages" in body and "max_tokens" in body
        answer = self._answer(body) if is_chat else self.writes(body)
        return {"model": body.get("model"), "system_fingerprint": "checksum", **answer}

    def _answer(self, body: dict) -> dict:
        prompt = str(body["messages"])
        choices = body.get("structured_outputs", {}).get("choice")
        if body.get("logprobs"):
            return self._with_log_probabilities(prompt)
        self.asked[prompt] += 1
        rng = np.random.default_rng([zlib.crc32(prompt.encode()), self.asked[prompt]])
        if choices == ["A", "B"]:
            return chat_reply("A" if rng.random() < _preference(prompt, body["temperature"]) else "B")
        if choices and choices[-1].isdigit():
            return chat_reply(_rating(prompt, choices, rng))
        return chat_reply(str(rng.choice(choices or _PROSE)))

    def _with_log_probabilities(self, prompt: str) -> dict:
        first = _preference(prompt, 1.0)
        top = [("A", 0.98 * first), ("B", 0.98 * (1 - first)), ("Well", 0.02)]
        tokens = [{"token": token, "logprob": math.log(p)} for token, p in top]
        return chat_reply("A", logprobs={"content": [{**tokens[0], "top_logprobs": tokens}]})


def _preference(prompt: str, temperature: float) -> float:
    """Return the probability of A."""
    logit = (zlib.crc32(prompt.encode()) % 13 - 6) / 4
    return 1 / (1 + math.exp(-logit / temperature))


def _rating(prompt: str, choices: list[str], rng: np.random.Generator) -> str:
    """Return a rating around the middle of the scale, a point more or less each time."""
    middle = len(choices) // 2 + zlib.crc32(prompt.encode()) % 5 - 2
    return choices[middle + int(rng.integers(-1, 2))]


_SWEEPS = 20


def _vote(campaign: Campaign, crowd: list[Annotator], rng: np.random.Generator) -> None:
    """Let people vote until the campaign is finished.

    Raises:
        AssertionError: the campaign is not finished, and nobody is asked anything though the clock has swept often.
    """
    judge, cast, swept = sampler.BradleyTerry(_score), 0, 0
    while True:
        wait_until_idle()
        campaign.refresh_from_db()
        if campaign.status == Campaign.Status.FINISHED:
            return
        for place in rng.permutation(len(crowd)):
            if lease := leases.take(crowd[place]):
                side = Side.SECOND if judge.vote(rng, lease.first.content, lease.second.content) else Side.FIRST
                leases.answer(lease.key, crowd[place], side, 1000 + 10 * cast)
                cast, swept = cast + 1, 0
                break
        else:
            assert swept < _SWEEPS, f"{campaign} is {campaign.status}, and nobody is asked anything"
            sweep_everything()
            swept += 1


def _joined(invitation) -> Annotator:
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    annotator = admission.join(session, invitation)
    session.save()
    return annotator


def _score(content: str) -> float:
    return (zlib.crc32(content.encode()) % 5) / 2


# Every outcome of what a program draws, with its exact probability: the program is followed, not written again.
#
# It gets a generator whose numbers are intervals of [0, 1). As soon as it asks something of a number (is it below
# this? which whole number is it?) whose answer changes within the interval, the interval is cut there, and the
# program runs once for each side.


# Halvings of an interval after which two doubles inside [0, 1) are neighbours.
_HALVINGS = 64


def every_outcome(draw: Callable[[Any], Any]) -> Iterator[tuple[float, Any]]:
    """Yield (probability, result) for every way in which `draw(rng)` can go; `rng` knows `random` only."""
    path = _Path()
    while True:
        rng = Followed(path)
        result = draw(rng)
        yield rng.probability, result
        if not path.advance():
            return


def law_of(draw: Callable[[Any], Hashable]) -> dict[Any, float]:
    """Return the law of what `draw(rng)` returns."""
    parts: dict[Any, list[float]] = {}
    for probability, result in every_outcome(draw):
        parts.setdefault(result, []).append(probability)
    return {result: math.fsum(some) for result, some in parts.items()}


class _Path:
    """The sides taken at each cut of one run, and which are still to take."""

    def __init__(self) -> None:
        self._sides: list[bool] = []
        self._at = 0

    def side(self) -> bool:
        """Return the side to take at this cut; at a new one, first the lower."""
        if self._at == len(self._sides):
            self._sides.append(False)
        self._at += 1
        return self._sides[self._at - 1]

    def advance(self) -> bool:
        """Turn to the next run; False when there is none."""
        while self._sides and self._sides[-1]:
            self._sides.pop()
        if self._sides:
            self._sides[-1] = True
        self._at = 0
        return bool(self._sides)


class Followed:
    """A generator of intervals."""

    def __init__(self, path: _Path) -> None:
        self._path, self._drawn = path, []

    @property
    def probability(self) -> float:
        """Of all answers given so far."""
        return math.prod(interval.size for interval in self._drawn)

    def random(self, size: int | None = None) -> Any:
        """Return a number, or so many."""
        if size is not None:
            return _Numbers(self.random() for _ in range(size))
        self._drawn.append(_Interval(self._path))
        return Number(self._drawn[-1])


class _Numbers(list):
    """What NumPy would give as an array."""

    def tolist(self) -> list[Number]:
        return list(self)


class _Interval:
    """What is known of one uniform number: it is at least `low` and below `high`."""

    def __init__(self, path: _Path) -> None:
        self._path, self._low, self._high = path, 0.0, 1.0

    @property
    def size(self) -> float:
        return self._high - self._low

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest double in it."""
        return self._low, math.nextafter(self._high, 0.0)

    def ask(self, question: Callable[[float], bool]) -> bool:
        """Return the answer to a question that changes its answer at most once from 0 to 1."""
        low, high = self.ends
        below, above = question(low), question(high)
        if below == above:
            return below
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if question(middle) == below else (low, middle)
        if self._path.side():
            self._low = high
            return above
        self._high = high
        return below


class Number:
    """A monotone function of a uniform number that is known to lie in an interval."""

    def __init__(self, interval: _Interval, of: Callable[[float], float] = lambda number: number) -> None:
        self._interval, self._of = interval, of

    def _compared(self, compare: Callable[[float, float], bool], other: float) -> bool:
        if isinstance(other, Number):
            raise TypeError("two numbers that are not known cannot be compared")
        return self._interval.ask(lambda number: compare(self._of(number), other))

    def __lt__(self, other: float) -> bool:
        return self._compared(operator.lt, other)

    def __le__(self, other: float) -> bool:
        return self._compared(operator.le, other)

    def __gt__(self, other: float) -> bool:
        return self._compared(operator.gt, other)

    def __ge__(self, other: float) -> bool:
        return self._compared(operator.ge, other)

    def __int__(self) -> int:
        while True:
            low, high = sorted(int(self._of(end)) for end in self._interval.ends)
            if low == high:
                return low
            _ = self < (low + high + 1) // 2

    def _then(self, step: Callable[[float, float], float], other: float) -> Number:
        return Number(self._interval, lambda number: step(self._of(number), other))

    def __sub__(self, other: float) -> Number:
        return self._then(operator.sub, other)

    def __rsub__(self, other: float) -> Number:
        return self._then(lambda mine, theirs: theirs - mine, other)

    def __mul__(self, other: float) -> Number:
        return self._then(operator.mul, other)

    __rmul__ = __mul__

    def __truediv__(self, other: float) -> Number:
        return self._then(operator.truediv, other)

    def __pow__(self, other: float) -> Number:
        return self._then(operator.pow, other)
