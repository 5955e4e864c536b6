"""Convergence, agreement beyond chance, and the paired bootstrap."""

import math

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy.stats import norm

from sampler.diagnostics.chains import by_target, convergence, equal_lengths, figure, percent
from sampler.diagnostics.scores import RESAMPLES, paired_bootstrap
from sampler.diagnostics.votes import cohen_kappa, fleiss_kappa, fleiss_kappa_interval

# Convergence, and total variation of ragged chains.


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


@pytest.mark.parametrize(
    ("share", "words"),
    [(0, "0.0 %"), (1, "100.0 %"), (0.125, "12.5 %"), (0.0003, "0.03 %"), (0.9996, "99.96 %"), (1e-9, "<0.0001 %")],
)
def test_only_none_reads_as_none_and_only_all_as_all(share, words):
    assert percent(share) == words
    assert percent(1 - share)[-1] == "%"
    assert percent(1 - 1e-9) == ">99.9999 %"


def test_a_number_has_all_digits_before_its_point_and_no_sign_if_it_is_nothing():
    assert [figure(each) for each in (123_456.7, 9_999.6, 12.346, 0.0012346, -0.0)] == [
        "123,457", "10,000", "12.35", "0.001235", "0"
    ]  # fmt: skip


# Agreement beyond chance, and the paired bootstrap over items.


# 14 raters put 10 subjects into 5 categories; a standard worked example of Fleiss' kappa, 0.210.
FOURTEEN_RATERS = [
    [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
    [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
]  # fmt: skip


def test_fleiss_kappa_of_the_worked_example():
    assert round(fleiss_kappa(FOURTEEN_RATERS), 3) == 0.210


def test_fleiss_kappa_with_different_numbers_of_answers_by_hand():
    # Agreeing pairs: 1 of 1, 1 of 3, 0 of 1. Shares 4/7 and 3/7, so P_e = 25/49.
    expected = (4 / 9 - 25 / 49) / (1 - 25 / 49)
    assert fleiss_kappa([[2, 0], [1, 2], [1, 1]]) == pytest.approx(expected)


def test_one_answer_only_has_no_kappa():
    assert math.isnan(fleiss_kappa([[2, 0], [3, 0]]))
    assert all(math.isnan(end) for end in fleiss_kappa_interval([[2, 0], [3, 0]], np.random.default_rng(0)))
    assert math.isnan(cohen_kappa([(True, True)] * 2))


def test_the_interval_of_fleiss_kappa_is_as_wide_as_kappas_of_new_questions_spread():
    rng = np.random.default_rng(4)

    def counts():
        yes = rng.binomial(5, rng.beta(1, 1, size=150))
        return np.stack([yes, 5 - yes], axis=1)

    kappas = [fleiss_kappa(counts()) for _ in range(600)]
    spread = np.std(kappas)
    # Preferences are uniform on [0, 1], so two answers correlate by Var(p) / (1/4) = 1/3; the bias is of order 1/150.
    assert np.mean(kappas) == pytest.approx(1 / 3, abs=4 * spread / math.sqrt(600) + 1 / 150)
    low, high = fleiss_kappa_interval(counts(), rng, resamples=4_000)
    # A standard deviation from 600 values has relative error 3 %; the bootstrap's from 150 questions about 6 to 8 %.
    assert (high - low) / (2 * 1.96) == pytest.approx(spread, rel=0.3)


def test_cohens_kappa_by_hand():
    answers = [(True, True)] * 20 + [(True, False)] * 5 + [(False, True)] * 10 + [(False, False)] * 15
    # They agree on 35 of 50; chance would on half.
    assert cohen_kappa(answers) == pytest.approx(0.4)


def test_the_paired_bootstrap_has_the_p_value_of_the_normal_distribution():
    rng = np.random.default_rng(5)
    base, gap = rng.normal(size=300) * 10, rng.normal(size=300)
    gap += 0.1 - gap.mean()
    mean, p_value = paired_bootstrap(base + gap, base, rng)
    assert mean == pytest.approx(0.1)
    expected = 2 * norm.sf(0.1 * math.sqrt(300) / np.std(gap))
    assert RESAMPLES == 10_000
    # A share of 4 % in 10,000 resamples: 5 %, doubled for four standard deviations; skewness: a few per cent.
    assert p_value == pytest.approx(expected, rel=0.25)
    # Unpaired, the spread of the items drowns the difference.
    assert paired_bootstrap(base + gap, rng.permutation(base), rng)[1] > 0.2


def test_the_paired_bootstrap_of_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite numbers"):
        paired_bootstrap([1.0, math.nan], [1.0, 2.0], np.random.default_rng(0))


def test_p_values_of_equal_methods_are_small_as_rarely_as_they_should_be():
    rng = np.random.default_rng(7)
    found = [paired_bootstrap(rng.normal(size=60), rng.normal(size=60), rng, resamples=500) for _ in range(400)]
    # 5 %, and 1 % more for 60 items; Binomial(400, 0.06) exceeds 44 once in ten thousand seeds.
    assert sum(p_value <= 0.05 for _, p_value in found) <= 44
