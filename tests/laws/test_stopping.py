"""How far averages are off where a declared rule stops the chains, on the synthetic target, whose mean is known.

The bound is the same for all: with certainty of 1 - 10^-4 (a normal law, 3.9 standard errors, 400 studies) the bias is
below .04 standard deviations of the target. A rule that looks after every step, and stops chains one by one, must fail.
"""

from collections.abc import Callable

import numpy as np
import pytest

from sampler.exact import transition_matrix
from sampler.experiments import synthetic
from sampler.objects.stopping import StoppingRecipe, look_at
from sampler.rules import NVote
from sampler.vectorised import Walker

STUDIES, CHAINS, STEPS, BURN_IN, SEED = 400, 4, 240, 20, 7
RULE = StoppingRecipe(property="place", ess=60, r_hat=1.05, first=60, every=60)
MOST_BIAS, ERRORS = 0.04, 3.9


@pytest.fixture(scope="module")
def studies() -> np.ndarray:
    """The places of all chains of all studies after each step, from starts that p0 draws, shape (studies, steps + 1,
    chains).
    """
    rng = np.random.default_rng(SEED)
    starts = rng.choice(synthetic.STATES, size=STUDIES * CHAINS, p=np.exp(synthetic.log_p0()))
    chain = transition_matrix(synthetic.log_p0(), synthetic.proposal_law(), synthetic.scores()[None], NVote((2,)))
    walk = Walker(chain).run(rng, starts, STEPS, keep_path=True)
    paths = np.concatenate([starts[None], walk.path]).reshape(STEPS + 1, STUDIES, CHAINS)
    return paths.transpose(1, 0, 2).astype(float)


def fixed(places: np.ndarray) -> float:
    return float(places[BURN_IN + 1 :].mean())


def declared(places: np.ndarray) -> float:
    """Stop all chains at the first declared step at which they have converged."""
    for step in RULE.looks(STEPS):
        if RULE.is_met(look_at(step, BURN_IN, list(places.T))):
            return float(places[BURN_IN + 1 : step + 1].mean())
    return fixed(places)


def one_by_one(places: np.ndarray) -> float:
    """Stop each chain as soon as its two halves agree, looking after every step."""
    return float(np.mean([_until_its_halves_agree(chain[BURN_IN + 1 :]) for chain in places.T]))


def _until_its_halves_agree(chain: np.ndarray) -> float:
    for length in range(8, len(chain)):
        half = length // 2
        one, other = chain[:half], chain[half : 2 * half]
        within = (one.var(ddof=1) + other.var(ddof=1)) / 2
        between = half * np.var([one.mean(), other.mean()], ddof=1)
        if within > 0 and ((half - 1) / half * within + between / half) / within <= RULE.r_hat**2:
            return float(chain[:length].mean())
    return float(chain.mean())


def most_bias(studies: np.ndarray, estimate: Callable[[np.ndarray], float]) -> float:
    """Return how large the bias may be, in standard deviations of the target."""
    law, places = synthetic.target(), np.arange(synthetic.STATES)
    mean = law @ places
    scale = np.sqrt(law @ (places - mean) ** 2)
    errors = (np.array([estimate(each) for each in studies]) - mean) / scale
    return float(abs(errors.mean()) + ERRORS * errors.std(ddof=1) / np.sqrt(len(errors)))


@pytest.mark.parametrize("estimate", [fixed, declared])
def test_averages_are_hardly_biased(studies, estimate):
    assert most_bias(studies, estimate) < MOST_BIAS


def test_a_rule_that_looks_after_every_step_and_stops_chains_one_by_one_is(studies):
    """The control."""
    assert most_bias(studies, one_by_one) > 2 * MOST_BIAS


def test_the_declared_rule_does_stop_some_studies(studies):
    stopped = [any(RULE.is_met(look_at(step, BURN_IN, list(each.T))) for step in RULE.looks(STEPS)) for each in studies]
    assert 0.1 < np.mean(stopped) < 0.9
