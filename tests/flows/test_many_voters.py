"""Twenty people vote at once through real sockets."""

import asyncio
import logging

import numpy as np

from prefmh_web.campaigns.models import Campaign, Vote
from prefmh_web.demo.voters import Voter
from tests.support.campaigns import (
    assert_record_is_whole,
    assert_replay_passes,
    export_to,
    invitation_path,
    make_campaign,
    make_config,
)

VOTERS = 20


def hurried(rng: np.random.Generator) -> float:
    """Seconds per choice of somebody in a great hurry."""
    return float(rng.exponential(0.1))


def test_twenty_voters_at_once_lose_and_double_nothing(researcher, live_site, idle_tasks, tmp_path, caplog):
    judges = [{"question": "Which is darker?", "votes": 4}, {"question": "Which is better?", "votes": 3}]
    campaign = make_campaign(researcher, config=make_config(judges=judges, chains=12, steps=10))
    scores = {judge["question"]: (lambda text: len(text) / 4) for judge in judges}
    seeds = np.random.SeedSequence(7).spawn(VOTERS)
    link = live_site.url + invitation_path(campaign)
    voters = [Voter(link, scores, np.random.default_rng(seed), hurried) for seed in seeds]

    async def vote() -> None:
        async with asyncio.timeout(120):
            await asyncio.gather(*(voter.run() for voter in voters))

    with caplog.at_level(logging.INFO, logger="prefmh_web"):
        asyncio.run(vote())
    idle_tasks()

    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    assert campaign.annotators.count() == VOTERS
    stored = [str(key) for key in Vote.objects.values_list("key", flat=True)]
    assert sorted(stored) == sorted(key for voter in voters for key in voter.sent)
    # Nobody's vote came too late: no lease is given for a vote that could be.
    assert not Vote.objects.filter(number__isnull=True).exists()
    assert "locked" not in caplog.text
    assert "Traceback" not in caplog.text
    assert_record_is_whole(campaign)
    assert_replay_passes(export_to(campaign, tmp_path))
