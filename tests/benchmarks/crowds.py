"""How long people wait on a new campaign that was set up with the form's own values, and what becomes of their answers.

    python -m tests.benchmarks.crowds [--think 6] [--kernel 5] [--reading 20] [--votes 10] [--json FILE]

People come to a study, read, and then vote through real sockets: ten at once, and sixty within two minutes. A choice
takes a log-normal time. Each crowd meets a list of texts, whose kernel takes no time, and texts that a language model
writes, where each call of the model takes `--kernel` seconds.

    voted        answers that count as votes, of all that people were asked for after practice
    checks       attention checks that were answered, at the declared share
    repeats      decided pairs that were shown once more
    waits        how often somebody was told to wait, and for how long: the mean and the longest, in seconds
    vote         the median time of a choice, in seconds: what a wait is to be compared with
    chains       that were open at the end, of those that the form lets open
    burn-in      which share of the votes was cast in the burn-in of a chain

A wait is from an answer, or from the first look, to the next pair or check. `--burn-in` sets one; the form's is 0.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.own_site import own_site, researcher
from tests.support.scripted_server import Writer, scripted_server

TEXTS = "text,weight\n" + "".join(f"{'far ' * place}away,{1 + place % 3}\n" for place in range(40))
# By how many people: within how many seconds they come.
CROWDS = {10: 0.0, 60: 120.0}
SPREAD = 0.4
SPACES = ("list", "written")


@dataclass(frozen=True)
class Found:
    """What a crowd met with."""

    people: int
    space: str
    votes: int
    checks: int
    repeats: int
    waits: int
    wait_mean_s: float
    wait_longest_s: float
    vote_s: float
    chains: int
    burn_in_votes: int

    @property
    def voted_share(self) -> float:
        return self.votes / (self.votes + self.checks + self.repeats)


def set_up(owner: Any, space: str, options: argparse.Namespace) -> Any:
    """Return a started campaign whose setup is the form's own, where it must not be filled in."""
    from django.core.files.uploadedfile import SimpleUploadedFile
    from django.test import Client
    from django.urls import reverse

    from prefmh_web.campaigns import lifecycle
    from prefmh_web.campaigns.models import Campaign
    from prefmh_web.participants import recruiting
    from tests.support.stack import wait_until_idle

    desk = Client()
    desk.force_login(owner)
    kind = {"list": "catalog", "written": "model-texts"}[space]
    fields = usual_fields(desk.get(reverse("console:create")).context["forms"], kind)
    fields |= {"name": space, "space": kind, "questions-0-question": "Which is darker?", "burn_in": options.burn_in}
    fields |= {"catalog-file": SimpleUploadedFile("texts.csv", TEXTS.encode())} if space == "list" else {}
    fields |= (
        {"model-texts-model": "A model", "model-texts-prompts": "Write about the sea."} if space == "written" else {}
    )
    answer = desk.post(reverse("console:create"), fields)
    assert answer.status_code == 302, answer.content.decode()
    wait_until_idle()
    campaign = Campaign.objects.latest("pk")
    protocol = {"check_share": options.checks, "checks_may_fail": 1000, "waiting_share": options.checks}
    recruitment = {"recruiter": "prolific", "codes": {"completed": "C0MPLETE"}, "votes_each": options.votes}
    recruiting.set_up(campaign, recruitment | {"protocol": protocol}, ())
    lifecycle.start(campaign)
    wait_until_idle()
    return campaign


def usual_fields(forms: Any, kind: str) -> dict[str, Any]:
    """Return what a browser sends of an untouched setup."""
    chosen = next(form for form in forms.spaces if form.kind == kind)
    shown = [forms.campaign, chosen, forms.rule, forms.questions.management_form, *forms.questions.forms]
    found = {field.html_name: field.value() for form in shown for field in form}
    return {name: value for name, value in found.items() if value is not None and value is not False}


def crowd_of(campaign: Any, url: str, people: int, within_s: float, options: argparse.Namespace) -> list[Any]:
    """Return people who have not come yet."""
    from tests.benchmarks.crowds_guest import Guest, Indifferent

    path = campaign.invitations.get().get_absolute_url()
    arrivals = np.sort(np.random.default_rng(people).random(people)) * within_s
    return [
        Guest(
            f"{url}{path}?PROLIFIC_PID=person{person}&STUDY_ID=study&SESSION_ID=session{person}",
            Indifferent(),
            np.random.default_rng(person),
            lambda rng: float(rng.lognormal(np.log(options.think), SPREAD)),
            answers=options.votes,
            arrives_s=float(arrivals[person]),
            reads_s=options.reading,
        )
        for person in range(people)
    ]


def run(owner: Any, space: str, people: int, within_s: float, options: argparse.Namespace) -> Found:
    """Let a crowd vote on a new campaign."""
    from prefmh_web.campaigns import lifecycle
    from tests.benchmarks.crowds_guest import LeftError
    from tests.support.stack import LiveServer

    campaign = set_up(owner, space, options)
    site = LiveServer()
    site.start()
    guests = crowd_of(campaign, site.url, people, within_s, options)

    async def vote() -> None:
        # Each of them opens the link, and reads, on a thread of their own.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(people))
        left = await asyncio.gather(*(guest.run() for guest in guests), return_exceptions=True)
        assert {type(each) for each in left} <= {LeftError, type(None)}, left

    try:
        asyncio.run(vote())
    finally:
        lifecycle.pause(campaign)
        site.stop()
    return found_in(campaign, space, guests, options)


def found_in(campaign: Any, space: str, guests: list[Any], options: argparse.Namespace) -> Found:
    """Return what a crowd met with, by what it noted and by what is stored."""
    from prefmh_web.campaigns.models import Vote
    from prefmh_web.participants.models import Check

    votes = Vote.objects.filter(judge__campaign=campaign, number__isnull=False)
    checks = Check.objects.filter(participation__annotator__campaign=campaign, answered_at__isnull=False)
    repeats = checks.filter(kind=Check.Kind.REPEAT).count()
    waits = [seconds for guest in guests for seconds in guest.waits]
    return Found(
        people=len(guests),
        space=space,
        votes=votes.count(),
        checks=checks.count() - repeats,
        repeats=repeats,
        waits=sum(guest.told_to_wait for guest in guests),
        wait_mean_s=float(np.mean(waits)),
        wait_longest_s=float(np.max(waits)),
        vote_s=options.think,
        chains=campaign.chains.count(),
        burn_in_votes=votes.filter(comparison__step__lte=campaign.parsed_recipe.burn_in).count(),
    )


def report(found: Found) -> None:
    print(
        f"{found.people:>6}  {found.space:<8}{found.votes:>6}{found.voted_share:>7.0%}{found.checks:>8}"
        f"{found.repeats:>9}{found.waits:>7}{found.wait_mean_s:>7.2f}{found.wait_longest_s:>8.2f}{found.vote_s:>6.1f}{found.chains:>8}"
        f"{found.burn_in_votes / found.votes:>9.0%}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--think", type=float, default=6.0, help="median seconds of a choice")
    parser.add_argument("--kernel", type=float, default=5.0, help="seconds of a call of the model")
    parser.add_argument("--reading", type=float, default=20.0, help="seconds from Start to the first look at a pair")
    parser.add_argument("--votes", type=int, default=10, help="that each person gives")
    parser.add_argument("--checks", type=float, default=0.1, help="share of attention checks")
    parser.add_argument("--burn-in", type=int, default=0, help="steps of each chain")
    parser.add_argument("--people", type=int, choices=CROWDS, nargs="*", default=tuple(CROWDS))
    parser.add_argument("--space", choices=SPACES, nargs="*", default=SPACES)
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    with own_site(), scripted_server(Writer(lambda: time.sleep(options.kernel))) as script:
        from django.test.utils import setup_test_environment

        from prefmh_web.endpoints.dialects import Dialect
        from prefmh_web.endpoints.models import Endpoint

        # So that the pages that set a campaign up say what stood in their forms.
        setup_test_environment()
        owner = researcher()
        Endpoint.objects.create(owner=owner, name="A model", base_url=script.url, model="slow", dialect=Dialect.VLLM)
        print(
            f"{'people':>6}  {'space':<8}{'votes':>6}{'voted':>7}{'checks':>8}{'repeats':>9}{'waits':>7}{'mean':>7}"
            f"{'longest':>8}{'vote':>6}{'chains':>8}{'burn-in':>9}"
        )
        found = []
        for space, people in itertools.product(options.space, options.people):
            found.append(run(owner, space, people, CROWDS[people], options))
            report(found[-1])
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1))


if __name__ == "__main__":
    main()
