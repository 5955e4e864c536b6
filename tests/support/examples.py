"""Records of small campaigns, one for each kind of space and rule, made through the real doors.

`example_record` makes each once in a run. The same campaign comes out whenever it is made: the seed is given, people
and model answer by a checksum of what they are shown.
"""

from __future__ import annotations

import math
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.files.base import ContentFile
from django.core.management import call_command
from django.db import connection, connections
from django.test import override_settings
from django.utils import timezone

import sampler
from prefmh_web.accounts.models import make_researcher
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.engine import leases
from prefmh_web.campaigns.models import Campaign, Lease, Side, Voter
from prefmh_web.campaigns.record import export
from prefmh_web.endpoints.models import Endpoint
from prefmh_web.endpoints.servers import Dialect
from prefmh_web.voting import admission
from tests.support.campaigns import TRUE_DISTRIBUTION, create_draft
from tests.support.models import Script, Writer, chat_reply, scripted_server
from tests.support.process import sweep_everything, tasks_in_turn, wait_until_idle
from tests.support.sampling import mixture
from tests.support.uploads import archive, picture, spreadsheet

_SEED = 20261122
MODEL = "A model"
EXAMPLE_TEXTS = [
    (f"The {colour} {thing} stood there.", 1 + index % 3)
    for index, (colour, thing) in enumerate((c, t) for c in ("red", "blue", "grey") for t in ("house", "tree", "sea"))
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
_ORDER_PAIRS = tuple(_asked("Which is darker?", 2, order=f"proposal-{index}") for index in ("first", "second"))
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
    "two-judge-order": Case(_catalog("texts"), _BOTH, _ORDER_PAIRS, file=_texts_file()),
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
        tuple({**each, **_by_model("log-probabilities")} for each in _ORDER_PAIRS),
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
    endpoint = Endpoint(owner=owner, name=MODEL, profile=TRUE_DISTRIBUTION, samples_untruncated=True, **fields)
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


def _vote(campaign: Campaign, crowd: list[Voter], rng: np.random.Generator) -> None:
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
        for index in rng.permutation(len(crowd)):
            if lease := leases.take(crowd[index]):
                side = Side.SECOND if judge.vote(rng, lease.first.content, lease.second.content) else Side.FIRST
                leases.answer(lease.key, crowd[index], side, 1000 + 10 * cast)
                cast, swept = cast + 1, 0
                break
        else:
            assert swept < _SWEEPS, f"{campaign} is {campaign.status}, and nobody is asked anything"
            sweep_everything()
            swept += 1


def _joined(invitation) -> Voter:
    session = import_module(settings.SESSION_ENGINE).SessionStore()
    voter = admission.join(session, invitation)
    session.save()
    return voter


def _score(content: str) -> float:
    return (zlib.crc32(content.encode()) % 5) / 2
