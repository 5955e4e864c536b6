"""Replies of models: what is read as a label or a rating, however long they are.

Votes of log-probabilities, and sides.
"""

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler import presentations_of, shows_proposal_first
from sampler.chain import Purpose, stream
from sampler.judges import (
    NoDistributionError,
    NoPreferenceError,
    RatingScale,
    UnparsableReplyError,
    distribution,
    drawn_vote,
    in_order,
    label_is_for_proposal,
    label_preference,
    parse_label,
    parse_rating,
    preference_for_proposal,
)
from tests.support.outcomes import distribution_of

# Prompts, presentation and the reading of replies.


TEN = RatingScale(1, 10)


@pytest.mark.parametrize(
    ("reply", "label"), [("A", "A"), (" b\n", "B"), ("'A'.", "A"), ("“B.”", "B"), ("`A`", "A"), ("\t« b »", "B")]
)
def test_a_label_is_read_despite_case_quotes_full_stop_and_space(reply: str, label: str) -> None:
    assert parse_label(reply) == label


@pytest.mark.parametrize(
    ("reason", "replies"),
    [
        ("empty", [None, " \n"]),
        ("both A and B", ["A or B", "A\nB"]),
        # The last two are a Cyrillic A and a full-width one.
        ("not just A or B", ["Answer: A", "**A**", "AB", "A..", ".A", "\u0410", "\uff21"]),
    ],
)
def test_anything_else_is_unparsable_and_says_why(reason: str, replies: list[str | None]) -> None:
    for reply in replies:
        with pytest.raises(UnparsableReplyError, match=reason):
            parse_label(reply)


@given(st.text())
def test_no_reply_is_read_as_a_label_unless_that_letter_is_all_it_says(reply: str) -> None:
    try:
        label = parse_label(reply)
    except UnparsableReplyError:
        return
    assert [letter for letter in reply.upper() if letter.isalnum()] == [label]


@pytest.mark.parametrize(("reply", "rating"), [("7", 7), (" 10 ", 10), ("3.", 3), ('"1"', 1), ("07", 7)])
def test_a_rating_is_read(reply: str, rating: int) -> None:
    assert parse_rating(reply, TEN) == rating


@pytest.mark.parametrize(
    "reply", [None, "", "7/10", "7.5", "-3", "seven", "I give it a 7", "7 8", "0", "11", "٧", "1e1"]
)
def test_a_rating_off_the_scale_or_in_prose_is_unparsable(reply: str | None) -> None:
    with pytest.raises(UnparsableReplyError):
        parse_rating(reply, TEN)


def test_a_scale_may_begin_at_zero_and_must_rise() -> None:
    assert parse_rating("0", RatingScale(0, 10)) == 0
    assert RatingScale(0, 2).answers == ("0", "1", "2")
    with pytest.raises(ValueError, match="lowest must be below highest"):
        RatingScale(10, 10)


@pytest.mark.parametrize("proposal_first", [True, False])
def test_a_label_names_the_object_that_stood_there(proposal_first: bool) -> None:
    first, second = in_order("current", "proposal", proposal_first)
    for label, shown in (("A", first), ("B", second)):
        assert label_is_for_proposal(label, proposal_first) == (shown == "proposal")
    assert preference_for_proposal(0.75, proposal_first) == (0.75 if proposal_first else 0.25)


# A judge's reply may be a megabyte of anything: it is read at once, and read as before where it is short.


# Each is a way to make a pattern that is not linear try every division of the reply.
SHAPES = {
    "white space": "' ' * n + 'x'",
    "white space after a label": "'A' + ' ' * n + 'x'",
    "quotation marks after a label": "'A' + '\"' * n + 'x'",
    "white space on both sides": "' ' * (n // 2) + 'A' + ' ' * (n // 2) + 'x'",
    "marks and white space after a label": "'A' + ' \"' * (n // 2)",
    "full stops and white space": "'A' + '. ' * (n // 2)",
    "labels": "'A ' * (n // 2)",
    "numbers": "'7' * n",
    "half surrogates": "chr(0xd800) * n",
}
# A linear reading takes a few milliseconds a reply; the old pattern takes longer than anybody lives.
PATIENCE_S = 60
READ_ALL = """
import sys
from sampler.judges import RatingScale, UnparsableReplyError, parse_label, parse_rating

def length_of_error(read, reply):
    try:
        return read(reply)
    except UnparsableReplyError as error:
        return len(str(error))

n = 1_000_000
for name, shape in {shapes}.items():
    print(name, flush=True)
    reply = eval(shape)
    for read in (parse_label, lambda reply: parse_rating(reply, RatingScale(0, 10))):
        # The longest error: eighty characters, each written as an escape.
        assert length_of_error(read, reply) < 1000, name
print("all read")
"""


def test_a_megabyte_of_the_worst_shapes_is_read_at_once() -> None:
    # In a process of its own: a pattern that runs away cannot be stopped from outside.
    program = READ_ALL.replace("{shapes}", repr(SHAPES))
    try:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired as late:
        begun = late.stdout.decode().split("\n")[-2]
        pytest.fail(f"a reply of 1 MB, {begun}, was still being read after {PATIENCE_S} s")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all read\n")


@pytest.mark.parametrize("padding", [" " * 10_000, "\n" * 10_000, '"' * 10_000])
def test_an_answer_is_not_looked_for_in_a_book(padding: str) -> None:
    with pytest.raises(UnparsableReplyError, match="10001 characters"):
        parse_label(padding + "A")
    with pytest.raises(UnparsableReplyError, match="10001 characters"):
        parse_rating(padding + "7", TEN)


# Votes of a model from log-probabilities, and the side on which each vote shows the proposal.


# Votes from log-probabilities: p as it should be, and votes with that distribution.


LOGITS = st.floats(-8, 0)


def logs_of(logits: dict[str, float]) -> list[tuple[str, float]]:
    total = math.log(sum(math.exp(logit) for logit in logits.values()))
    return [(token, logit - total) for token, logit in logits.items()]


@given(a=LOGITS, b=LOGITS, other=LOGITS, temperature=st.floats(0.1, 3))
def test_p_is_the_distribution_of_a_sampled_label_given_that_it_is_one(
    a: float, b: float, other: float, temperature: float
) -> None:
    logits = {"A": a, "B": b, "Well": other}
    weights = {token: math.exp(logit / temperature) for token, logit in logits.items()}
    sampled = {token: weight / sum(weights.values()) for token, weight in weights.items()}
    found = label_preference(logs_of(logits), temperature, constrained=True, max_shortfall=1)
    assert found.first == pytest.approx(sampled["A"] / (sampled["A"] + sampled["B"]), abs=1e-12)


def test_the_shortfall_is_the_mass_of_other_replies() -> None:
    logs = [("A", math.log(0.3)), ("B", math.log(0.2)), ("Well", math.log(0.1))]
    assert label_preference(logs, 1.0, constrained=True).shortfall == pytest.approx(0.5)
    with pytest.raises(NoPreferenceError, match=r"something else than A or B with probability 0.50, above 0.4"):
        label_preference(logs, 1.0, constrained=True, max_shortfall=0.4)


def test_forgiven_spellings_count_only_where_a_sampled_reply_could_hold_them() -> None:
    logs = [(token, math.log(mass)) for token, mass in ((" A", 0.25), ("A", 0.25), ("b", 0.25), ("B", 0.25))]
    assert label_preference(logs[:2] + logs[3:], 1.0, constrained=False).first == pytest.approx(2 / 3)
    assert label_preference(logs[:2] + logs[3:], 1.0, constrained=True).first == pytest.approx(1 / 2)
    # At temperature 1/2 each spelling's probability is squared, not their sum's.
    assert label_preference([*logs[:2], ("B", math.log(0.5))], 0.5, constrained=False).first == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "logs",
    [
        *([(token, -0.1)] for token in ("A", "B", "Well")),
        [],
        # Marks of OpenAI and vLLM, and of llama.cpp, for what they do not tell: p would be 1.
        *([("A", -0.5), ("B", untold)] for untold in (-math.inf, -9999.0, -9999, -3.4028235e38)),
    ],
)
def test_p_is_not_known_without_both_labels(logs) -> None:
    with pytest.raises(NoPreferenceError):
        label_preference(logs, 1.0, constrained=True)


@pytest.mark.parametrize("value", [math.nan, 0.5, math.inf, None, "-1", True, 10**400])
def test_what_is_no_log_probability_is_refused(value: float) -> None:
    with pytest.raises(NoDistributionError, match="is no log-probability"):
        label_preference([("A", value), ("B", -1.0)], 1.0, constrained=True)


@pytest.mark.parametrize("temperature", [0.0, -1.0, 0.009, math.nan, math.inf])
def test_a_judge_at_temperature_zero_is_refused(temperature: float) -> None:
    with pytest.raises(ValueError, match="copies of each other"):
        label_preference([("A", -1.0), ("B", -1.0)], temperature, constrained=True)


A, B = math.log(0.606), math.log(0.394)


@pytest.mark.parametrize("off", [0.0, 0.0009, -0.0009])
@pytest.mark.parametrize("twice", ["A", "B"])
def test_a_token_that_is_listed_twice_counts_once(twice: str, off: float) -> None:
    # As vLLM did (#36660), which made .755 or .435 of .606. Of labels that hold half, no sum tells.
    for share in (1.0, 0.5):
        told = {"A": A + math.log(share), "B": B + math.log(share)}
        logs = [*told.items(), (twice, told[twice] + off)]
        assert label_preference(logs, 1.0, constrained=True).first == pytest.approx(0.606, abs=3e-4)
        assert [token for token, _ in distribution(logs, (twice, told[twice]))] == ["A", "B"]


@pytest.mark.parametrize(
    ("logs", "chosen", "constrained_to", "words"),
    [
        # vLLM #17876
        ([("A", 0.0), ("B", 0.0)], None, (), "sum to 2"),
        ([("A", A), ("B", B), ("Well", math.log(0.0011))], None, (), "sum to 1.001"),
        # SGLang #32290
        ([("A", math.log(0.1)), ("B", math.log(0.5))], ("A", math.log(0.5)), (), "and in the list -2.303"),
        ([("A", A), ("B", B)], ("A", None), (), "None for 'A' is no log-probability"),
        ([("A", A), ("B", B)], ("Well", -0.5), (), "'Well' is missing"),
        ([("A", math.log(0.5)), ("B", math.log(0.47))], None, ("A", "B"), "hold 0.97"),
    ],
)
def test_what_is_no_distribution_is_refused(logs, chosen, constrained_to, words: str) -> None:
    with pytest.raises(NoDistributionError, match=words):
        distribution(logs, chosen, constrained_to)


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
    assert label_preference(logs, 0.01, constrained=True).first == 1.0
    swapped = [("A", -12.0), ("B", -0.001)]
    assert 0 <= label_preference(swapped, 0.01, constrained=True).first < 1e-300


def test_a_vote_follows_p() -> None:
    assert distribution_of(lambda rng: drawn_vote(rng.random(), 0.3)) == pytest.approx(
        {True: 0.3, False: 0.7}, abs=1e-15
    )
    assert (drawn_vote(0.0, 0.0), drawn_vote(0.999, 1.0)) == (False, True)
    with pytest.raises(ValueError, match="must lie in"):
        drawn_vote(0.5, 1.1)


# Sides and draws of votes: functions of (seed, chain, step), independent from source to source.


# Agreement of two fair coins in n pairs has mean n/2 and standard deviation sqrt(n)/2; 4.5 of them leave a chance of
# 7e-6 for each of the some 500 pairs of columns below, with a fixed seed.
STEPS, CHAINS, SEED = 300, 4, 17
TOLERANCE = 4.5


def columns(max_votes, judges):
    """Return the sides by source and place: each a vector over all steps of all chains."""
    indices = [(chain, step) for chain in range(CHAINS) for step in range(1, STEPS + 1)]
    found = {
        ("people", asked): [shows_proposal_first(SEED, *index, asked) for index in indices]
        for asked in range(sum(max_votes))
    }
    for judge in judges:
        sides = np.array([presentations_of(SEED, *index, max_votes, judge, "random") for index in indices])
        found |= {(f"model {judge}", slot): sides[:, slot] for slot in range(max_votes[judge])}
    return {name: np.asarray(sides) for name, sides in found.items()}


def deviation(one, other):
    """Return by how many standard deviations two columns agree more or less often than fair coins."""
    return abs(float(np.mean(one == other)) - 0.5) * 2 * np.sqrt(len(one))


@pytest.mark.parametrize(
    ("max_votes", "judges"), [((3,), (0,)), ((2, 3), (1,)), ((3, 2), (0,)), ((4, 1, 3), (0, 2)), ((1, 5, 2), (0, 1, 2))]
)
def test_sides_of_any_two_sources_are_independent_at_any_places_and_max_votes(max_votes, judges):
    sides = columns(max_votes, judges)
    for (one, first), (other, second) in itertools.combinations(sides.items(), 2):
        assert deviation(first, second) < TOLERANCE, (one, other)
    # Neither does one step tell of the next, nor one chain of another.
    for first, second in itertools.product(sides.values(), repeat=2):
        assert deviation(first[1:], second[:-1]) < TOLERANCE
        assert deviation(first[STEPS:], second[:-STEPS]) < TOLERANCE


def test_equal_streams_are_found_out():
    sides = columns((3,), (0,))
    assert deviation(sides["model 0", 1], sides["model 0", 1].copy()) > TOLERANCE


def test_each_side_is_first_as_often():
    for name, sides in columns((3, 2), (0,)).items():
        assert deviation(sides, np.ones_like(sides)) < TOLERANCE, name


def test_the_side_of_each_time_that_people_are_asked_is_the_streams_next_number():
    numbers = stream(SEED, 2, 7, Purpose.PEOPLE_SIDES).random(20)
    assert [shows_proposal_first(SEED, 2, 7, asked) for asked in range(20)] == (numbers < 0.5).tolist()
