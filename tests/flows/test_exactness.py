"""Simulated voters through the same door as people: the chain visits objects as the target says."""

from dataclasses import replace

import numpy as np
import pytest

import sampler
from prefmh_web.campaigns.frozen import plan_of
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison
from sampler import exact
from tests.sampler.kernels.test_walk import WithoutRatio
from tests.support.campaigns import make_campaign, make_config, vote_until_finished
from tests.support.sampling import (
    independent_law,
    majority_chain,
    neighbours_law,
    target,
    transition_matrix,
    visits_p_value,
)

CHAINS, STEPS, BUDGETS = 4, 300, (2, 3)
RNG_SEED = 11
SCORES = np.array([np.linspace(-1.2, 1.2, 12), np.cos(np.arange(12.0))])


WALK = {"kind": "walk", "kernel": {"kind": "neighbours"}, "length": 5}


@pytest.fixture
def finished_campaign(researcher) -> Campaign:
    """1,200 steps of two judges with N = 2 and 3 on twelve weighted texts, decided by the votes of five people."""
    return finished(researcher)


def finished(researcher, **changes) -> Campaign:
    judges = [{"question": f"Question {n}?", "votes": n} for n in BUDGETS]
    campaign = make_campaign(researcher, config=make_config(judges=judges, chains=CHAINS, steps=STEPS, **changes))
    people = [Annotator.objects.create(campaign=campaign) for _ in range(5)]
    scores = {place: score.__getitem__ for place, score in enumerate(SCORES)}
    vote_until_finished(campaign, people, scores, np.random.default_rng(RNG_SEED))
    return campaign


def catalog_of(campaign: Campaign) -> sampler.Catalog:
    rows = campaign.states.order_by("place").values_list("weight", "neighbours")
    return sampler.Catalog([weight for weight, _ in rows], tuple(tuple(row) for _, row in rows))


def exact_p_value(visits: np.ndarray, catalog: sampler.Catalog) -> float:
    """Return the p-value of visit counts under the exact chain of the campaign's mixture kernel.

    The mixture corrects each component by its own ratio, so its transition matrix is the mean of the two.
    """
    matrices = [
        transition_matrix(catalog.log_p0, law(catalog), SCORES, BUDGETS) for law in (independent_law, neighbours_law)
    ]
    return p_value(visits, catalog, np.mean(matrices, axis=0))


def p_value(visits: np.ndarray, catalog: sampler.Catalog, chain: np.ndarray) -> float:
    return visits_p_value(visits, chain, target(catalog.log_p0, SCORES))


def visits_of(campaign: Campaign) -> np.ndarray:
    visits = np.zeros(12)
    for comparison in Comparison.objects.filter(chain__campaign=campaign).select_related("current", "proposal"):
        moved = comparison.verdict == Comparison.Verdict.ACCEPT
        visits[(comparison.proposal if moved else comparison.current).place] += 1
    return visits


def test_a_campaign_voted_on_by_people_samples_the_target(finished_campaign):
    catalog = catalog_of(finished_campaign)
    visits = visits_of(finished_campaign)
    assert visits.sum() == CHAINS * STEPS
    # Central limit theorem for Markov chains: a right chain falls below once in a thousand seeds; this one is fixed.
    assert exact_p_value(visits, catalog) > 1e-3

    # The same test on as many steps of the same plan, decided by majority, finds the wrong law.
    plan = plan_of(finished_campaign)
    judges = [sampler.BradleyTerry(score.__getitem__) for score in SCORES]
    wrong = np.zeros(12)
    for chain in range(CHAINS):
        for position in majority_chain(plan, judges, STEPS, chain):
            wrong[position.state] += 1
    assert wrong.sum() == visits.sum()
    assert exact_p_value(wrong, catalog) < 1e-6


def test_a_campaign_that_walks_between_questions_samples_the_target(researcher):
    """Votes about the ends of walks; and a walk that takes every move, whatever its base ratio, is found out."""
    campaign = finished(researcher, kernel=WALK)
    catalog, length = catalog_of(campaign), WALK["length"]
    no_ratio = np.zeros((12, 12))
    walked = exact.walk_law(catalog.log_p0, neighbours_law(catalog), length)
    chain = exact.transition_matrix(catalog.log_p0, walked, SCORES, sampler.NVote(BUDGETS), no_ratio)
    visits = visits_of(campaign)
    assert visits.sum() == CHAINS * STEPS
    assert p_value(visits, catalog, chain) > 1e-3

    plan = replace(plan_of(campaign), kernel=WithoutRatio(sampler.Neighbours(catalog), length))
    judges = [sampler.BradleyTerry(score.__getitem__) for score in SCORES]
    wrong = np.zeros(12)
    for number in range(CHAINS):
        _, *positions = sampler.simulate(plan, judges, STEPS, number)
        for position in positions:
            wrong[position.state] += 1
    assert p_value(wrong, catalog, chain) < 1e-6
