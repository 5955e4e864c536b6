"""Convergence, and total variation of ragged chains."""

import math

import numpy as np
import pytest
from arviz_stats.base import array_stats

from sampler.diagnostics import by_target, convergence, total_variation
from sampler.diagnostics.chains import equal_lengths


def autoregressive(rng, chains, draws, rho):
    """Return stationary AR(1) chains, shape (chains, draws)."""
    noise = rng.normal(size=(chains, draws)) * math.sqrt(1 - rho**2)
    values = np.empty((chains, draws))
    values[:, 0] = rng.normal(size=chains)
    for t in range(1, draws):
        values[:, t] = rho * values[:, t - 1] + noise[:, t]
    return values


def test_effective_sample_size_is_the_one_of_an_autoregressive_chain():
    rho, chains, draws = 0.6, 4, 5_000
    found = convergence(list(autoregressive(np.random.default_rng(1), chains, draws, rho)))
    exact = chains * draws * (1 - rho) / (1 + rho)
    # A window of M lags estimates it with a relative standard error of sqrt(2 (2M + 1) / n): 5 % for M = 10.
    assert found.bulk_ess == pytest.approx(exact, rel=0.15)
    assert (found.chains, found.draws) == (chains, draws)
    # An R-hat of 1 + e needs chain means that differ by sqrt(2e) standard deviations; theirs is sqrt(1 / 1250) = 0.03.
    assert found.r_hat < 1.005


@pytest.mark.parametrize("apart", [lambda x: x + np.arange(4)[:, None], lambda x: x * np.array([1, 1, 1, 6])[:, None]])
def test_chains_that_differ_in_place_or_in_spread_have_a_large_r_hat(apart):
    values = np.random.default_rng(2).normal(size=(4, 500))
    assert convergence(list(values)).r_hat < 1.01
    assert convergence(list(apart(values))).r_hat > 1.1


def test_ragged_chains_give_what_arviz_gives_on_their_last_draws():
    rng = np.random.default_rng(3)
    chains = [rng.normal(size=length).cumsum() for length in (130, 100, 120)]
    cut = np.stack([chain[-100:] for chain in chains])
    found = convergence(chains)
    assert found.r_hat == array_stats.rhat(cut)
    assert found.bulk_ess == array_stats.ess(cut)
    assert found.tail_ess == array_stats.ess(cut, method="tail", prob=(0.05, 0.95))


@pytest.mark.parametrize(
    ("lengths", "shape"),
    [((100, 100, 90), (3, 90)), ((100, 100, 10), (2, 100)), ((1, 50), (1, 50)), ((60, 20), (2, 20)), ((4,), (1, 4))],
)
def test_ragged_chains_are_cut_so_that_most_draws_remain(lengths, shape):
    assert equal_lengths([np.arange(length) for length in lengths]).shape == shape


def test_one_chain_has_no_r_hat_but_effective_sample_sizes():
    found = convergence([np.random.default_rng(4).normal(size=400)])
    assert math.isnan(found.r_hat)
    assert found.bulk_ess > 200


@pytest.mark.parametrize("draws", range(4, 40))
def test_chains_stuck_at_different_values_have_an_infinite_r_hat(draws):
    """Not what rounding makes of it, which a replay on another machine would not find again."""
    assert convergence([np.zeros(draws), np.ones(draws)]).r_hat == math.inf
    assert convergence([np.full(draws, 0.1), np.full(draws, 0.7), np.full(draws, 0.3)]).r_hat == math.inf


def test_chains_of_which_one_moves_once_have_a_finite_r_hat():
    still = [np.zeros(10_000), np.ones(10_000)]
    still[0][3] = 1e-9
    assert 10 < convergence(still).r_hat < math.inf


@pytest.mark.parametrize(
    ("chains", "message"),
    [
        ([], "4 draws"),
        ([[1, 2, 3], [1]], "4 draws"),
        ([[1, 2, 3, math.nan]], "finite"),
        ([[[1, 2], [3, 4]]], "one sequence"),
        ([[2, 2, 2, 2], [2, 2, 2, 2, 2]], "every draw is 2"),
    ],
)
def test_what_has_no_convergence_is_refused(chains, message):
    with pytest.raises(ValueError, match=message):
        convergence(chains)


def test_chains_of_different_targets_are_not_pooled_and_the_worst_is_told():
    rng = np.random.default_rng(6)
    good, bad = rng.normal(size=(2, 200)), rng.normal(size=(2, 200)).cumsum(axis=1)
    named = (
        [("far", each + 50) for each in good]
        + [("walks", each) for each in bad]
        + [("alone", good[0]), ("still", [2] * 9)]
    )
    found = by_target(named)
    assert [each.target for each in found.targets] == ["still", "alone", "walks", "far"]
    assert found.targets[0].problem == "every draw is 2"
    assert (found.r_hat, found.bulk_ess) == (convergence([*bad]).r_hat, convergence([*bad]).bulk_ess)
    assert found.basis == "5 chains of 200 draws, the worst of 4 prompts"
    # Pooled, they seem to differ though each pair agrees, or the other way round.
    assert convergence([each for _, each in named[:4]]).r_hat > 1.5 > 1.01 > found.targets[-1].r_hat


def test_total_variation_by_hand():
    assert total_variation([0.5, 0.5, 0], [0.25, 0.25, 0.5]) == 0.5
    np.testing.assert_allclose(total_variation([[1, 0], [0.5, 0.5]], [0.5, 0.5]), [0.5, 0])
