"""Made the database of version 0.1.0, with the code of commit a832601, the last one before 0.2.0:

    git worktree add /tmp/old a832601 && cd /tmp/old
    PYTHONPATH=. python .../tests/released/0.1.0/make.py .../tests/released/0.1.0/record.tar.gz

It imports that commit's packages and tests, and no others. Most campaigns are left half through: people have voted on
open comparisons, somebody holds a pair and is away, the model has gone silent. Recipes that a later version refuses
(a lone question with a fixed order, twins of unequal budgets) are among them. The endpoint ends at the address of
`tests/released/server.py`, where the tests bring a model back.
"""

import gzip
import io
import sys
import tarfile
import zlib
from datetime import timedelta
from pathlib import Path

import numpy as np

from tests.benchmarks.own_site import own_site, researcher

MODEL, AFTERWARDS = "A model", "http://127.26.11.22:18811/v1"
SEED = 20261122


def main(target: Path) -> None:
    """Make the record and pack it."""
    with own_site():
        from django.conf import settings
        from django.db import connection

        from tests.support.scripted_server import scripted_server

        with scripted_server(answer) as script:
            make_all(script)
        with connection.cursor() as cursor:
            cursor.execute("VACUUM INTO %s", [str(settings.DATA_DIR / "compact.sqlite3")])
        target.write_bytes(packed(settings.DATA_DIR / "compact.sqlite3", Path(settings.MEDIA_ROOT)))


def answer(body: dict) -> dict:
    """A model: it writes, rates and votes as a checksum says, and heeds the seed."""
    from tests.support.scripted_server import Writer, chat_reply

    if "max_tokens" not in body or "prompt" in body:
        return Writer()(body)
    prompt = str(body["messages"])
    if body.get("logprobs"):
        top = [{"token": token, "logprob": np.log(p)} for token, p in (("A", 0.55), ("B", 0.4))]
        return chat_reply("A", logprobs={"content": [{"token": "A", "top_logprobs": top}]})
    choices = body["structured_outputs"]["choice"]
    return chat_reply(choices[(zlib.crc32(prompt.encode()) + body["seed"]) % len(choices)])


def make_all(script) -> None:
    """Make the campaigns."""
    import sampler
    from prefmh_web.campaigns import lifecycle
    from prefmh_web.endpoints.dialects import Dialect
    from prefmh_web.endpoints.models import Endpoint
    from tests.support.files import archive, picture
    from tests.support.stack import MIXTURE, TEXTS

    owner = researcher()
    Endpoint.objects.create(owner=owner, name=MODEL, base_url=script.url, model="checksum", dialect=Dialect.VLLM)
    texts = ("texts.csv", TEXTS.encode())
    smiles = ("CCO", "CCN", "c1ccccc1", "CC(=O)O", "CC(C)O", "c1ccncc1", "CCOC", "C1CCCCC1")
    molecules = ("molecules.csv", ("smiles,weight\n" + "".join(f"{s},{1 + len(s) % 3}\n" for s in smiles)).encode())
    colours = ("red", "green", "blue", "white", "black", "orange")
    pictures = ("pictures.zip", archive({f"{colour}.png": picture(colour) for colour in colours}))
    people = [asked("Which is darker?", 2), asked("Which is better?", 1)]
    twins = [asked("Which is darker?", 2, order=f"proposal-{place}") for place in ("first", "second")]
    beside = [asked("Which is darker?", 2), asked("Which is darker?", 2, **by_model())]
    drawn = [asked("Which is darker?", 2, **by_model("log-probabilities"))]
    rated = [asked("How dark is it?", 2, **by_model()), asked("How good is it?", 1, **by_model())]
    suffix = {"kind": "mixture", "parts": [part(0.2, "independent"), part(0.8, "suffix")]}
    written = {"kind": "model-texts", "model": MODEL, "prompts": ["Write about the sea."], "limit": 12}

    def catalog(objects: str) -> dict:
        return {"kind": "catalog", "objects": objects, "neighbours": 3}

    def make(name: str, space: dict, kernel: dict, judges: list, file=None, **more) -> object:
        recipe = {"space": space, "kernel": kernel, "judges": judges, "chains": 2, "steps": 4, "seed": SEED} | more
        return draft(owner, name, sampler.parse_recipe(recipe).model_dump(mode="json"), file)

    to_its_end(make("Texts, finished", catalog("texts"), MIXTURE, people, texts))
    to_its_end(make("Log-probabilities, finished", catalog("texts"), MIXTURE, drawn, texts))
    to_its_end(make("Joint ratings, finished", catalog("texts"), MIXTURE, rated[:1], texts, rule=pointwise("joint")))
    half(make("Texts, half through", catalog("texts"), MIXTURE, people, texts))
    half(make("Molecules of a file, two orders, half through", catalog("molecules"), MIXTURE, twins, molecules))
    half(make("Pictures, half through", catalog("images"), MIXTURE, people, pictures))
    half(make("Openings, half through", {"kind": "texts", "scenarios": [3, 14]}, suffix, people))
    half(make("Molecules, half through", {"kind": "molecules"}, {"kind": "fragments"}, people, steps=24), votes=3)
    half(make("Patterns, half through", {"kind": "images"}, sampler.PAPER_MIXTURE, people))
    half(make("Written by a model, half through", written, suffix, people))
    half(make("People and a model, half through", catalog("texts"), MIXTURE, beside, texts, steps=8), votes=4)
    half(make("A lone order, half through", catalog("texts"), MIXTURE, twins[:1], texts))
    half(make("Unequal twins, half through", catalog("texts"), MIXTURE, [twins[0], twins[1] | {"budget": 4}], texts))
    lifecycle.pause(half(make("Texts, paused", catalog("texts"), MIXTURE, people, texts)))
    make("Texts, draft", catalog("texts"), MIXTURE, people, texts)
    make("Openings, draft", {"kind": "texts"}, suffix, people)
    make("A lone order, draft", catalog("texts"), MIXTURE, twins[:1], texts)
    make("A file that cannot be read, draft", catalog("texts"), MIXTURE, people, ("texts.csv", b"no header"))
    separate = make(
        "Separate ratings, half through", catalog("texts"), MIXTURE, rated, texts, rule=pointwise("separate")
    )
    fall_silent(script, after=7)
    half(separate, votes=0)
    Endpoint.objects.update(base_url=AFTERWARDS)


def asked(question: str, budget: int, **more: object) -> dict:
    return {"question": question, "budget": budget, **more}


def by_model(votes: str = "sampled") -> dict:
    return {"source": {"kind": "model", "endpoint": MODEL, "temperature": 0.8, "votes": votes}}


def pointwise(form: str) -> dict:
    return {"kind": "pointwise", "form": form}


def part(weight: float, kind: str) -> dict:
    return {"weight": weight, "kernel": {"kind": kind}}


def draft(owner, name: str, recipe: dict, file):
    """Return a draft whose file, if any, has been read."""
    from django.core.files.base import ContentFile

    from prefmh_web.campaigns import setup
    from prefmh_web.campaigns.models import Campaign
    from tests.support.stack import wait_until_idle

    filename, content = file or ("", b"")
    upload = ContentFile(content, filename) if file else None
    campaign = setup.create(owner=owner, name=name, recipe=recipe, file=upload, filename=filename)
    wait_until_idle()
    return Campaign.objects.get(pk=campaign.pk)


def started(campaign, people: int) -> list:
    """Start a campaign, and return people who have joined it."""
    from importlib import import_module

    from django.conf import settings

    from prefmh_web.annotate.people import join
    from prefmh_web.campaigns import lifecycle
    from tests.support.stack import wait_until_idle

    lifecycle.start(campaign)
    wait_until_idle()
    sessions = [import_module(settings.SESSION_ENGINE).SessionStore() for _ in range(people)]
    joined = [join(session, campaign.invitations.get()) for session in sessions]
    for session in sessions:
        session.save()
    return joined


def to_its_end(campaign) -> None:
    """Run a campaign to its end, with a skip, an expiry, and a vote that comes too late."""
    from django.utils import timezone

    from prefmh_web.annotate import leases
    from prefmh_web.annotate.models import Lease
    from prefmh_web.campaigns.models import Campaign, Side

    hasty, sleepy, *crowd = started(campaign, 6)
    if lease := leases.take(hasty):
        leases.skip(lease.key, hasty)
    unanswered = leases.take(sleepy)
    Lease.objects.filter(annotator=sleepy).update(expires_at=timezone.now() - timedelta(minutes=1))
    leases.expire()
    vote(campaign, crowd)
    assert campaign.status == Campaign.Status.FINISHED
    if unanswered:
        leases.answer(unanswered.key, sleepy, Side.LEFT, 90_000)


def half(campaign, votes: int = 5):
    """Return a campaign with so many votes, and somebody who holds a pair."""
    from prefmh_web.annotate import leases
    from tests.support.stack import wait_until_idle

    absent, *crowd = started(campaign, 6)
    vote(campaign, crowd, votes)
    leases.take(absent)
    wait_until_idle()
    campaign.refresh_from_db()
    assert campaign.is_running, campaign.name
    return campaign


def vote(campaign, crowd: list, most: float = float("inf")) -> None:
    """Let people vote, by coin, until the campaign is finished or has so many votes."""
    from prefmh_web.annotate import leases
    from prefmh_web.campaigns.models import Campaign, Side
    from tests.support.stack import wait_until_idle

    rng, cast = np.random.default_rng(SEED), 0
    while cast < most:
        wait_until_idle()
        campaign.refresh_from_db()
        if campaign.status == Campaign.Status.FINISHED:
            return
        annotator = crowd[rng.integers(len(crowd))]
        if lease := leases.take(annotator):
            leases.answer(lease.key, annotator, Side.LEFT if rng.random() < 0.5 else Side.RIGHT, 1200)
            cast += 1


def fall_silent(script, after: int) -> None:
    """Let the server answer so many requests more, and then none."""
    from tests.support.scripted_server import status

    left = [after]

    def counted(body: dict) -> dict:
        left[0] -= 1
        if left[0] == 0:
            script.faults.extend([status(503)] * 1000)
        return answer(body)

    script.answer = counted


def packed(database: Path, media: Path) -> bytes:
    """Return the database and the media as they lie in PREFMH_DATA, in a compressed archive."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        archive.add(database, "prefmh.sqlite3", filter=anonymous)
        archive.add(media, "media", filter=anonymous)
    return gzip.compress(content.getvalue(), mtime=0)


def anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
