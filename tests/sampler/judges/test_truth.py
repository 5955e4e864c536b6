"""Whether votes are what p says: how often the tests err, on servers that sample truly and on others.

Pairs in .6 to .85 asked many times, and a rare label at its rate.
"""

import math
from functools import cache

import numpy as np
import pytest

from sampler.judges import REPLIES, AskedPresentation, agreement, fit_of, label_preference, min_rate, rare_label_of

# Of the likelier label, in as many presentations each.
ALIKE, SPREAD = (0.83,), (0.83, 0.76, 0.7, 0.65)


@cache
def judged(reported, firsts, each):
    return agreement([AskedPresentation(p, each, k) for p, k in zip(reported, firsts, strict=True)])


def shares(reported, true, runs):
    """Return in which share of tests a difference is seen at the first look, and at any; and with a second look."""
    rng, each = np.random.default_rng(20261128), REPLIES // len(reported)
    early = late = again = 0
    for firsts in rng.binomial(each, true, (runs, len(reported))):
        seen = judged(reported, tuple(firsts.tolist()), each)
        early += seen.is_none
        if seen.is_doubtful:
            again += 1
            both = firsts + rng.binomial(each, true)
            late += judged(reported, tuple(both.tolist()), 2 * each).is_none
    return early / runs, (early + late) / runs, again / runs


def powered(p, power):
    """Return the probability whose odds are a power of those of p: at temperature T the power is 1 / T."""
    odds = (p / (1 - p)) ** power
    return odds / (1 + odds)


# Of a rare label.
RATE = 0.045


class TestTruth:
    @pytest.mark.parametrize("reported", [ALIKE, SPREAD, (0.6,)], ids=str)
    def test_an_honest_server_is_seldom_said_to_do_otherwise(self, reported):
        runs = 40_000
        _, wrong, again = shares(reported, reported, runs)
        # At most 4 are expected: more than 12 come with a probability of 3 in 10,000.
        assert wrong * runs <= 12
        assert again < 0.05

    @pytest.mark.parametrize(
        ("reported", "true", "least_early", "least"),
        [
            (ALIKE, (1.0,), 1, 1),
            ((0.83, 0.7), (1.0, 0.7), 0.2, 0.95),
            ((0.755,), (0.606,), 0.45, 0.95),
            (ALIKE, (powered(0.83, 1 / 2),), 0.55, 0.97),
            # The negative control: p was read at another temperature than that of the replies.
            (ALIKE, (powered(0.83, 2),), 0.9, 0.99),
            (SPREAD, tuple(1 - p for p in SPREAD), 1, 1),
            # A rare label at its rate, looked at as pairs are: after 200 replies, and after 400 in doubt.
            ((RATE,), (0.0,), 0, 1),
            ((RATE,), (powered(RATE, 2),), 0, 0.92),
            ((RATE,), (powered(RATE, 1 / 2),), 0, 0.999),
        ],
        ids=[
            *("top-p .8", "top-p .8 in one order", ".755 for .606", "flatter", "sharper", "swapped"),
            *("rare and never", "rare and rarer", "rare and not so rare"),
        ],
    )
    def test_another_distribution_is_found(self, reported, true, least_early, least):
        early, late, _ = shares(reported, true, 2000)
        assert (early >= least_early, late >= least) == (True, True), (early, late)

    def test_a_truncation_shows_after_a_stated_number_of_replies(self):
        assert not agreement([AskedPresentation(0.83, 56, 56)]).is_none
        assert agreement([AskedPresentation(0.83, 30, 30), AskedPresentation(0.17, 27, 0)]).is_none
        assert agreement([AskedPresentation(0.8, 100, 80)]).power == pytest.approx(1)

    def test_the_temperature_is_near_1_and_brings_both_orders_into_the_range(self):
        listed = [[("A", math.log(p)), ("B", math.log(1 - p))] for p in (0.9, 0.2)]
        fit = fit_of(listed, constrained=True, hottest=2.0)
        assert fit.firsts == tuple(label_preference(each, fit.temperature, constrained=True).first for each in listed)
        assert 1 < fit.temperature < 1.5
        assert fit.firsts[0] == pytest.approx(0.84, abs=0.01)
        # Neither a sure model nor one that cannot decide tells anything, nor one that says no label.
        for sure in ([("A", math.log(0.99)), ("B", math.log(0.01))], [("A", -0.69), ("B", -0.7)], [("A", -0.4)]):
            assert fit_of([listed[0], sure], constrained=True, hottest=2.0) is None
        assert fit_of(listed, constrained=True, hottest=1.0) is None

    @pytest.mark.parametrize("p", [0.0, 1.0])
    def test_a_certainty_is_refused(self, p):
        with pytest.raises(ValueError, match="between 0 and 1"):
            agreement([AskedPresentation(p, 1, 1)])


@pytest.mark.parametrize("rate", [0.03, RATE, 0.15])
def test_a_server_that_samples_a_rare_label_plainly_is_seldom_said_to_do_otherwise(rate):
    assert shares((rate,), (rate,), 1000)[1] <= 1 / 1000


class TestRareLabel:
    def test_the_temperature_makes_a_label_as_rare_as_is_wanted(self):
        listed = [("A", math.log(0.7)), ("B", math.log(0.1)), ("x", math.log(0.2))]
        rare = rare_label_of(listed, constrained=True, coldest=0.1, hottest=2.0)
        assert rare.label == "B"
        assert rare.rate == pytest.approx(0.045, abs=1e-6)
        assert 1 / (1 + math.exp(math.log(7) / rare.temperature)) == pytest.approx(rare.rate)

    @pytest.mark.parametrize(
        "listed", [[], [("A", -0.1)], [("A", math.log(0.5)), ("B", math.log(0.4999))], [("A", -1e-9), ("B", -30.0)]]
    )
    def test_where_no_label_is_rare_enough_or_too_rare_there_is_none(self, listed):
        assert rare_label_of(listed, constrained=True, coldest=0.1, hottest=2.0) is None


class TestWithoutLogProbabilities:
    def test_the_least_rate_is_below_the_true_one_but_for_its_error(self):
        rng, wrong = np.random.default_rng(7), 0
        for _ in range(2000):
            rare = int(rng.binomial(96, 0.35))
            wrong += min_rate(rare, 96, 2.0, 1.0) > powered(0.35, 2)
        # Below 2 are expected; two tokens a label are allowed for on top.
        assert wrong <= 9
        assert min_rate(0, 96, 2.0, 1.0) == 0
        assert 0.02 < min_rate(34, 96, 2.0, 1.0) < powered(0.35, 2)
