"""Votes from log-probabilities: p as it should be, and votes with that law."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler.judges import NoDistributionError, NoPreferenceError, distribution, drawn_vote, label_preference

LOGITS = st.floats(-8, 0)


def logs_of(logits: dict[str, float]) -> list[tuple[str, float]]:
    total = math.log(sum(math.exp(logit) for logit in logits.values()))
    return [(token, logit - total) for token, logit in logits.items()]


@given(a=LOGITS, b=LOGITS, other=LOGITS, temperature=st.floats(0.1, 3))
def test_p_is_the_law_of_a_sampled_label_given_that_it_is_one(
    a: float, b: float, other: float, temperature: float
) -> None:
    logits = {"A": a, "B": b, "Well": other}
    weights = {token: math.exp(logit / temperature) for token, logit in logits.items()}
    sampled = {token: weight / sum(weights.values()) for token, weight in weights.items()}
    found = label_preference(logs_of(logits), temperature, confined=True, most_shortfall=1)
    assert found.first == pytest.approx(sampled["A"] / (sampled["A"] + sampled["B"]), abs=1e-12)


def test_the_shortfall_is_the_mass_of_other_replies() -> None:
    logs = [("A", math.log(0.3)), ("B", math.log(0.2)), ("Well", math.log(0.1))]
    assert label_preference(logs, 1.0, confined=True).shortfall == pytest.approx(0.5)
    with pytest.raises(NoPreferenceError, match=r"something else than A or B with probability 0.50, above 0.4"):
        label_preference(logs, 1.0, confined=True, most_shortfall=0.4)


def test_forgiven_spellings_count_only_where_a_sampled_reply_could_hold_them() -> None:
    logs = [(token, math.log(mass)) for token, mass in ((" A", 0.25), ("A", 0.25), ("b", 0.25), ("B", 0.25))]
    assert label_preference(logs[:2] + logs[3:], 1.0, confined=False).first == pytest.approx(2 / 3)
    assert label_preference(logs[:2] + logs[3:], 1.0, confined=True).first == pytest.approx(1 / 2)
    # At temperature 1/2 each spelling's probability is squared, not their sum's.
    assert label_preference([*logs[:2], ("B", math.log(0.5))], 0.5, confined=False).first == pytest.approx(1 / 3)


@pytest.mark.parametrize("logs", [[("A", -0.1)], [("B", -0.1)], [("Well", -0.1)], [], [("A", -0.1), ("B", -math.inf)]])
def test_p_is_not_known_without_both_labels(logs) -> None:
    with pytest.raises(NoPreferenceError):
        label_preference(logs, 1.0, confined=True)


@pytest.mark.parametrize("value", [math.nan, 0.5, math.inf, None, "-1", True, 10**400])
def test_what_is_no_log_probability_is_refused(value: float) -> None:
    with pytest.raises(NoDistributionError, match="is no log-probability"):
        label_preference([("A", value), ("B", -1.0)], 1.0, confined=True)


@pytest.mark.parametrize("temperature", [0.0, -1.0, 0.009, math.nan, math.inf])
def test_a_judge_at_temperature_zero_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="copies of each other"):
        label_preference([("A", -1.0), ("B", -1.0)], temperature, confined=True)


A, B = math.log(0.606), math.log(0.394)


@pytest.mark.parametrize("twice", ["A", "B"])
def test_a_token_that_is_listed_twice_counts_once(twice: str) -> None:
    # As vLLM did (#36660), which made .755 or .435 of .606.
    logs = [("A", A), ("B", B), (twice, {"A": A, "B": B}[twice])]
    assert label_preference(logs, 1.0, confined=True).first == pytest.approx(0.606)
    assert distribution(logs, (twice, {"A": A, "B": B}[twice])) == [("A", A), ("B", B)]


@pytest.mark.parametrize(
    ("logs", "chosen", "confined_to", "words"),
    [
        # vLLM #17876
        ([("A", 0.0), ("B", 0.0)], None, (), "all log-probabilities are 0"),
        ([("A", A), ("B", B), ("Well", math.log(0.0011))], None, (), "sum to 1.001"),
        # SGLang #32290
        ([("A", math.log(0.1)), ("B", math.log(0.5))], ("A", math.log(0.5)), (), "and in the list -2.303"),
        ([("A", A), ("B", B)], ("A", None), (), "None for 'A' is no log-probability"),
        ([("A", A), ("B", B)], ("Well", -0.5), (), "'Well' is missing"),
        ([("A", math.log(0.5)), ("B", math.log(0.47))], None, ("A", "B"), "hold 0.97"),
    ],
)
def test_what_is_no_distribution_is_refused(logs, chosen, confined_to, words: str) -> None:
    with pytest.raises(NoDistributionError, match=words):
        distribution(logs, chosen, confined_to)


def test_what_a_server_may_tell_is_a_distribution() -> None:
    rounded = [("A", A), ("B", B), ("Well", math.log(0.0009))]
    assert distribution(rounded, ("A", A + 0.0009), ("A", "B")) == rounded
    assert distribution([("A", 0.0)], ("A", 0.0)) == [("A", 0.0)]
    # A token beyond the likeliest ones was sampled; two tokens may have one text.
    assert distribution(rounded, ("Hm", -9.0)) == rounded
    assert distribution([("\ufffd", -3.0), ("\ufffd", -4.0)]) == [("\ufffd", -3.0), ("\ufffd", -4.0)]
    assert distribution([("A", -(10**400))], None) == [("A", -math.inf)]


def test_a_small_temperature_overflows_nowhere() -> None:
    logs = [("A", -0.001), ("B", -12.0)]
    assert label_preference(logs, 0.01, confined=True).first == 1.0
    swapped = [("A", -12.0), ("B", -0.001)]
    assert 0 <= label_preference(swapped, 0.01, confined=True).first < 1e-300


def test_a_vote_follows_p() -> None:
    uniforms = np.random.default_rng(20261121).random(10_000)
    votes = [drawn_vote(uniform, 0.3) for uniform in uniforms]
    # Binomial(10000, 0.3) has standard deviation 46.
    assert abs(sum(votes) - 3000) < 4 * math.sqrt(10_000 * 0.3 * 0.7)
    assert (drawn_vote(0.0, 0.0), drawn_vote(0.999, 1.0)) == (False, True)
    with pytest.raises(ValueError, match="must lie in"):
        drawn_vote(0.5, 1.1)
