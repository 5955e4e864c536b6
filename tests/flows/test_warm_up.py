"""A campaign with a warm-up, voted on through real sockets: exact before its end and after it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import numpy as np

import sampler
from prefmh_web.campaigns.models import Campaign, Comparison
from prefmh_web.campaigns.started import plan_of
from prefmh_web.demo.voters import Voter
from sampler import exact
from tests.sampler.kernels.test_walk import WithoutRatio
from tests.support.catalogs import neighbours_law
from tests.support.exact import target, visits_p_value
from tests.support.record import assert_record_is_whole, assert_replay_passes, export_to
from tests.support.stack import invitation_path
from tests.support.warm_ups import WARM_UP, warming_campaign

CHAINS, W, SETTLING, AFTER = 6, 80, 10, 160
VOTERS = 8
SCORES = np.linspace(-1.2, 1.2, 12)
# Eight sockets are not answered in a fixed order, so votes differ from run to run: a right chain falls below this in
# one run of ten thousand.
LEAST_P_VALUE = 1e-4


def visits_of(campaign: Campaign) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each text was visited in the warm-up, and after the settling."""
    visits = np.zeros((2, 12))
    for step in Comparison.objects.filter(chain__campaign=campaign).select_related("current", "proposal"):
        moved = step.verdict == Comparison.Verdict.ACCEPT
        if step.step <= W or step.step > W + SETTLING:
            visits[int(step.step > W), (step.proposal if moved else step.current).place] += 1
    return visits[0], visits[1]


def test_it_samples_the_target_in_the_warm_up_and_after_it(researcher, live_site, idle_tasks, tmp_path):
    """And a walk without the base ratio of its moves is found out in either part."""
    steps = W + SETTLING + AFTER
    campaign = warming_campaign(researcher, {"steps": W, "settling": SETTLING}, chains=CHAINS, steps=steps)
    scores = {"Which is darker?": lambda text: SCORES[text.count("far")]}
    seeds = np.random.SeedSequence(5).spawn(VOTERS)
    link = live_site.url + invitation_path(campaign)
    voters = [Voter(link, scores, np.random.default_rng(seed), lambda rng: 0) for seed in seeds]

    async def vote() -> None:
        async with asyncio.timeout(200):
            await asyncio.gather(*(voter.run() for voter in voters))

    asyncio.run(vote())
    idle_tasks()
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    assert campaign.tuning["because"] == "chosen by the rule"
    assert_record_is_whole(campaign)
    assert_replay_passes(export_to(campaign, tmp_path))

    rows = campaign.states.order_by("place").values_list("weight", "neighbours")
    catalog = sampler.Catalog([weight for weight, _ in rows], tuple(tuple(row) for _, row in rows))
    walks = {length: chain_of(catalog, length) for length in WARM_UP["grid"]}
    laws = np.mean(list(walks.values()), axis=0), walks[campaign.walk_length]
    goal = target(catalog.log_p0, SCORES[None])
    for visits, law in zip(visits_of(campaign), laws, strict=True):
        assert visits_p_value(visits, law, goal) > LEAST_P_VALUE
    for length, law in walks.items():
        wrong = visits_without_ratio(campaign, catalog, length, steps)
        assert visits_p_value(wrong, law, goal) < 1e-6


def chain_of(catalog: sampler.Catalog, length: int) -> np.ndarray:
    """Return the chain of walks of one length, with the votes averaged out."""
    walked = exact.walk_law(catalog.log_p0, neighbours_law(catalog), length)
    return exact.transition_matrix(catalog.log_p0, walked, SCORES[None], sampler.NVote((1,)), np.zeros((12, 12)))


def visits_without_ratio(campaign: Campaign, catalog: sampler.Catalog, length: int, steps: int) -> np.ndarray:
    kernel = WithoutRatio(sampler.Neighbours(catalog), length)
    plan = replace(plan_of(campaign), kernel=kernel, first=None)
    visits = np.zeros(12)
    for chain in range(CHAINS):
        _, *positions = sampler.simulate(plan, [sampler.BradleyTerry(SCORES.__getitem__)], steps, chain)
        for position in positions:
            visits[position.state] += 1
    return visits
