"""Replies of models: what is read as a label or a rating, however long they are."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampler.judges import (
    RatingScale,
    UnparsableReplyError,
    in_order,
    label_is_for_proposal,
    parse_label,
    parse_rating,
    preference_for_proposal,
)

# Prompts, presentation and the reading of replies.


TEN = RatingScale(1, 10)


@pytest.mark.parametrize(
    ("reply", "label"), [("A", "A"), (" b\n", "B"), ("'A'.", "A"), ("“B.”", "B"), ("`A`", "A"), ("\t« b »", "B")]
)
def test_a_label_is_read_despite_case_quotes_full_stop_and_space(reply: str, label: str) -> None:
    assert parse_label(reply) == label


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (None, "empty"),
        (" \n", "empty"),
        ("A or B", "both A and B"),
        ("A\nB", "both A and B"),
        ("Answer: A", "not just A or B"),
        ("**A**", "not just A or B"),
        ("AB", "not just A or B"),
        ("A..", "not just A or B"),
        (".A", "not just A or B"),
        ("\u0410", "not just A or B"),  # a Cyrillic A
        ("\uff21", "not just A or B"),  # a full-width A
    ],
)
def test_anything_else_is_unparsable_and_says_why(reply: str | None, reason: str) -> None:
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
    for read, answer in ((parse_label, "A"), (lambda reply: parse_rating(reply, RatingScale()), "7")):
        with pytest.raises(UnparsableReplyError, match="10001 characters"):
            read(padding + answer)
