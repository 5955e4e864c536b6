"""Agreement beyond chance, and the paired bootstrap over items."""

import math

import numpy as np
import pytest

from sampler.diagnostics import cohen_kappa, fleiss_kappa, fleiss_kappa_interval, paired_bootstrap
from sampler.diagnostics.bootstrap import RESAMPLES

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


def test_random_answers_have_no_kappa_and_equal_ones_a_whole_one():
    rng = np.random.default_rng(3)
    first = rng.binomial(6, 0.3, size=4_000)
    # A pair of answers correlates with standard error 1 / sqrt(4000 * 15).
    assert abs(fleiss_kappa(np.stack([first, 6 - first], axis=1))) < 4 / math.sqrt(4_000 * 15)
    assert fleiss_kappa([[3, 0], [0, 3], [3, 0]]) == pytest.approx(1)


def test_one_answer_only_has_no_kappa():
    assert math.isnan(fleiss_kappa([[2, 0], [3, 0]]))
    assert all(math.isnan(end) for end in fleiss_kappa_interval([[2, 0], [3, 0]], np.random.default_rng(0)))
    assert math.isnan(cohen_kappa([1, 1], [1, 1]))


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
    first = ["yes"] * 25 + ["no"] * 25
    second = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    # They agree on 35 of 50; chance would on half.
    assert cohen_kappa(first, second) == pytest.approx(0.4)


def test_the_paired_bootstrap_has_the_width_of_the_normal_law():
    rng = np.random.default_rng(5)
    base = rng.normal(size=300) * 10
    first, second = base + rng.normal(size=300) + 0.3, base
    found = paired_bootstrap(first, second, rng)
    assert (RESAMPLES, found.items) == (10_000, 300)
    assert found.mean == pytest.approx(np.mean(first - second))
    error = np.std(first - second) / math.sqrt(300)
    # A 2.5 % quantile of 10,000 resamples: 1.4 % of a half width; skewness of 300 items: a few per cent.
    assert found.low == pytest.approx(found.mean - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(found.mean + 1.96 * error, abs=0.15 * error)
    assert found.p_value < 0.001
    # Unpaired, the spread of the items drowns the difference.
    assert paired_bootstrap(first, rng.permutation(second), rng).p_value > 0.01


def test_equal_methods_differ_by_nothing():
    found = paired_bootstrap([1, 2, 3], [1, 2, 3], np.random.default_rng(6))
    assert (found.mean, found.low, found.high, found.p_value) == (0, 0, 0, 1)


def test_p_values_of_equal_methods_are_small_as_rarely_as_they_should_be():
    rng = np.random.default_rng(7)
    found = [paired_bootstrap(rng.normal(size=60), rng.normal(size=60), rng, resamples=500) for _ in range(400)]
    # 5 %, and 1 % more for 60 items; Binomial(400, 0.06) exceeds 44 once in ten thousand seeds.
    assert sum(each.p_value <= 0.05 for each in found) <= 44
