"""Ten people come at once to a campaign with one chain: through real sockets, nobody waits, and the record replays."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from prefmh_web.campaigns.models import Campaign
from prefmh_web.demo.voters import Voter
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to, table
from tests.support.stack import invitation_path, make_campaign, make_recipe

PEOPLE, CHOICES = 10, 6
JUDGES = [{"question": "Which is darker?", "budget": 2}]


@dataclass
class Guest(Voter):
    """Somebody who goes after some votes, and notes each screen."""

    seen: Counter[str] = field(default_factory=Counter)

    async def _decide(self, screen):
        self.seen[screen.standing] += 1
        if len(self.sent) == CHOICES:
            raise LeftError
        return await super()._decide(screen)


class LeftError(Exception):
    """Somebody has left."""


def test_nobody_waits_while_further_chains_may_open(researcher, live_site, idle_tasks, tmp_path):
    recipe = make_recipe(judges=JUDGES, chains=1, most_chains=30, steps=40)
    campaign = make_campaign(researcher, recipe=recipe)
    link = live_site.url + invitation_path(campaign)
    scores = {judge["question"]: (lambda text: len(text) / 9) for judge in JUDGES}
    guests = [
        Guest(link, scores, np.random.default_rng(seed), lambda rng: float(rng.uniform(0, 0.1)))
        for seed in range(PEOPLE)
    ]

    async def vote() -> None:
        async with asyncio.timeout(60):
            left = await asyncio.gather(*(guest.run() for guest in guests), return_exceptions=True)
            assert {type(each) for each in left} == {LeftError}

    asyncio.run(vote())
    idle_tasks()
    assert sum((guest.seen for guest in guests), Counter())["waiting"] == 0
    assert PEOPLE / 2 < campaign.chains.count() < 2 * PEOPLE
    assert Campaign.objects.get(pk=campaign.pk).is_running
    assert_record_is_whole(campaign)
    path = export_to(campaign, tmp_path)
    assert_replay_passes(path)
    assert len(table(path, "chains.csv")) == campaign.chains.count()
