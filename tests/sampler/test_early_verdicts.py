"""Early verdicts: who may still be asked, against every order of answers; the table of products, against the arrays."""

import functools
import itertools
import math

import numpy as np
import pytest

from sampler import Tally, Verdict, acceptance_probability, askable, tell, verdict
from sampler.acceptance import Bounds, bounds, table_for
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


# Verdicts from a table of products: those of the arrays, bit for bit, at every U beside a bound too.


TABLED = [(1,), (2,), (3,), (5,), (8,), (89,), (1, 1), (2, 1), (1, 3), (8, 8), (2, 3, 2), (1,) * 5, (1, 2, 2, 2, 2)]
# With a table, at its ends too; and without: beyond what exp takes.
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
        budgets = TABLED[rng.integers(len(TABLED))]
        cast = rng.integers(0, np.array(budgets) + 1)
        votes = rng.binomial(cast, rng.choice([0.2, 0.5, 0.9, 1.0]))
        promised = rng.binomial(budgets - cast, rng.choice([0.0, 0.3, 1.0]))
        log_r0 = log_ratio(rng)
        # U near a bound of this tally, or of one that may still come.
        full = rng.integers(votes, votes + budgets - cast + 1)
        uniform = uniform_near(rng, float(acceptance_probability(log_r0, full, budgets)))
        yield log_r0, uniform, *(tuple(map(int, each)) for each in (votes, cast, promised)), budgets


def by_arrays(call, log_r0: float, uniform: float, *counts: tuple[int, ...]):
    """Return what `call` gives for counts that are arrays, for which there is no table."""
    return call(log_r0, uniform, *map(np.array, counts))


def from_table(found: Bounds) -> Verdict:
    """Return the verdict of two bounds."""
    if found.accepts(found.lowest):
        return Verdict.ACCEPT
    return Verdict.UNDECIDED if found.accepts(found.highest) else Verdict.REJECT


def differences(change, count: int = 1000) -> int:
    """Return how many verdicts from the table, its bounds changed, are not those of the arrays."""
    differ = 0
    for log_r0, uniform, votes, cast, _, budgets in questions(3, count):
        found = bounds(log_r0, uniform, votes, cast, budgets)
        if found is not None:
            differ += from_table(change(found)) is not by_arrays(verdict, log_r0, uniform, votes, cast, budgets)
    return differ


def test_verdicts_are_those_of_the_arrays():
    tabled, settled = 0, set()
    for log_r0, uniform, votes, cast, _, budgets in questions(1, 3000):
        question = (log_r0, uniform, votes, cast, budgets)
        tabled += bounds(*question) is not None
        assert bounds(log_r0, uniform, *map(np.array, (votes, cast, budgets))) is None
        settled.add(verdict(*question))
        assert verdict(*question) is by_arrays(verdict, *question)
        comparison = Comparison(0, 1, "x", "y", log_r0, uniform, budgets)
        assert tell(comparison, Tally(votes, cast)) is verdict(*question)
    assert tabled > 2500
    assert settled == set(Verdict)


def test_who_may_be_asked_is_as_with_arrays():
    answers = set()
    for question in questions(2, 1500):
        may_ask = askable(*question)
        assert may_ask == by_arrays(askable, *question)
        assert {type(each) for each in may_ask} == {bool}
        answers |= set(may_ask)
    assert answers == {True, False}


@pytest.mark.parametrize(
    "wrong",
    [
        lambda found: found._replace(uniform=math.nextafter(found.uniform, -1)),  # accepts at U = A too
        lambda found: found._replace(r0=math.nextafter(found.r0, math.inf)),  # one bit of exp(log r0)
        lambda found: found._replace(r0=math.nextafter(found.r0, 0)),
        lambda found: found._replace(highest=max(found.highest - 1, found.lowest)),  # one vote fewer
        lambda found: found._replace(lowest=min(found.lowest + 1, found.highest)),
    ],
    ids=["U <= A", "r0 a bit above", "r0 a bit below", "best a vote less", "worst a vote more"],
)
def test_a_wrong_comparison_or_bound_is_noticed(wrong):
    assert differences(wrong) > 5


@pytest.mark.parametrize("budgets", [*TABLED, (1, 1, 2, 2, 2), (9, 10), (1,) * 7])
def test_every_bound_has_the_bits_of_the_acceptance_probability(budgets):
    table = table_for(budgets)
    full = list(itertools.product(*(range(budget + 1) for budget in budgets)))
    assert sorted(map(table.place, full)) == list(range(len(table.products)))
    for log_r0 in [*INSIDE, *np.random.default_rng(5).normal(0, 3, 20).tolist()]:
        found = bounds(log_r0, 0.5, (0,) * len(budgets), (0,) * len(budgets), budgets)
        for votes in full:
            bound = min(1.0, found.r0 * table.products[table.place(votes)])
            assert bound == acceptance_probability(log_r0, votes, budgets)
