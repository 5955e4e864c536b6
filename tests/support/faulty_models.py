"""Campaigns judged by servers with faults (`faulty_model_server.py`), and what those servers saw of them."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.support.ports import port_from
from tests.support.processes import ROOT, Installation, Process, wait_for
from tests.support.stack import TEXTS

LINES = [line.rsplit(",", 1)[0] for line in TEXTS.splitlines()[1:]]
# Every preference between .2 and .8.
SCORES = {line: (place - 5.5) / 8 for place, line in enumerate(LINES)}
QUESTION = "Which is darker?"
VARIABLES = {"ENDPOINT_ALLOWED_HOSTS": "127.0.0.1", "ENDPOINT_ALLOW_PRIVATE": "127.0.0.1/32"}
_REGISTER = """
import json, sys
import django
django.setup()
from prefmh_web.endpoints.models import Endpoint
from django.contrib.auth import get_user_model
from prefmh_web.accounts.roles import make_researcher
owner, _ = get_user_model().objects.get_or_create(username="ada")
make_researcher(owner)
for fields in json.loads(sys.argv[1]):
    Endpoint.objects.create(owner=owner, model="m", dialect="vllm", **fields)
"""


@dataclass(frozen=True)
class Event:
    """A line of the servers' log; `what` is arrived or ended, and `status` 0 where no reply came to its end."""

    at: float
    what: str
    request: int
    fault: str
    status: int = 0


class FaultyModels:
    """The servers of some plans, in one process.

    Args:
        folder: where they write what they print and their log.
        plans: by name; see `faulty_model_server.Server`.
    """

    def __init__(self, folder: Path, plans: dict[str, dict[str, Any]]) -> None:
        self._log, self.names, self._port = folder / "asked.jsonl", list(plans), port_from(24_000)
        plans = {name: {"scores": SCORES} | plan for name, plan in plans.items()}
        command = [sys.executable, "-m", "tests.support.faulty_model_server", "--port", str(self._port)]
        command += ["--log", str(self._log), "--plans", json.dumps(plans)]
        self._process = Process("models", command, {"PATH": ""}, folder, cwd=ROOT)

    def start(self) -> None:
        self._process.start()
        wait_for(self._answers, "the model servers answer")

    def stop(self) -> None:
        """End it, which it must not have done by itself."""
        exits = self._process.exits_of_its_own()
        self._process.kill()
        assert not exits, exits

    def register(self, site: Installation, **fields: int) -> None:
        """Make an endpoint for each server, of the server's name."""
        wanted = [{"name": name, "base_url": self.url(name), **fields} for name in self.names]
        site.run("-", json.dumps(wanted), script=_REGISTER)

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._port}/{name}/v1"

    def count(self, name: str, what: str) -> int:
        """Return how many votes have arrived, are `now` under way, or were answered."""
        found: dict[str, dict[str, int]] = httpx.get(f"http://127.0.0.1:{self._port}/figures", timeout=60).json()
        return found[name].get(what, 0)

    def events(self, name: str) -> list[Event]:
        """Return what a server has logged, in order of time."""
        lines = [json.loads(line) for line in self._log.read_text().splitlines()]
        return [
            Event(line["at"], line["what"], line["request"], line["fault"], line.get("status", 0))
            for line in lines
            if line["server"] == name
        ]

    def answered_since(self, name: str, at: float) -> int:
        """Return how many votes were answered since a time."""
        return sum(event.status == 200 and event.at >= at for event in self.events(name))

    def _answers(self) -> bool:
        try:
            return httpx.get(f"http://127.0.0.1:{self._port}/figures").is_success
        except httpx.HTTPError:
            return False


def judged_by(endpoint: str, votes: str = "sampled", budget: int = 3) -> dict[str, Any]:
    """Return a judge of a recipe."""
    return {"question": QUESTION, "budget": budget, "source": {"kind": "model", "endpoint": endpoint, "votes": votes}}


@dataclass(frozen=True)
class Bursts:
    """The requests that met a fault, in groups with a rest between two: their numbers, and the rests' lengths.

    A rest is counted from the first failure of a group to the first request of the next one.
    """

    sizes: list[int]
    rests_s: list[float]


def bursts(events: list[Event], fault: str, apart_s: float) -> Bursts:
    """Return the groups of requests that met a fault.

    Args:
        apart_s: requests that come so long after the one before begin a new group.
    """
    arrivals = [event for event in events if event.what == "arrived" and event.fault == fault]
    ends = {event.request: event.at for event in events if event.what == "ended" and event.fault == fault}
    groups: list[list[Event]] = []
    for event in arrivals:
        if not groups or event.at - groups[-1][-1].at > apart_s:
            groups.append([])
        groups[-1].append(event)
    first_ends = [min(ends.get(event.request, event.at) for event in group) for group in groups]
    rests = [group[0].at - end for group, end in zip(groups[1:], first_ends, strict=False)]
    return Bursts([len(group) for group in groups], rests)


class Desk:
    """The researcher in a browser, who is signed in."""

    def __init__(self, site: Installation) -> None:
        self._client = httpx.Client(base_url=site.urls[0], follow_redirects=True, timeout=60)
        self._client.get(site.sign_in_path())

    def close(self) -> None:
        self._client.close()

    def page(self, campaign: int) -> str:
        """Return a campaign's page."""
        return self._client.get(f"/campaigns/{campaign}/").raise_for_status().text

    def file(self, campaign: int, name: str) -> bytes:
        """Return a file of a campaign's export."""
        return self._client.get(f"/campaigns/{campaign}/files/{name}").raise_for_status().content

    def press(self, campaign: int, button: str) -> str:
        """Press a button of a campaign's page, by its address; return the page that follows."""
        path = f"/campaigns/{campaign}/{button}/"
        token = self.page(campaign).split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
        headers = {"Referer": str(self._client.base_url)}
        return self._client.post(path, data={"csrfmiddlewaretoken": token}, headers=headers).raise_for_status().text
