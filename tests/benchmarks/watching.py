"""What it takes to open a campaign's page and to follow it, in a large campaign.

    python -m tests.benchmarks.watching [--page convergence|overview] [--chains 200] [--votes 100000] [--budget 3]
        [--objects 20000] [--seconds 60] [--looks 5] [--json]

A running campaign is written into an empty SQLite database and served by a process of its own, in which somebody votes
about ten times a second. From outside, the page is opened, and then followed over its socket.

    first      seconds to open the page the first time, with nothing in memory and no object measured
    measured   seconds until every object that a chain has been at is measured
    again      median seconds to open it later, all objects measured
    page       size of the page, kB
    follow     what the socket sends in a minute before it is compressed, kB; every message counts
    messages   how many these are in a minute

Sizes depend on the campaign alone, times on the machine and on what else runs there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

from tests.benchmarks.export import empty_database
from tests.support.sockets import open_socket

KB = 1000
# What stands behind the campaign's own address, for the page as for its socket.
PAGES = {"convergence": "convergence/", "overview": ""}
_VOTERS, _PAUSE_S = 4, 0.1
_LONGEST_S = 300
# Until the chains have their first pairs, which a server that has just started draws.
_SETTLING_S = 15


@dataclass(frozen=True)
class Watched:
    """A campaign that is being served, and the Cookie header of its owner."""

    url: str
    campaign: int
    cookies: str

    def opened(self, page: str) -> tuple[float, bytes]:
        """Open a page; return the seconds that it took, and the page."""
        asked = urllib.request.Request(f"{self.url}/campaigns/{self.campaign}/{page}", headers={"Cookie": self.cookies})
        began = time.perf_counter()
        with urllib.request.urlopen(asked) as answer:
            body = answer.read()
        return time.perf_counter() - began, body

    def followed(self, page: str, seconds: float) -> list[int]:
        """Follow a page; return the bytes of each message that came in this time."""
        sizes, ends = [], time.monotonic() + seconds
        with open_socket(self.url, f"/ws/campaigns/{self.campaign}/{page}", self.cookies) as socket:
            while (left := ends - time.monotonic()) > 0:
                with contextlib.suppress(TimeoutError):
                    sizes.append(len(socket.recv(timeout=left).encode()))
        return sizes


@contextlib.contextmanager
def watched(chains: int, votes: int, budget: int, objects: int) -> Iterator[Watched]:
    """Yield a campaign of so many chains and votes while a process of its own serves it and people vote."""
    numbers = map(str, (chains, votes, budget, objects))
    command = [sys.executable, "-m", "tests.benchmarks.watching", "--serve", *numbers]
    with empty_database("sqlite") as environment:
        serving = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        try:
            line = serving.stdout.readline()
            if not line:
                raise SystemExit("the campaign could not be served; see above")
            yield Watched(**json.loads(line))
        finally:
            serving.stdin.close()
            serving.wait(60)


def serve(chains: int, votes: int, budget: int, objects: int) -> None:
    """Make the campaign, serve it until the standard input ends, and vote meanwhile."""
    import django

    django.setup()
    from django.core.management import call_command
    from django.test import Client

    call_command("migrate", verbosity=0)
    from prefmh_web.accounts.roles import make_researcher
    from prefmh_web.loading import load_everything
    from tests.benchmarks.export_record import make_record
    from tests.support.stack import LiveServer

    campaign = make_record(votes, budget, more_steps=10 * votes // chains, chains=chains, objects=objects)
    make_researcher(campaign.owner)
    client = Client()
    client.force_login(campaign.owner)
    load_everything()
    server = LiveServer()
    server.start()
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in client.cookies.items())
    print(json.dumps({"url": server.url, "campaign": campaign.pk, "cookies": cookies}), flush=True)
    has_ended = threading.Event()
    voting = threading.Thread(target=_vote, args=(campaign.pk, has_ended))
    voting.start()
    sys.stdin.read()
    has_ended.set()
    voting.join()
    server.stop()


def _vote(campaign_id: int, has_ended: threading.Event) -> None:
    from prefmh_web.campaigns.engine import leases
    from prefmh_web.campaigns.models import Annotator, Campaign, Side

    campaign = Campaign.objects.get(pk=campaign_id)
    people = [Annotator.objects.create(campaign=campaign) for _ in range(_VOTERS)]
    sides = list(Side)
    given = 0
    while not has_ended.wait(_PAUSE_S):
        if lease := leases.take(people[given % _VOTERS]):
            leases.answer(lease.key, lease.annotator, sides[given // _VOTERS % 2], 1000)
        given += 1


def measure(page: str, seconds: float, looks: int, campaign: Watched) -> dict[str, float]:
    """Return the figures of one page; see the module."""
    time.sleep(_SETTLING_S)
    first, _ = campaign.opened(page)
    measured = _until_measured(campaign) if page == PAGES["convergence"] else 0.0
    found = [campaign.opened(page) for _ in range(looks)]
    sizes = campaign.followed(page, seconds)
    return {
        "first": first,
        "measured": measured,
        "again": statistics.median(took for took, _ in found),
        "page": len(found[-1][1]) / KB,
        "follow": sum(sizes) / KB * 60 / seconds,
        "messages": len(sizes) * 60 / seconds,
    }


def _until_measured(campaign: Watched) -> float:
    began = time.monotonic()
    while b"objects are measured" in campaign.opened(PAGES["convergence"])[1]:
        if time.monotonic() - began > _LONGEST_S:
            raise SystemExit(f"not every object was measured within {_LONGEST_S} seconds")
        time.sleep(1)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", choices=PAGES, default="convergence")
    for name, default in (("chains", 200), ("votes", 100_000), ("budget", 3), ("objects", 20_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--looks", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--serve", nargs=4, type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(*options.serve)
        return
    size = {name: getattr(options, name) for name in ("chains", "votes", "budget", "objects")}
    with watched(**size) as campaign:
        found = measure(PAGES[options.page], options.seconds, options.looks, campaign)
    if options.json:
        print(json.dumps({"page": options.page, **size, "figures": found}))
        return
    for name, value in found.items():
        print(f"{name:>10} {value:9.2f}")


if __name__ == "__main__":
    main()
