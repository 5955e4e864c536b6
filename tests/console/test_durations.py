"""Durations on the researcher's pages."""

import pytest

from prefmh_web.console.durations import in_words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"), (8.26, "8.3 s"), (9.96, "10 s"), (99.4, "99 s"), (99.6, "2 min"), (720, "12 min"),
        (5_999, "1 h 40 min"), (5_900, "98 min"), (12_000, "3 h 20 min"), (86_400, "24 h"), (172_800, "2 days"),
        (432_000, "5 days"), (10**9, "11,574 days"),
    ],
)  # fmt: skip
def test_a_duration_reads_as_people_say_it(seconds, words):
    assert in_words(seconds) == words
