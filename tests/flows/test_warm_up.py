"""A campaign with a warm-up, voted on through real sockets: exact before its end and after it."""

import asyncio
from dataclasses import replace

import numpy as np

import sampler
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Campaign, Comparison
from prefmh_web.demo.voters import SimulatedVoter
from sampler import exact
from sampler.exact import target
from tests.sampler.kernels.test_walk import WithoutRatio
from tests.support.campaigns import WARM_UP, invitation_path, warming_campaign
from tests.support.enumerated import walk_distribution
from tests.support.records import checked_export
from tests.support.sampling import neighbours_distribution

CHAINS, W, BURN_IN, AFTER = 6, 80, 10, 160
STEPS = W + BURN_IN + AFTER
VOTERS = 8
SCORES = np.linspace(-1.2, 1.2, 12)
# Eight sockets are not answered in a fixed order, so votes differ from run to run: a right chain falls to this or below
# in at most one run of ten thousand, as the p-value is a rank among simulated runs.
MIN_P_VALUE = 1e-4
SIMULATED = 20_000


def part_of(step: int) -> int | None:
    """Return 0 for a step of the warm-up, 1 for one after the burn-in, None for one between them."""
    if step <= W:
        return 0
    return 1 if step > W + BURN_IN else None


def visits_of(campaign: Campaign) -> np.ndarray:
    """Return how often each text was visited in either part, shape (2, 12)."""
    visits = np.zeros((2, 12))
    for step in Comparison.objects.filter(chain__campaign=campaign).select_related("current", "proposal"):
        moved = step.verdict == Comparison.Verdict.ACCEPT
        if (part := part_of(step.step)) is not None:
            visits[part, (step.proposal if moved else step.current).index] += 1
    return visits


def test_it_samples_the_target_in_the_warm_up_and_after_it(researcher, live_site, idle_tasks, tmp_path):
    """And a walk without the base ratio of its moves is found out in either part."""
    campaign = warming_campaign(researcher, {"steps": W, "burn_in": BURN_IN}, chains=CHAINS, steps=STEPS)
    scores = {"Which is darker?": lambda text: SCORES[text.count("far")]}
    seeds = np.random.SeedSequence(5).spawn(VOTERS)
    link = live_site.url + invitation_path(campaign)
    voters = [SimulatedVoter(link, scores, np.random.default_rng(seed), lambda rng: 0) for seed in seeds]

    async def vote() -> None:
        async with asyncio.timeout(200):
            await asyncio.gather(*(voter.run() for voter in voters))

    asyncio.run(vote())
    idle_tasks()
    campaign.refresh_from_db()
    assert campaign.status == Campaign.Status.FINISHED
    assert campaign.tuning["because"] == "chosen by the rule"
    checked_export(campaign, tmp_path)

    rows = campaign.states.order_by("index").values_list("weight", "neighbours")
    catalog = sampler.Catalog([weight for weight, _ in rows], tuple(tuple(row) for _, row in rows))
    walks = {length: chain_of(catalog, length) for length in WARM_UP["grid"]}
    distributions = np.mean(list(walks.values()), axis=0), walks[campaign.walk_length]
    goal = target(catalog.log_p0, SCORES[None])
    for distribution in distributions:
        np.testing.assert_allclose(goal @ distribution, goal, rtol=1e-9)
    null = simulated_visits(np.random.default_rng(6), np.exp(catalog.log_p0), distributions)
    for part, visits in enumerate(visits_of(campaign)):
        assert rank_p_value(visits, null[:, part]) > MIN_P_VALUE
    for length in walks:
        wrong = visits_without_ratio(campaign, catalog, length)
        for part, visits in enumerate(wrong):
            assert rank_p_value(visits, null[:, part]) <= MIN_P_VALUE


def chain_of(catalog: sampler.Catalog, length: int) -> np.ndarray:
    """Return the chain of walks of one length, with the votes averaged out."""
    walked = walk_distribution(catalog.log_p0, neighbours_distribution(catalog), length)
    return exact.transition_matrix(catalog.log_p0, walked, SCORES[None], sampler.NVote((1,)), np.zeros((12, 12)))


def simulated_visits(
    rng: np.random.Generator, start: np.ndarray, distributions: tuple[np.ndarray, np.ndarray]
) -> np.ndarray:
    """Return the visits of simulated right campaigns, shape (SIMULATED, 2, 12).

    The chains are short and start far from the target, so `visits_p_value`, which is a limit, would reject too many.
    """
    visits = np.zeros((SIMULATED, 2, 12))
    runs = np.repeat(np.arange(SIMULATED), CHAINS)
    states = rng.choice(12, p=start, size=len(runs))
    for step in range(1, STEPS + 1):
        ends = np.cumsum(distributions[int(step > W)], axis=1)[states, :-1]
        states = (rng.random(len(states))[:, None] >= ends).sum(axis=1)
        if (part := part_of(step)) is not None:
            np.add.at(visits[:, part], (runs, states), 1)
    return visits


def rank_p_value(visits: np.ndarray, simulated: np.ndarray) -> float:
    """Return the rank of a campaign among simulated ones by Mahalanobis distance: uniform for a right campaign.

    All are treated alike, the observed one too: its visits count in mean and covariance, so the test is exact.
    """
    every = np.vstack([visits, simulated])[:, :-1]
    gaps = every - every.mean(axis=0)
    distances = (gaps @ np.linalg.inv(np.cov(every.T)) * gaps).sum(axis=1)
    return float(np.mean(distances >= distances[0]))


def visits_without_ratio(campaign: Campaign, catalog: sampler.Catalog, length: int) -> np.ndarray:
    kernel = WithoutRatio(sampler.Neighbours(catalog), length)
    plan = replace(plan_of(campaign), kernel=kernel, first=None)
    visits = np.zeros((2, 12))
    for chain in range(CHAINS):
        _, *positions = sampler.simulate(plan, [sampler.BradleyTerry(SCORES.__getitem__)], STEPS, chain)
        for step, position in enumerate(positions, start=1):
            if (part := part_of(step)) is not None:
                visits[part, position.state] += 1
    return visits
