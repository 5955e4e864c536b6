"""The chain that voters drive, worked out by enumeration, and whether a campaign's steps are those of that chain.

Shapes: n objects, m judges. The catalog is a complete graph whose weights differ, so base ratios do, too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

import sampler
from sampler import Comparison, Verdict, exact
from tests.support.sampling import neighbours_distribution, visits_p_value

Matrix = npt.NDArray[np.float64]
# One row for each chain: x^(0), x^(1), ..., as indices in the catalog.
Paths = npt.NDArray[np.int64]

WEIGHTS = (4.0, 3.0, 3.0, 2.0, 2.0, 1.0)
CATALOG = sampler.Catalog(WEIGHTS, tuple(tuple(j for j in range(6) if j != i) for i in range(6)))
SCORES = np.array([-1.2, -0.24, -0.72, 0.24, 1.2, 0.72])
# Chains start at p0, and not at their target: the first steps are left out of the visits.
BURN_IN = 15


@dataclass(frozen=True)
class PValues:
    """What two tests say of one campaign.

    Args:
        visits: of how often each object was visited: central limit theorem for Markov chains (`visits_p_value`).
        moves: of how often each object followed each other one: chi-square of transition counts (Billingsley 1961,
            Statistical Inference for Markov Processes).
    """

    visits: float
    moves: float

    @property
    def least(self) -> float:
        """The p-value of both together: Bonferroni."""
        return min(1.0, 2 * min(self.visits, self.moves))


def transitions(preferences: Sequence[Matrix], max_votes: Sequence[int]) -> Matrix:
    """Return the chain of judges who prefer x' to x with the probability at [x, x'], one matrix each, shape (n, n)."""
    q = neighbours_distribution(CATALOG)
    log_r0 = exact.log_base_ratio(CATALOG.log_p0, q)
    rule = sampler.NVote(tuple(max_votes))
    return exact.transitions_of(q, rule.mean_acceptance(log_r0, np.stack(preferences, axis=-1)))


def simulated_paths(
    plan: sampler.Plan[int],
    chains: int,
    steps: int,
    verdict: Callable[[Comparison[int], np.random.Generator], Verdict],
) -> Paths:
    """Return where chains go with `sampler` alone, whose steps are decided with the random numbers of each."""
    positions = [sampler.begin(plan, chain) for chain in range(chains)]
    states = [[position.state for position in positions]]
    for step in range(1, steps + 1):
        for chain, position in enumerate(positions):
            drawn, rng = sampler.ask(plan, position), sampler.stream(plan.seed, chain, step, sampler.Purpose.JUDGES)
            positions[chain] = sampler.advance(position, drawn, verdict(drawn, rng))
        states.append([position.state for position in positions])
    return np.transpose(states)


def p_values(paths: Paths, chain: Matrix) -> PValues:
    """Return how well the steps of a campaign fit a chain, and its visits the chain's stationary distribution."""
    visits = np.bincount(paths[:, BURN_IN + 1 :].ravel(), minlength=len(chain))
    return PValues(visits_p_value(visits, chain, exact.stationary(chain)), _moves_p_value(paths, chain))


def _moves_p_value(paths: Paths, chain: Matrix) -> float:
    counts = np.zeros_like(chain)
    np.add.at(counts, (paths[:, :-1].ravel(), paths[:, 1:].ravel()), 1)
    expected = counts.sum(axis=1, keepdims=True) * chain
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float(stats.chi2.sf(statistic, chain.size - len(chain)))
