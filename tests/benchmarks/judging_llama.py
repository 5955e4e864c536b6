"""How much of a real model server a judge gets, beside a client that does nothing else.

    python -m tests.benchmarks.judging_llama [--width 256] [--layers 4] [--at-once 8] [--seconds 60] [--json FILE]

The server is llama.cpp's, on one thread, with a model of random weights: `--width` and `--layers` say how long it is at
work on a vote. A campaign of forty chains is judged by it for so many seconds, and then, with the campaign paused, a
bare asyncio client sends the same requests, as many at a time.

    application   votes a second that a campaign got
    bare client   replies a second
    share         of the first in the second

What is sent is taken from the same campaign on a server that answers at once and keeps what it is sent
(`judging_stub.py`). All of it shares one machine: what the application computes, the server cannot.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from tests.benchmarks.judging import VOTES, JudgingStage, is_answering
from tests.benchmarks.load_revisions import commit_of
from tests.support.model_server import model_server, write_model
from tests.support.ports import port_from
from tests.support.processes import ROOT, Process, wait_for

_SETUP = """
import json, sys
import django
django.setup()
from django.contrib.auth import get_user_model
from prefmh_web.campaigns import lifecycle
from prefmh_web.endpoints.models import Endpoint
from tests.support.stack import make_draft, make_recipe
wanted = json.loads(sys.argv[1])
owner, _ = get_user_model().objects.get_or_create(username="ada")
name = wanted["name"]
Endpoint.objects.create(owner=owner, name=name, base_url=wanted["url"], model="m", dialect="llama.cpp",
                        concurrency=wanted["at_once"])
judge = {"question": "Which is darker?", "budget": 3, "source": {"kind": "model", "endpoint": name}}
lines = [f"On day {day} the sea was grey and nobody came to the house.\\n" for day in range(200)]
recipe = make_recipe(judges=[judge], chains=40, steps=100_000)
campaign = make_draft(owner, file="text\\n" + "".join(lines), recipe=recipe)
lifecycle.start(campaign)
print(json.dumps(campaign.pk))
"""
_PAUSE = """
import sys
import django
django.setup()
from prefmh_web.campaigns import lifecycle
from prefmh_web.campaigns.models import Campaign
lifecycle.pause(Campaign.objects.get(pk=sys.argv[1]))
"""
_WARM_UP_S = 20
_TIMEOUT_S = 120


@dataclass(frozen=True)
class Found:
    """One run's figures."""

    commit: str
    width: int
    layers: int
    at_once: int
    seconds: float
    votes_per_s: float
    bare_per_s: float

    @property
    def share(self) -> float:
        """Of what a bare client gets."""
        return self.votes_per_s / self.bare_per_s


def measure(stage: JudgingStage, stub: str, llama: str, options: argparse.Namespace) -> Found:
    """Let the model judge, then ask it the same without an application."""
    bodies = _bodies(stage, stub, options.at_once)
    campaign = _start(stage, "llama", llama, options.at_once)
    time.sleep(_WARM_UP_S)
    began = time.time()
    time.sleep(options.seconds)
    votes = stage.query(VOTES, began)[0][0] / (time.time() - began)
    stage.run("-", str(campaign), script=_PAUSE)
    # What is under way ends.
    time.sleep(_WARM_UP_S)
    bare = asyncio.run(_ask(f"{llama}/chat/completions", bodies, options.at_once, options.seconds))
    return Found(commit_of("HEAD"), options.width, options.layers, options.at_once, options.seconds, votes, bare)


def _start(stage: JudgingStage, name: str, url: str, at_once: int) -> int:
    wanted = {"name": name, "url": url, "at_once": at_once}
    return json.loads(stage.run("-", json.dumps(wanted), script=_SETUP).stdout)


def _bodies(stage: JudgingStage, stub: str, at_once: int) -> list[dict]:
    campaign = _start(stage, "stub", f"{stub}/v1", at_once)
    wait_for(lambda: len(httpx.get(f"{stub}/bodies").json()["bodies"]) >= 200, "200 requests are known")
    stage.run("-", str(campaign), script=_PAUSE)
    return httpx.get(f"{stub}/bodies").json()["bodies"]


async def _ask(url: str, bodies: list[dict], at_once: int, seconds: float) -> float:
    """Return replies a second; each request as it was written, with a seed of its own."""
    numbers, ended = itertools.count(), 0
    until = time.monotonic() + seconds

    async def keep_asking(client: httpx.AsyncClient) -> None:
        nonlocal ended
        while time.monotonic() < until:
            number = next(numbers)
            reply = await client.post(url, json=bodies[number % len(bodies)] | {"seed": number})
            reply.raise_for_status()
            ended += time.monotonic() < until

    async with httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False) as client:
        await asyncio.gather(*(keep_asking(client) for _ in range(at_once)))
    return ended / seconds


@contextlib.contextmanager
def _staged(options: argparse.Namespace) -> Iterator[tuple[JudgingStage, str, str]]:
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="prefmh-llama-")))
        port = port_from(32_000)
        command = ["-m", "uvicorn", "tests.benchmarks.judging_stub:application", "--port", str(port)]
        environment = {"LATENCY_S": "0.01", "PATH": ""}
        stub = Process("stub", [sys.executable, *command, "--no-access-log"], environment, folder, cwd=ROOT)
        stub.start()
        ends.callback(stub.kill)
        wait_for(lambda: is_answering(f"http://127.0.0.1:{port}"), "the first server answers")
        model = write_model(folder / "model.gguf", width=options.width, layers=options.layers)
        llama = ends.enter_context(model_server(model, port_from(33_000)))
        stage = JudgingStage(folder, webs=1)
        stage.variables |= {"ENDPOINT_ALLOWED_HOSTS": "127.0.0.1", "ENDPOINT_ALLOW_PRIVATE": "127.0.0.1/32"}
        ends.callback(stage.stop)
        stage.start()
        stage.ask(calls=64)
        yield stage, f"http://127.0.0.1:{port}", llama


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--width", type=int, default=256, help="of the model's embeddings")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--at-once", type=int, default=8, help="requests at a time; the server takes eight")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    with _staged(options) as (stage, stub, llama):
        found = measure(stage, stub, llama, options)
    print(f"width {found.width}, {found.layers} layers, {found.at_once} at once, commit {found.commit[:7]}")
    print(f"  application   {found.votes_per_s:.2f} votes/s")
    print(f"  bare client   {found.bare_per_s:.2f} replies/s")
    print(f"  share         {found.share:.1%}")
    if options.json:
        options.json.write_text(json.dumps(asdict(found) | {"share": found.share}, indent=1))


if __name__ == "__main__":
    main()
