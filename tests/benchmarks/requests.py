"""Requests that a campaign judged by models takes, against asking for every vote at once: N for each judge and step.

    python -m tests.benchmarks.requests [--chains 4] [--steps 15] [--temperature 1]

Whole campaigns over twelve texts, through the application's own doors, against a server whose preference is known:
each judge prefers x' with probability sigma((s(x') - s(x)) / temperature). Steps whose proposal is where the chain
stands ask nobody and are left out. What is compared:

    all at once   N requests a judge and step, whatever the votes say. The application cannot be told to ask so, but
                  the number is exact: stopping early changes no verdict, so that the very same steps would ask so
    stop early    one request a vote, and no more votes asked for at once than can be needed
    p, ...        votes drawn from log-probabilities: one request for each order of presentation that occurs,
                  "two judges" (one for each order, of half the budget), "random" or "balanced"

Seeds of sampled votes are of the moment, as in the application; rows of log-probabilities come out alike every time.
"""

from __future__ import annotations

import argparse
import itertools
import math
from dataclasses import dataclass

from tests.benchmarks.own_site import own_site, researcher
from tests.support.scripted_server import KnownJudge, Script, scripted_server

QUESTIONS = ("Which is darker?", "Which is kinder?")
BUDGETS = (2, 4, 8)
WAYS = {
    "stop early": ("sampled", "random"),
    "p, two judges": ("log-probabilities", "both"),
    "p, random": ("log-probabilities", "random"),
    "p, balanced": ("log-probabilities", "balanced"),
}


@dataclass(frozen=True)
class Spent:
    """What one campaign took. Steps are those that asked somebody."""

    steps: int
    accepted: int
    votes: int
    requests: int
    at_once: int
    """Requests that the same steps take where every vote is asked for."""

    def per_accepted(self, requests: int) -> float:
        """Return requests for each accepted step."""
        return requests / self.accepted if self.accepted else math.inf


def run(owner, script: Script, way: str, budget: int, judges: int, options: argparse.Namespace) -> Spent:
    """Bring a campaign to its end and return what it took."""
    from django.db.models import Sum

    from prefmh_web.campaigns import lifecycle
    from prefmh_web.campaigns.models import Campaign, Vote
    from tests.support.stack import make_draft, make_recipe, wait_until_idle

    votes, order = WAYS[way]
    source = {"kind": "model", "endpoint": "A model", "temperature": options.temperature, "votes": votes}
    halves = ("proposal-first", "proposal-second") if order == "both" else (order,)
    asked = [
        {"question": question, "budget": budget // len(halves), "order": half, "source": source}
        for question in QUESTIONS[:judges]
        for half in halves
    ]
    campaign = make_draft(owner, recipe=make_recipe(judges=asked, chains=options.chains, steps=options.steps))
    before = len(script.requests)
    lifecycle.start(campaign)
    wait_until_idle(300)
    campaign.refresh_from_db()
    if campaign.status != Campaign.Status.FINISHED:
        raise RuntimeError(f"the campaign did not finish; it is {campaign.status}")
    total = campaign.chains.aggregate(steps=Sum("moves"), accepted=Sum("accepted"), votes=Sum("votes"))
    if late := Vote.objects.filter(judge__campaign=campaign, number__isnull=True).count():
        raise RuntimeError(f"{late} votes were asked for in vain")
    return Spent(**total, requests=len(script.requests) - before, at_once=total["steps"] * budget * judges)


def report(way: str, budget: int, judges: int, spent: Spent) -> None:
    print(
        f"{judges:>6}{budget:>4}  {way:<14}{spent.accepted / spent.steps:>9.0%}{spent.votes / spent.steps:>8.2f}"
        f"{spent.requests / spent.steps:>10.2f}{spent.per_accepted(spent.requests):>11.2f}"
        f"{spent.per_accepted(spent.at_once):>14.2f}{spent.requests / spent.at_once:>8.2f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--steps", type=int, default=15, help="of each chain")
    parser.add_argument("--temperature", type=float, default=1.0, help="of the votes")
    options = parser.parse_args()
    with own_site():
        from prefmh_web.endpoints.dialects import Dialect
        from prefmh_web.endpoints.models import Endpoint
        from tests.support.stack import TEXTS

        lines = [line.rsplit(",", 1)[0] for line in TEXTS.splitlines()[1:]]
        scores = {line: (place - len(lines) / 2) / 4 for place, line in enumerate(lines)}
        with scripted_server(KnownJudge(scores)) as script:
            owner = researcher()
            Endpoint.objects.create(
                owner=owner, name="A model", base_url=script.url, model="known", dialect=Dialect.VLLM
            )
            print(f"{options.chains} chains of {options.steps} steps each")
            print(f"{'':>35}{'each step':>18}{'each accepted step':>25}")
            print(
                f"{'judges':>6}{'N':>4}  {'votes':<14}{'accepted':>9}{'votes':>8}{'requests':>10}{'requests':>11}"
                f"{'all at once':>14}{'ratio':>8}"
            )
            for judges, budget, way in itertools.product((1, 2), BUDGETS, WAYS):
                report(way, budget, judges, run(owner, script, way, budget, judges, options))


if __name__ == "__main__":
    main()
