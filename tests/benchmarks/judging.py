"""How fast a model judges, against a model server of which all is known: what it could give, and what was asked of it.

    python -m tests.benchmarks.judging [--latency 1] [--at-once 256] [--chains 400] [--seconds 60]
        [--all-at-once] [--json FILE]

Starts PostgreSQL, Redis, a web process, a worker, beat and `manage.py judges` of its own, and the server
(`judging_stub.py`), which answers each vote after `--latency` seconds, `--at-once` at a time, and refuses the rest. A
campaign of so many chains has one judge of N votes.

    steps/s         decided steps about which the model was asked
    requests/s      votes that the server gave, beside its ceiling: at-once / latency
    ms a request    processor time of all processes, PostgreSQL and Redis included, for each of these
    per vote        requests for each vote that counts; more than one is waste
    not needed      votes that came after their step was settled, and their share: with --all-at-once, what that wastes
    refused         requests that the server refused, in all

The processor time of the model server is not counted. All of it runs on one machine, so a server that is at its ceiling
leaves less of the machine to the application.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx

from tests.benchmarks import load_meters
from tests.benchmarks.load_stage import Stage
from tests.support.installations import ROOT, Process, wait_for
from tests.support.models import port_from

_SETUP = """
import json, sys
import django
django.setup()
from django.contrib.auth import get_user_model
from prefmh_web.campaigns import lifecycle
from prefmh_web.endpoints.models import Endpoint
from tests.support.campaigns import make_draft, make_config
wanted = json.loads(sys.argv[1])
owner = get_user_model().objects.create(username="ada")
Endpoint.objects.create(owner=owner, name="stub", base_url=wanted["url"], model="m", dialect="vllm",
                        concurrency=wanted["at_once"])
judge = {"question": "Which is darker?", "votes": wanted["votes"], "source": wanted["source"]}
lines = [f"On day {day} the sea was grey and nobody came to the house.\\n" for day in range(200)]
config = make_config(judges=[judge], chains=wanted["chains"], steps=100_000)
campaign = make_draft(owner, file="text\\n" + "".join(lines), config=config)
lifecycle.start(campaign)
print(json.dumps(campaign.pk))
"""
_ASKED_STEPS = """
    SELECT count(*) FROM campaigns_comparison c
    WHERE c.decided_at >= to_timestamp(%s) AND EXISTS (SELECT 1 FROM campaigns_vote v WHERE v.comparison_id = c.id)
"""
VOTES = "SELECT count(*) FROM campaigns_vote WHERE number IS NOT NULL AND cast_at >= to_timestamp(%s)"
_NOT_NEEDED = "SELECT count(*) FROM campaigns_vote WHERE number IS NULL AND cast_at >= to_timestamp(%s)"
_WARM_UP_S = 15


@dataclass(frozen=True)
class Found:
    """One run's figures; `ms_a_request` by kind of process."""

    commit: str
    chains: int
    votes_a_judge: int
    latency_s: float
    at_once: int
    seconds: float
    asked_steps_per_s: float
    requests_per_s: float
    ceiling_per_s: float
    most_at_once: int
    refused: int
    requests_per_vote: float
    all_at_once: bool
    votes_not_needed: int
    share_not_needed: float
    ms_a_request: dict[str, float]

    @property
    def share(self) -> float:
        """Which share of its ceiling the server gave."""
        return self.requests_per_s / self.ceiling_per_s


class JudgingStage(Stage):
    """A stage with a process that asks the model server, and does nothing else."""

    asks: Process

    def __init__(self, folder: Path, webs: int) -> None:
        super().__init__(folder, webs)
        self.worker_queues = "default,files"

    def ask(self, calls: int) -> None:
        """Start the process that asks, with so many turns under way at a time."""
        self.asks = self.judges(calls)
        self.launch(self.asks)

    def _roots(self) -> dict[str, list[int]]:
        return super()._roots() | {"judges": [self.asks._process.pid]}


@contextlib.contextmanager
def staged(options: argparse.Namespace) -> Iterator[tuple[Stage, str]]:
    """Start everything; yield the stage and the address of the model server."""
    with contextlib.ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="prefmh-judging-")))
        port = port_from(32_000)
        command = ["-m", "uvicorn", "tests.benchmarks.judging_stub:application", "--port", str(port)]
        environment = {"LATENCY_S": str(options.latency), "AT_ONCE": str(options.at_once), "PATH": ""}
        stub = Process("stub", [sys.executable, *command, "--no-access-log"], environment, folder, cwd=ROOT)
        stub.start()
        ends.callback(stub.kill)
        wait_for(lambda: is_answering(f"http://127.0.0.1:{port}"), "the model server answers")
        stage = JudgingStage(folder, webs=1)
        stage.variables |= {"ENDPOINT_ALLOWED_HOSTS": "127.0.0.1", "ENDPOINT_ALLOW_PRIVATE": "127.0.0.1/32"}
        ends.callback(stage.stop)
        stage.start()
        stage.ask(options.calls)
        yield stage, f"http://127.0.0.1:{port}"


def is_answering(url: str) -> bool:
    """Say whether the server of `judging_stub.py` is there."""
    with contextlib.suppress(httpx.HTTPError):
        return httpx.get(f"{url}/figures").is_success
    return False


def figures(url: str) -> dict[str, int]:
    """Return what the model server was asked so far."""
    found: dict[str, int] = httpx.get(f"{url}/figures", timeout=60).json()
    return found


def measure(stage: Stage, url: str, options: argparse.Namespace) -> Found:
    """Let the model judge, and return what that took."""
    source = {"kind": "model", "endpoint": "stub"} | ({"all_at_once": True} if options.all_at_once else {})
    wanted = {"url": f"{url}/v1", "chains": options.chains, "votes": options.votes, "at_once": options.at_once}
    wanted["source"] = source
    stage.run("-", json.dumps(wanted), script=_SETUP)
    time.sleep(_WARM_UP_S)
    before, spent = figures(url), stage.processor_seconds()
    began = time.time()
    time.sleep(options.seconds)
    after, spent_then = figures(url), stage.processor_seconds()
    seconds = time.time() - began
    asked_steps, votes = stage.query(_ASKED_STEPS, began)[0][0], stage.query(VOTES, began)[0][0]
    not_needed = stage.query(_NOT_NEEDED, began)[0][0]
    requests = after["votes"] - before["votes"]
    return Found(
        commit=load_meters.commit(),
        chains=options.chains,
        votes_a_judge=options.votes,
        latency_s=options.latency,
        at_once=options.at_once,
        seconds=seconds,
        asked_steps_per_s=asked_steps / seconds,
        requests_per_s=requests / seconds,
        ceiling_per_s=options.at_once / options.latency,
        most_at_once=after["most"],
        refused=after["refused"],
        requests_per_vote=requests / max(votes, 1),
        all_at_once=options.all_at_once,
        votes_not_needed=not_needed,
        share_not_needed=not_needed / max(votes + not_needed, 1),
        ms_a_request={name: 1000 * (spent_then[name] - spent[name]) / max(requests, 1) for name in spent},
    )


def report(found: Found) -> None:
    by_process = ", ".join(f"{name} {ms:.2f}" for name, ms in found.ms_a_request.items())
    print(f"{found.chains} chains, N = {found.votes_a_judge}, {found.latency_s:g} s a vote, commit {found.commit[:7]}")
    print(f"  steps/s       {found.asked_steps_per_s:.1f}")
    print(f"  requests/s    {found.requests_per_s:.1f} of {found.ceiling_per_s:.0f} ({found.share:.0%})")
    print(f"  at once       {found.most_at_once} of {found.at_once}, {found.refused} refused")
    print(f"  ms a request  {sum(found.ms_a_request.values()):.2f} ({by_process})")
    print(f"  per vote      {found.requests_per_vote:.3f}")
    mode = "asked for all at once" if found.all_at_once else "asked for as many as can be needed"
    print(f"  not needed    {found.votes_not_needed} votes ({found.share_not_needed:.1%}), {mode}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--latency", type=float, default=1.0, help="seconds that the server takes over a vote")
    parser.add_argument("--at-once", type=int, default=256, help="votes that it takes at a time")
    parser.add_argument("--chains", type=int, default=400)
    parser.add_argument("--calls", type=int, default=256, help="turns under way at a time")
    parser.add_argument("--votes", type=int, default=3, help="N of the judge")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--all-at-once", action="store_true", help="ask for all N votes of a step at once")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    with staged(options) as (stage, url):
        found = measure(stage, url, options)
    report(found)
    if options.json:
        options.json.write_text(json.dumps(asdict(found) | {"share_of_ceiling": found.share}, indent=1))


if __name__ == "__main__":
    main()
