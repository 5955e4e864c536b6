"""People vote while Redis or the task broker stands still: how long they wait for an answer, beside the usual.

    python -m tests.benchmarks.stall [--broker redis|rabbitmq] [--frozen redis|network|broker] [--seconds 60]
        [--votes-per-s 20] [--sockets 40] [--chains 600] [--json FILE]

Starts PostgreSQL, Redis, a web process, a worker and beat of its own, and a RabbitMQ where it is the broker. After a
usual time of a third of `--seconds` the server is stopped where it stands (SIGSTOP); with `--frozen network` the
connections to Redis stay open and carry nothing. The campaign has more open pairs than can be used up.

    acknowledged   from sending a vote to the screen that answers it, seen by the voter
    join, page     opening the invitation and joining; loading the voting page
    readyz         the probe's answer; doctor is the whole command, and beside it the same before, without a fault
    goes on        from SIGCONT until every chain that was without a pair has one, or is past it

The targets are those of the issue: every vote acknowledged, its p95 under twice the usual, join and page at most 3 s,
readyz and doctor at most 2 s. All of it runs on the machine that it measures: read the times with the load average in
mind, and doctor's beside that of a command that does nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx

from tests.benchmarks.load_crowd import Crowd
from tests.benchmarks.load_floor import quantiles
from tests.benchmarks.load_scenes import busy
from tests.benchmarks.load_stage import Stage
from tests.support.rabbitmq import RabbitMQ
from tests.support.relay import Relay
from tests.support.sockets import cookies_after_joining

SETTLE_S = 5
ASK_EVERY_S = 5
PATIENCE_S = 120
# The sweep's clock, and what a worker takes to draw and store one proposal when the machine is busy.
SWEEP_S, PROPOSAL_S = 5, 0.02
UNOPENED = """
    SELECT h.id, h.step FROM campaigns_chain h WHERE h.campaign_id = %s
    AND NOT EXISTS (SELECT 1 FROM campaigns_comparison c WHERE c.chain_id = h.id AND c.verdict IS NULL)
"""


@contextlib.contextmanager
def staged(options: argparse.Namespace) -> Iterator[tuple[Stage, Callable[[], None], Callable[[], None]]]:
    """Start everything; yield the stage and the two calls that freeze and thaw what is to stand still."""
    with contextlib.ExitStack() as ends:
        stage = Stage(Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="prefmh-stall-"))), webs=1)
        ends.callback(stage.stop)
        relay = Relay([stage.redis.port])
        frozen = {"redis": stage.redis, "network": relay, "broker": stage.redis}[options.frozen]
        if options.frozen == "network":
            relay.start()
            ends.callback(relay.stop)
            stage.variables["REDIS_URL"] = f"redis://127.0.0.1:{relay.port}/0"
        if options.broker == "rabbitmq":
            broker = RabbitMQ()
            ends.callback(broker.remove)
            broker.start()
            stage.variables["CELERY_BROKER_URL"] = broker.url
            frozen = broker if options.frozen == "broker" else frozen
        stage.start()
        ends.callback(frozen.thaw)
        yield stage, frozen.freeze, frozen.thaw


def seconds_of(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def asked_meanwhile(stage: Stage, link: str) -> dict[str, float]:
    """Return how long somebody new and the probes wait, once."""
    site = stage.urls[0]
    cookies: list[str] = []
    return {
        "join": seconds_of(lambda: cookies.append(cookies_after_joining(link))),
        "page": seconds_of(
            lambda: httpx.get(f"{link}vote/", headers={"Cookie": cookies[0]}, timeout=PATIENCE_S).raise_for_status()
        ),
        "readyz": seconds_of(lambda: httpx.get(f"{site}/readyz", timeout=PATIENCE_S)),
        "doctor": seconds_of(lambda: stage.run("manage.py", "doctor", check=False)),
    }


async def ask_again_and_again(stage: Stage, link: str, seconds: float) -> dict[str, float]:
    """Do so for a while; return the longest time of each."""
    longest: dict[str, float] = {}
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        found = await asyncio.to_thread(asked_meanwhile, stage, link)
        longest = {name: max(took, longest.get(name, 0.0)) for name, took in found.items()}
        await asyncio.sleep(min(ASK_EVERY_S, max(0.0, left)))
    return longest


async def measure(stage: Stage, options: argparse.Namespace, freeze, thaw) -> dict:
    [campaign] = stage.make(busy(options.sockets, options.chains))
    link = f"{stage.urls[0]}{campaign.seats[0].path}"
    nothing_s = seconds_of(lambda: stage.run("manage.py", "shell", "-c", "pass"))
    crowd = Crowd(campaign.seats, options.sockets / options.votes_per_s, seed=1)
    async with crowd:
        await asyncio.sleep(SETTLE_S)
        marks = [time.time()]
        usual = await ask_again_and_again(stage, link, options.seconds / 3)
        marks.append(time.time())
        freeze()
        try:
            meanwhile = await ask_again_and_again(stage, link, options.seconds)
            marks.append(time.time())
            # Answers to what was sent last are still on their way.
            await asyncio.sleep(SETTLE_S)
            waiting = await asyncio.to_thread(stage.query, UNOPENED, campaign.number)
        finally:
            thaw()
        went_on_s = await asyncio.to_thread(seconds_of, lambda: wait_until_all_go_on(stage, campaign.number, waiting))
        sent, acknowledged = crowd.seen.sent, len(crowd.seen.acknowledged)
    stored = stage.query("SELECT count(*), count(DISTINCT key) FROM campaigns_vote")[0]
    return {
        "broker": options.broker,
        "frozen": options.frozen,
        "seconds": options.seconds,
        "load_average": os.getloadavg()[0],
        "usual_ms": {"votes_per_s": rate(crowd, *marks[:2]), **percentiles(crowd, *marks[:2])},
        "stall_ms": {"votes_per_s": rate(crowd, *marks[1:]), **percentiles(crowd, *marks[1:])},
        "unanswered": max(0, sent - acknowledged - options.sockets),
        "lost_sockets": crowd.seen.lost,
        "acknowledged": acknowledged,
        "stored": stored[0],
        "doubled": stored[0] - stored[1],
        "usual_s": usual,
        "stall_s": meanwhile,
        "command_that_does_nothing_s": nothing_s,
        "chains_without_pair": len(waiting),
        "goes_on_s": went_on_s,
    }


def wait_until_all_go_on(stage: Stage, campaign: int, waiting: list[tuple]) -> None:
    until = time.monotonic() + PATIENCE_S
    while set(waiting) & set(stage.query(UNOPENED, campaign)):
        if time.monotonic() > until:
            raise RuntimeError(f"chains stand still {PATIENCE_S} s after the server went on")
        time.sleep(0.1)


def rate(crowd: Crowd, start: float, end: float) -> float:
    return len(crowd.seen.answers_between(start, end)) / (end - start)


def percentiles(crowd: Crowd, start: float, end: float) -> dict[str, float]:
    found = quantiles(crowd.seen.answers_between(start, end))
    return {name: 1000 * float(seconds) for name, seconds in zip(("p50", "p95", "p99"), found, strict=True)}


def verdicts(found: dict) -> dict[str, bool]:
    """Return, for each target of the issue, whether it is met."""
    stall = found["stall_s"]
    return {
        "every vote acknowledged": not (found["unanswered"] or found["lost_sockets"] or found["doubled"]),
        "p95 under twice the usual": found["stall_ms"]["p95"] < 2 * found["usual_ms"]["p95"],
        "join and page within 3 s": max(stall["join"], stall["page"]) <= 3,
        "readyz within 2 s": stall["readyz"] <= 2,
        "doctor within 2 s": stall["doctor"] <= 2,
        "every chain goes on within a sweep": found["goes_on_s"] <= SWEEP_S + found["chains_without_pair"] * PROPOSAL_S,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broker", choices=("redis", "rabbitmq"), default="redis")
    parser.add_argument("--frozen", choices=("redis", "network", "broker"), default="redis")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--votes-per-s", type=float, default=20)
    parser.add_argument("--sockets", type=int, default=40)
    parser.add_argument("--chains", type=int, default=600)
    parser.add_argument("--json", type=Path, help="write what was found there as well")
    options = parser.parse_args()
    with staged(options) as (stage, freeze, thaw):
        found = asyncio.run(measure(stage, options, freeze, thaw))
    found["targets"] = verdicts(found)
    text = json.dumps(found, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
