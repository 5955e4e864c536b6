"""A judge's reply may be a megabyte of anything: it is read at once, and read as before where it is short."""

import subprocess
import sys

import pytest

from sampler.judges import RatingScale, UnparsableReplyError, parse_label, parse_rating

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
