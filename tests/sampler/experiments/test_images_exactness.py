"""The images' method: Crank-Nicolson moves of the paper's mixture, three judges with nine votes each.

Latents cannot be listed. What can: the density of a move of two numbers, and the rule on a small catalog. And with
scores a_i·z, linear in the latent, the target is N(sum_i a_i, I), so many chains that start there must stay there.
"""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from sampler import marginal_acceptance
from sampler.acceptance import acceptance_probability
from sampler.kernels.crank_nicolson import PAPER_MIXTURE
from tests.support.sampling import (
    SMALL_CATALOGS,
    averaged,
    imbalance,
    neighbours_law,
    pooled_rule,
    target,
    transition_matrix,
)

NINES = (9, 9, 9)
TASTES = np.array([[0.5, 0.0], [0.2, 0.4], [-0.1, 0.3]])
CHAINS, STEPS = 4000, 40
LEAST_P_VALUE = 1e-3


def unbalanced(rule):
    catalog = SMALL_CATALOGS["lopsided"]
    scores = np.random.default_rng(3).normal(size=(3, len(catalog)))
    chain = transition_matrix(catalog.log_p0, neighbours_law(catalog), scores, NINES, rule)
    return imbalance(target(catalog.log_p0, scores), chain)


def under_top_p(log_r0, preference, budgets):
    """Votes of a model that is truncated to the most probable 80 %: what it prefers by more than that is certain."""
    certain = np.where(preference >= 0.8, 1.0, np.where(preference <= 0.2, 0.0, preference))
    return marginal_acceptance(log_r0, certain, budgets)


def test_nine_votes_of_each_of_three_judges_keep_the_target():
    assert unbalanced(marginal_acceptance) < 1e-12


@pytest.mark.parametrize("wrong", [under_top_p, averaged(pooled_rule)], ids=["top-p .8", "pooled"])
def test_truncated_votes_and_pooled_ones_do_not(wrong):
    assert unbalanced(wrong) > 1e-4


def final_latents(keep_of):
    """Return where chains stand that start in the target, shape (CHAINS, 2)."""
    rng = np.random.default_rng(17)
    latents = rng.normal(size=(CHAINS, 2)) + TASTES.sum(axis=0)
    parts = PAPER_MIXTURE["parts"]
    weights = [part["weight"] for part in parts]
    # A fresh draw is a move of beta 1.
    betas = np.array([part["kernel"].get("beta", 1.0) for part in parts])
    for _ in range(STEPS):
        beta = betas[rng.choice(len(betas), size=CHAINS, p=weights)][:, None]
        proposals = keep_of(beta) * latents + beta * rng.normal(size=(CHAINS, 2))
        votes = rng.binomial(9, expit((proposals - latents) @ TASTES.T))
        accepts = rng.random(CHAINS) < acceptance_probability(np.zeros(CHAINS), votes, NINES)
        latents = np.where(accepts[:, None], proposals, latents)
    return latents


def p_value(latents):
    """Return the p-value of the mean under N(sum_i a_i, I): CHAINS |mean - sum a|^2 is chi-square with 2 degrees."""
    gap = latents.mean(axis=0) - TASTES.sum(axis=0)
    return float(stats.chi2.sf(CHAINS * gap @ gap, 2))


def test_chains_with_linear_scores_stay_in_their_normal_law():
    latents = final_latents(lambda beta: np.sqrt(1 - beta**2))
    assert p_value(latents) > LEAST_P_VALUE
    # The variance of a variance of normal draws is 2 / n: 4.5 of its standard errors.
    assert np.all(np.abs(latents.var(axis=0) - 1) < 4.5 * math.sqrt(2 / CHAINS))


def test_chains_without_the_root_leave_it():
    assert p_value(final_latents(lambda beta: 1 - beta)) < 1e-12
