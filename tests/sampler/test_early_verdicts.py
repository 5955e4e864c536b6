"""Early verdicts: who may still be asked, against every order of answers; verdicts of few votes, against arrays."""

import functools
import itertools
import math

import numpy as np
import pytest

from sampler import Tally, Verdict, acceptance_probability, askable, tell, verdict
from sampler.chain import Comparison

# `askable` against every order and every answer that outstanding votes can have.


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


# Verdicts without arrays: those of the arrays, bit for bit, at every U beside a bound too.


FEW = [(1,), (2,), (3,), (5,), (8,), (89,), (1, 1), (2, 1), (1, 3), (8, 8), (2, 3, 2), (1,) * 5, (1, 2, 2, 2, 2)]
# What exp takes, its ends too, and what lies beyond.
INSIDE = [0.0, -0.0, 5e-324, -1e-300, 1e-16, math.log(2), -math.log(8), 40.0, -40.0, 700.0, -700.0]
OUTSIDE = [-math.inf, -1e308, -745.2, math.nextafter(-700, -701), math.nextafter(700, 701), 709.9, 1e308]


def log_ratio(rng: np.random.Generator) -> float:
    """Draw log r0: mostly where U decides, else anywhere."""
    kind = rng.integers(5)
    if kind < 3:
        return float(rng.normal(0, 2))
    return float(rng.uniform(-700, 700)) if kind == 3 else float(rng.choice(INSIDE + OUTSIDE))


def uniform_near(rng: np.random.Generator, found: float) -> float:
    """Draw U: at a bound, one of the next doubles beside it, or anywhere in [0, 1)."""
    beside = [found, math.nextafter(found, 1), math.nextafter(found, 0), rng.random(), 0.0, math.nextafter(1, 0)]
    return min(float(rng.choice(beside)), math.nextafter(1, 0))


def questions(seed: int, count: int):
    """Yield (log_r0, uniform, votes for, votes cast, promised, budgets)."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        budgets = FEW[rng.integers(len(FEW))]
        cast = rng.integers(0, np.array(budgets) + 1)
        votes = rng.binomial(cast, rng.choice([0.2, 0.5, 0.9, 1.0]))
        promised = rng.binomial(budgets - cast, rng.choice([0.0, 0.3, 1.0]))
        log_r0 = log_ratio(rng)
        # U near a bound of this tally, or of one that may still come.
        full = rng.integers(votes, votes + budgets - cast + 1)
        uniform = uniform_near(rng, float(acceptance_probability(log_r0, full, budgets)))
        yield log_r0, uniform, *(tuple(map(int, each)) for each in (votes, cast, promised)), budgets


def by_arrays(log_r0: float, uniform: float, votes: Counts, cast: Counts, budgets: Counts, wrong=lambda bounds: bounds):
    """Return the verdict by the acceptance probability of arrays, at the worst and the best that may still come.

    Args:
        wrong: changes U and the two bounds: a negative control.
    """
    given, left = np.array(votes), np.array(budgets) - np.array(cast)
    worst, best = (float(acceptance_probability(log_r0, each, np.array(budgets))) for each in (given, given + left))
    u, worst, best = wrong((uniform, worst, best))
    return Verdict.ACCEPT if u < worst else Verdict.REJECT if u >= best else Verdict.UNDECIDED


def test_verdicts_are_those_of_the_arrays():
    settled = set()
    for log_r0, uniform, votes, cast, _, budgets in questions(1, 3000):
        question = (log_r0, uniform, votes, cast, budgets)
        settled.add(verdict(*question))
        assert verdict(*question) is by_arrays(*question)
        assert verdict(log_r0, uniform, *map(np.array, (votes, cast, budgets))) is verdict(*question)
        comparison = Comparison(0, 1, "x", "y", log_r0, uniform, budgets)
        assert tell(comparison, Tally(votes, cast)) is verdict(*question)
    assert settled == set(Verdict)


def test_who_may_be_asked_is_as_with_arrays():
    answers = set()
    for log_r0, uniform, *counts in questions(2, 1500):
        may_ask = askable(log_r0, uniform, *counts)
        assert may_ask == askable(log_r0, uniform, *map(np.array, counts))
        assert {type(each) for each in may_ask} == {bool}
        answers |= set(may_ask)
    assert answers == {True, False}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda found: (math.nextafter(found[0], -1), *found[1:]),  # accepts at U = A too
        lambda found: (found[0], *(math.nextafter(bound, math.inf) for bound in found[1:])),  # one bit of A
        lambda found: (found[0], *(math.nextafter(bound, 0) for bound in found[1:])),
        lambda found: (found[0], found[1], found[1]),  # the best as if nothing were missing
        lambda found: (found[0], found[2], found[2]),
    ],
    ids=["U <= A", "a bit above", "a bit below", "best as the worst", "worst as the best"],
)
def test_a_wrong_comparison_or_bound_is_noticed(wrong):
    asked = [(log_r0, uniform, votes, cast, budgets) for log_r0, uniform, votes, cast, _, budgets in questions(3, 1000)]
    assert sum(verdict(*question) is not by_arrays(*question, wrong) for question in asked) > 5


@pytest.mark.parametrize("budgets", [*FEW, (1, 1, 2, 2, 2), (9, 10), (1,) * 7])
def test_every_verdict_of_all_votes_is_settled_at_the_very_bits_of_the_acceptance_probability(budgets):
    for log_r0 in [*INSIDE, *OUTSIDE, *np.random.default_rng(5).normal(0, 3, 20).tolist()]:
        for votes in itertools.product(*(range(budget + 1) for budget in budgets)):
            bound = float(acceptance_probability(log_r0, votes, budgets))
            if bound < 1:
                assert verdict(log_r0, bound, votes, budgets, budgets) is Verdict.REJECT
            if bound > 0:
                assert verdict(log_r0, math.nextafter(bound, 0), votes, budgets, budgets) is Verdict.ACCEPT
