"""`askable` against every order and every answer that outstanding votes can have."""

import functools
import itertools

import pytest

from sampler import Verdict, askable, verdict

BUDGETS = [(1,), (3,), (5,), (1, 2), (2, 2), (3, 2), (1, 1, 2)]
QUESTIONS = [(log_r0, uniform) for log_r0 in (-3.0, -1.2, 0.0, 1.5, 5.0) for uniform in (0.0, 0.07, 0.45, 0.93)]

Counts = tuple[int, ...]


def plus_one(counts: Counts, judge: int, by: int = 1) -> Counts:
    return tuple(count + by * (place == judge) for place, count in enumerate(counts))


def tallies(budgets: Counts):
    """Every (votes for, votes cast) within the budgets."""
    for cast in itertools.product(*(range(n + 1) for n in budgets)):
        for votes in itertools.product(*(range(n + 1) for n in cast)):
            yield votes, cast


def brute_force(log_r0: float, uniform: float, budgets: Counts):
    """Return can_be_late(votes, cast, asked): is there an order and are there answers that make a vote late?"""

    @functools.cache
    def is_open(votes: Counts, cast: Counts) -> bool:
        return verdict(log_r0, uniform, votes, cast, budgets) is Verdict.UNDECIDED

    @functools.cache
    def can_be_late(votes: Counts, cast: Counts, asked: Counts) -> bool:
        arriving = [judge for judge, count in enumerate(asked) if count]
        if arriving and not is_open(votes, cast):
            return True
        return any(
            can_be_late(plus_one(votes, judge, answer), plus_one(cast, judge), plus_one(asked, judge, -1))
            for judge in arriving
            for answer in (0, 1)
        )

    return can_be_late


@pytest.mark.parametrize("budgets", BUDGETS)
def test_askable_means_that_no_order_and_no_answers_make_a_vote_late(budgets):
    for log_r0, uniform in QUESTIONS:
        can_be_late = brute_force(log_r0, uniform, budgets)
        for votes, cast in tallies(budgets):
            room = [n - c for n, c in zip(budgets, cast, strict=True)]
            for promised in itertools.product(*(range(left + 1) for left in room)):
                expected = tuple(
                    promised[judge] < room[judge] and not can_be_late(votes, cast, plus_one(promised, judge))
                    for judge in range(len(budgets))
                )
                assert askable(log_r0, uniform, votes, cast, promised, budgets) == expected


@pytest.mark.parametrize("budgets", BUDGETS)
def test_an_open_comparison_with_nothing_promised_can_always_ask_somebody(budgets):
    for log_r0, uniform in QUESTIONS:
        for votes, cast in tallies(budgets):
            is_open = verdict(log_r0, uniform, votes, cast, budgets) is Verdict.UNDECIDED
            assert any(askable(log_r0, uniform, votes, cast, [0] * len(budgets), budgets)) == is_open
