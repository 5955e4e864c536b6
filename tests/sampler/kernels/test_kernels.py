"""Every kernel on every small catalog: what it draws, the base ratio it claims, and the balance that follows."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from sampler import Catalog, Independent, Mixture, Neighbours, Proposal, Purpose, stream
from tests.support.sampling import (
    SMALL_CATALOGS,
    imbalance,
    independent_law,
    log_base_ratio,
    neighbours_law,
    target,
    transition_matrix,
    two_scores,
)

DRAWS = 4_000
# Under a true null, each of the fewer than 200 chi-square tests below falls under this with chance 1e-5.
LEAST_P_VALUE = 1e-5


def mixture(catalog):
    return Mixture([0.3, 0.7], [Independent(catalog), Neighbours(catalog)])


# For each kernel: how to build it, and its exact law as (weight, q) for each component.
KERNELS = {
    "independent": (Independent, lambda catalog: [(1.0, independent_law(catalog))]),
    "neighbours": (Neighbours, lambda catalog: [(1.0, neighbours_law(catalog))]),
    "mixture": (mixture, lambda catalog: [(0.3, independent_law(catalog)), (0.7, neighbours_law(catalog))]),
}

every_kernel = pytest.mark.parametrize("kernel", KERNELS)
every_catalog = pytest.mark.parametrize("catalog", SMALL_CATALOGS.values(), ids=SMALL_CATALOGS)


class DegreesForgotten(Neighbours):
    """A deliberately wrong kernel: it moves to neighbours and takes the move for a symmetric one."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(catalog)
        self.log_p0 = catalog.log_p0

    def propose(self, rng, state):
        proposal = super().propose(rng, state).state
        return Proposal(proposal, float(self.log_p0[proposal] - self.log_p0[state]))


def draws(kernel, state):
    rng = stream(11, 0, state, Purpose.PROPOSAL)
    return [kernel.propose(rng, state) for _ in range(DRAWS)]


def exact_law(catalog, components, state):
    """Return the chance of each (proposal, log r0 to 9 digits) from `state`."""
    law = Counter()
    for weight, q in components:
        ratio = log_base_ratio(catalog.log_p0, q)
        for proposal in np.flatnonzero(q[state]):
            law[int(proposal), round(float(ratio[state, proposal]), 9) + 0.0] += weight * q[state, proposal]
    return law


def p_value(kernel, catalog, components, state):
    """Return the chi-square p-value of what the kernel draws from `state`; 0 if it draws the impossible."""
    law = exact_law(catalog, components, state)
    seen = Counter((each.state, round(each.log_r0, 9) + 0.0) for each in draws(kernel, state))
    if not seen.keys() <= law.keys():
        return 0.0
    return stats.chisquare([seen[key] for key in law], [DRAWS * chance for chance in law.values()]).pvalue


def claimed_balance(kernel, catalog, q):
    """Return the imbalance of the chain that q makes with the base ratios the kernel itself claims."""
    log_r0 = np.full(q.shape, -np.inf)
    for state in range(len(catalog)):
        for each in draws(kernel, state):
            log_r0[state, each.state] = each.log_r0
    scores = two_scores(catalog)
    return imbalance(
        target(catalog.log_p0, scores), transition_matrix(catalog.log_p0, q, scores, (2, 3), log_r0=log_r0)
    )


@every_kernel
@every_catalog
def test_proposals_and_their_base_ratios_follow_the_exact_law(kernel, catalog):
    build, components = KERNELS[kernel]
    for state in range(len(catalog)):
        # With a single possible outcome chi-square has nothing to measure; the outcome itself is checked.
        value = p_value(build(catalog), catalog, components(catalog), state)
        assert value > LEAST_P_VALUE or (np.isnan(value) and len(exact_law(catalog, components(catalog), state)) == 1)


@pytest.mark.parametrize(("drawn", "taken_for"), [("independent", "mixture"), ("mixture", "independent")])
def test_proposals_of_another_kernel_do_not_pass(drawn, taken_for):
    catalog = SMALL_CATALOGS["lopsided"]
    components = KERNELS[taken_for][1](catalog)
    assert p_value(KERNELS[drawn][0](catalog), catalog, components, 0) < LEAST_P_VALUE


@pytest.mark.parametrize("kernel", ["independent", "neighbours"])
@every_catalog
def test_the_claimed_base_ratios_give_detailed_balance(kernel, catalog):
    build, components = KERNELS[kernel]
    ((_, q),) = components(catalog)
    assert claimed_balance(build(catalog), catalog, q) < 1e-12


@every_catalog
def test_a_mixture_of_balanced_moves_is_balanced(catalog):
    scores = two_scores(catalog)
    transitions = sum(
        weight * transition_matrix(catalog.log_p0, q, scores, (2, 3)) for weight, q in KERNELS["mixture"][1](catalog)
    )
    assert imbalance(target(catalog.log_p0, scores), transitions) < 1e-12


@pytest.mark.parametrize("name", ["path", "star", "lopsided"])
def test_a_kernel_that_forgets_the_degrees_breaks_detailed_balance(name):
    catalog = SMALL_CATALOGS[name]
    assert claimed_balance(DegreesForgotten(catalog), catalog, neighbours_law(catalog)) > 1e-3


@every_kernel
def test_a_kernel_is_a_function_of_its_stream(kernel):
    catalog = SMALL_CATALOGS["lopsided"]
    first, again = (KERNELS[kernel][0](catalog).propose(stream(1, 2, 3, Purpose.PROPOSAL), 4) for _ in range(2))
    assert first == again


def test_neighbours_need_a_graph_that_reaches_every_item():
    with pytest.raises(ValueError, match="neighbours"):
        Neighbours(Catalog(np.ones(3)))
    with pytest.raises(ValueError, match="neighbours"):
        Neighbours(Catalog(np.ones(3), ((1,), (0,), ())))


@pytest.mark.parametrize("weights", [[], [1.0], [0.2, 0.3, 0.5]])
def test_a_mixture_needs_one_weight_for_each_kernel(weights):
    with pytest.raises(ValueError, match="weights"):
        Mixture(weights, [Independent(SMALL_CATALOGS["pair"])] * 2 if weights else [])
