"""A rare label at its rate: how often the sequential tests err, on servers that sample plainly and on others."""

import math

import numpy as np
import pytest

from sampler.judges import ERROR, RareLabel, least_rate, tilt_of

RATE = 0.045
RUNS = 4000
# Of a count whose mean is below RUNS * 2e / (1 - e) = 8: more than 20 come with a probability of 1 in 10,000.
MOST_WRONG = 20


def told(rate, true_rate, runs=RUNS, most=3000, seed=20261124):
    rng = np.random.default_rng(seed)
    found, asked = [], []
    for _ in range(runs):
        seen = RareLabel(rate)
        for uniform in rng.random(most):
            if seen.add(bool(uniform < true_rate)):
                break
        found.append(seen.told)
        asked.append(seen.replies)
    return found, asked


def powered(rate, power):
    odds = (rate / (1 - rate)) ** power
    return odds / (1 + odds)


@pytest.mark.parametrize("rate", [0.03, RATE, 0.15])
def test_a_server_that_samples_plainly_is_seldom_said_to_do_otherwise(rate):
    found, asked = told(rate, rate)
    wrong = sum(each in ("sharper", "flatter") for each in found)
    assert wrong <= MOST_WRONG
    assert None not in found
    # Its cost, in replies; few need more than the check asks for.
    assert np.mean(asked) < 250
    assert sum(count > 480 for count in asked) < 0.03 * RUNS


@pytest.mark.parametrize(("power", "name"), [(2, "sharper"), (3, "sharper"), (0.5, "flatter"), (0.4, "flatter")])
def test_a_law_at_half_or_twice_the_temperature_is_found(power, name):
    found, _ = told(RATE, powered(RATE, power))
    assert RUNS - found.count(name) <= MOST_WRONG


def test_a_label_that_is_taken_away_is_always_found_after_a_stated_number_of_replies():
    found, asked = told(RATE, 0.0, runs=10)
    assert set(found) == {"sharper"}
    assert set(asked) == {math.ceil(math.log((1 - ERROR) / ERROR) / math.log((1 - powered(RATE, 2)) / (1 - RATE)))}


def test_the_bound_would_not_hold_for_a_server_of_another_rate():
    """The negative control: at a rate that is not the plain one, more than the bound are said not to be plain."""
    found, _ = told(RATE, 0.09)
    assert sum(each in ("sharper", "flatter") for each in found) > 5 * MOST_WRONG


class TestTilt:
    def test_the_temperature_makes_a_label_as_rare_as_is_wanted(self):
        listed = [("A", math.log(0.7)), ("B", math.log(0.1)), ("x", math.log(0.2))]
        tilt = tilt_of(listed, confined=True, coldest=0.1, hottest=2.0)
        assert tilt.label == "B"
        assert tilt.rate == pytest.approx(0.045, abs=1e-6)
        assert 1 / (1 + math.exp(math.log(7) / tilt.temperature)) == pytest.approx(tilt.rate)

    @pytest.mark.parametrize(
        "listed", [[], [("A", -0.1)], [("A", math.log(0.5)), ("B", math.log(0.4999))], [("A", -1e-9), ("B", -30.0)]]
    )
    def test_where_no_label_is_rare_enough_or_too_rare_there_is_none(self, listed):
        assert tilt_of(listed, confined=True, coldest=0.1, hottest=2.0) is None


class TestWithoutLogProbabilities:
    def test_the_least_rate_is_below_the_true_one_but_for_its_error(self):
        rng, wrong = np.random.default_rng(7), 0
        for _ in range(2000):
            rare = int(rng.binomial(96, 0.35))
            wrong += least_rate(rare, 96, 2.0, 1.0) > powered(0.35, 2)
        # Below 2 are expected; two tokens a label are allowed for on top.
        assert wrong <= 9
        assert least_rate(0, 96, 2.0, 1.0) == 0
        assert 0.02 < least_rate(34, 96, 2.0, 1.0) < powered(0.35, 2)

    @pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
    def test_a_rate_that_is_none_is_refused(self, rate):
        with pytest.raises(ValueError, match="rate must lie"):
            RareLabel(rate)
