"""How much of the wait for a slow model is hidden by writing the next proposals while people vote.

    python -m tests.benchmarks.prefetch [--writing 2] [--think 4] [--seconds 20]

A language model behind a server takes two seconds for a batch, however large. People on sockets think for an
exponential time with a mean of four seconds and toss a coin; each campaign runs twice, with the same people:

    as it is      while people vote on a step, both proposals that the next may need are written (`drawing.prefetch`)
    only asked    that half of the task is left out: a proposal is written once the step before is decided

    wait          from a person's vote to their next pair, in seconds, over all votes
    between       from a step's verdict to the opening of the chain's next step; mean seconds
    hidden        the share of that which writing ahead takes away
    foreseen      steps whose proposal was there when the step before was decided
    texts         that the model wrote for each step: what writing ahead costs

With one vote a pair and a chain for each person nobody has another pair to turn to, so that people wait for all of it.
Who thinks for less than the model takes waits for the rest: the best that foresight can do there is printed above. With
more votes a pair people also wait for each other.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tests.benchmarks.load_crowd import Crowd, Seat
from tests.benchmarks.own_site import own_site, researcher
from tests.support.scripted_server import Script, Writer, scripted_server, texts_written

# People, chains, votes a pair.
SCENES = ((6, 6, 1), (6, 12, 1), (12, 4, 3))
LIMIT = 12
SETTLE_S = 6
_LONGEST = 100_000


@dataclass(frozen=True)
class Reading:
    """What stood in the record, and at the model's server, at one moment."""

    at: float
    steps: int
    foreseen: int
    written: int

    @classmethod
    def of(cls, campaign, script: Script) -> Reading:
        from django.db.models import Sum

        chains = campaign.chains.aggregate(steps=Sum("step"), foreseen=Sum("prefetched"))
        return cls(time.time(), **chains, written=texts_written(script))


@dataclass(frozen=True)
class Found:
    """What one run showed; times in seconds."""

    waits: np.ndarray
    between: np.ndarray
    foreseen: float
    written: float


def run(owner, script: Script, scene: tuple[int, int, int], options: argparse.Namespace) -> Found:
    """Let people vote on a campaign of its own, and return what was seen once all of them had begun."""
    from prefmh_web.campaigns import lifecycle
    from prefmh_web.campaigns.lifecycle import drafts
    from tests.benchmarks.load_campaign import session_of_somebody_new
    from tests.support.stack import LiveServer, make_recipe, wait_until_idle

    people, chains, budget = scene
    recipe = make_recipe(
        space={"kind": "model-texts", "model": "A model", "prompts": ["Write about the sea."], "limit": LIMIT},
        kernel={"kind": "suffix"},
        judges=[{"question": "Which is better?", "budget": budget}],
        chains=chains,
        steps=_LONGEST,
    )
    campaign = drafts.create(owner=owner, name="Written", recipe=recipe)
    lifecycle.start(campaign)
    wait_until_idle()
    site = LiveServer()
    site.start()
    try:
        invitation = campaign.invitations.get()
        keys = [session_of_somebody_new(invitation) for _ in range(people)]
        path = invitation.get_absolute_url()
        crowd = Crowd([Seat(site.url, path, f"prefmh_session={key}") for key in keys], options.think, seed=1)
        before, after = asyncio.run(_vote(crowd, options.seconds, lambda: Reading.of(campaign, script)))
    finally:
        lifecycle.pause(campaign)
        site.stop()
    return _found(campaign, crowd, before, after)


async def _vote(crowd: Crowd, seconds: float, read: Callable[[], Reading]) -> tuple[Reading, Reading]:
    async with crowd:
        await asyncio.sleep(SETTLE_S)
        before = await asyncio.to_thread(read)
        await asyncio.sleep(seconds)
        return before, await asyncio.to_thread(read)


def _found(campaign, crowd: Crowd, before: Reading, after: Reading) -> Found:
    from prefmh_web.campaigns.models import Comparison

    steps = Comparison.objects.filter(chain__campaign=campaign).order_by("chain", "step")
    moments = steps.values_list("chain", "opened_at", "decided_at")
    between = [
        (opened - decided).total_seconds()
        for (chain, _, decided), (same, opened, _) in itertools.pairwise(moments)
        if chain == same and before.at <= decided.timestamp() < after.at
    ]
    waits = [seconds for sent, seconds in crowd.seen.waited if before.at <= sent < after.at]
    opened = after.steps - before.steps
    return Found(
        np.array(waits),
        np.array(between),
        (after.foreseen - before.foreseen) / opened,
        (after.written - before.written) / opened,
    )


@contextlib.contextmanager
def only_when_asked() -> Iterator[None]:
    """Leave out what the application writes ahead."""

    from prefmh_web.campaigns.proposals import drawing

    foresee, drawing.prefetch = (
        drawing.prefetch,
        lambda campaign_id: None,
    )
    try:
        yield
    finally:
        drawing.prefetch = foresee


def report(scene: tuple[int, int, int], name: str, found: Found, hidden: float | None) -> None:
    people, chains, budget = scene
    half, most = np.quantile(found.waits, (0.5, 0.9))
    share = "" if hidden is None else f"{hidden:.0%}"
    print(
        f"{people:>6}{chains:>8}{budget:>7}  {name:<12}{len(found.waits):>6}{found.waits.mean():>7.2f}{half:>7.2f}"
        f"{most:>7.2f}{found.between.mean():>9.2f}{share:>8}{found.foreseen:>10.0%}{found.written:>7.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--writing", type=float, default=2.0, help="seconds of a batch")
    parser.add_argument("--think", type=float, default=4.0, help="mean seconds of a vote")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each run, once all have begun")
    options = parser.parse_args()
    with own_site(), scripted_server(Writer(lambda: time.sleep(options.writing))) as script:
        from prefmh_web.endpoints.dialects import Dialect
        from prefmh_web.endpoints.models import Endpoint

        owner = researcher()
        Endpoint.objects.create(
            owner=owner, name="A model", base_url=script.url, model="slow", dialect=Dialect.VLLM, concurrency=64
        )
        # The mean of max(0, writing - T), T exponential.
        least = options.writing - options.think * (1 - math.exp(-options.writing / options.think))
        print(
            f"a batch takes {options.writing:g} s, a vote {options.think:g} s on average: with one vote a pair, "
            f"the best is {least:.2f} s, {1 - least / options.writing:.0%} hidden"
        )
        print(f"{'':>35}{'wait':>14}")
        print(
            f"{'people':>6}{'chains':>8}{'votes':>7}  {'written':<12}{'of':>6}{'mean':>7}{'p50':>7}{'p90':>7}"
            f"{'between':>9}{'hidden':>8}{'foreseen':>10}{'texts':>7}"
        )
        for scene in SCENES:
            with only_when_asked():
                bare = run(owner, script, scene, options)
            report(scene, "only asked", bare, None)
            found = run(owner, script, scene, options)
            report(scene, "as it is", found, 1 - found.between.mean() / bare.between.mean())


if __name__ == "__main__":
    main()
