"""The N-vote rule, its average and its early verdicts: their values, for any number of judges; what is refused.

And who may still be asked.
"""

import decimal
import functools
import itertools
import math
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampler import Tally, Verdict, acceptance_probability, askable, marginal_acceptance, tell, verdict
from sampler.chain import Comparison
from sampler.rules.n_vote import InvalidPlugIn, NVote

# The N-vote rule, its average and its early verdicts.


decimal.getcontext().prec = 60
decimal.getcontext().Emax, decimal.getcontext().Emin = 10**9, -(10**9)


def exact(log_r0: float, votes_for, max_votes) -> Decimal:
    """Equation 12 with 60 digits."""
    odds = math.prod((Fraction(int(k), int(n) - int(k) + 1) for k, n in zip(votes_for, max_votes, strict=True)))
    if odds == 0 or log_r0 == -math.inf:
        return Decimal(0)
    return min(Decimal(1), Decimal(log_r0).exp() * Decimal(odds.numerator) / Decimal(odds.denominator))


@pytest.mark.parametrize("max_votes", [(1,), (4,), (8,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("r0", [1 / 50, 1.0, 7 / 3])
def test_acceptance_agrees_with_exact_arithmetic_for_every_tally(r0, max_votes):
    for tally in itertools.product(*(range(n + 1) for n in max_votes)):
        expected = float(exact(math.log(r0), tally, max_votes))
        assert acceptance_probability(math.log(r0), tally, max_votes) == pytest.approx(expected, rel=1e-14)
        assert NVote(max_votes).acceptance(math.log(r0), tally) == pytest.approx(expected, rel=1e-14)


def test_acceptance_broadcasts_over_leading_axes():
    log_r0 = np.log([[0.1], [1.0], [2.0]])
    votes = np.array([[0, 2], [1, 2], [3, 1], [2, 2]])
    max_votes = (3, 2)
    table = acceptance_probability(log_r0, votes, max_votes)
    assert table.shape == (3, 4)
    for row, column in itertools.product(range(3), range(4)):
        assert table[row, column] == acceptance_probability(log_r0[row, 0], votes[column], max_votes)


@pytest.mark.parametrize(
    ("log_r0", "votes_for", "expected"),
    [(800, 0, 0.0), (800, 1, 1.0), (800, 5, 1.0), (-800, 0, 0.0), (-800, 5, 0.0), (-math.inf, 5, 0.0)],
)
def test_base_ratios_beyond_double_precision_give_zero_or_one(log_r0, votes_for, expected):
    assert acceptance_probability(log_r0, [votes_for], [5]) == expected


@st.composite
def ballots(draw):
    """A comparison and every vote it may cost, in some order: (log_r0, uniform, max_votes, votes)."""
    max_votes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    log_r0 = draw(st.floats(-6, 6) | st.floats(-800, 800) | st.just(-math.inf))
    uniform = draw(st.floats(0, 1, exclude_max=True))
    order = draw(st.permutations([judge for judge, budget in enumerate(max_votes) for _ in range(budget)]))
    return log_r0, uniform, max_votes, [(judge, draw(st.booleans())) for judge in order]


@given(ballots())
@settings(deadline=None, derandomize=True, max_examples=300)
def test_an_early_verdict_is_the_verdict_of_all_votes(case):
    log_r0, uniform, max_votes, votes = case
    votes_for, votes_cast = [0] * len(max_votes), [0] * len(max_votes)
    said = [verdict(log_r0, uniform, votes_for, votes_cast, max_votes)]
    for judge, for_proposal in votes:
        votes_cast[judge] += 1
        votes_for[judge] += for_proposal
        said.append(verdict(log_r0, uniform, votes_for, votes_cast, max_votes))
    accepted = uniform < acceptance_probability(log_r0, votes_for, max_votes)
    settled = [each for each in said if each is not Verdict.UNDECIDED]
    assert set(settled) == {Verdict.ACCEPT if accepted else Verdict.REJECT}
    assert said[-len(settled) :] == settled, "a settled verdict was opened again"


# More judges and larger N than a double can multiply: right digits, no warning, and the old decisions elsewhere.


MIN_DOUBLE = Decimal("1e-307")


def quietly(call, *arguments):
    """Return what a call returns; fail where it warns or raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call(*arguments)
        except OverflowError as error:
            pytest.fail(f"{call.__name__} ended in {error!r}")
    assert not caught, f"{call.__name__} warned: {caught[0].message}"
    return result


def check(found: float, expected: Decimal) -> None:
    """Check to 1e-10 relative; what is smaller than doubles can tell apart need only be as small."""
    if expected < MIN_DOUBLE:
        assert 0 <= found <= float(MIN_DOUBLE)
    else:
        assert abs(Decimal(float(found)) / expected - 1) < Decimal("1e-10"), f"{found} is not {expected:.12e}"


@st.composite
def crowds(draw):
    """Many judges or large max_votes: (log_r0, uniform, votes for, votes cast, max_votes)."""
    judges = draw(st.sampled_from([1, 2, 8, 40, 150, 400]))
    most = draw(st.sampled_from([1, 3, 1000, 10**6, 10**12]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    max_votes = rng.integers(1, most + 1, judges)
    # From nearly all for the proposal to nearly all against, or both among the judges.
    share = draw(st.sampled_from([0.0, 0.02, 0.5, 0.98, 1.0])) if draw(st.booleans()) else rng.random(judges).round()
    cast = np.where(rng.random(judges) < 0.9, max_votes, rng.integers(0, max_votes + 1))
    votes = np.minimum(cast, np.maximum(1, (cast * share).astype(np.int64)))
    # Base ratios at which the product neither is surely 1 nor surely 0, and others.
    odds = math.fsum(math.log(max(k, 1) / (n - k + 1)) for k, n in zip(votes.tolist(), max_votes.tolist(), strict=True))
    log_r0 = draw(st.sampled_from([-odds, 0.0])) + draw(st.floats(-30, 3) | st.floats(-800, 800) | st.just(-math.inf))
    return log_r0, draw(st.floats(0, 1, exclude_max=True)), votes, cast, max_votes


@given(crowds())
@settings(deadline=None, derandomize=True, max_examples=200)
def test_acceptance_has_ten_digits_for_any_number_of_judges_and_any_n(case):
    log_r0, _, votes, _, max_votes = case
    check(quietly(acceptance_probability, log_r0, votes, max_votes), exact(log_r0, votes, max_votes))


@given(crowds())
@settings(deadline=None, derandomize=True, max_examples=100)
def test_verdicts_are_those_of_exact_arithmetic(case):
    log_r0, uniform, votes, cast, max_votes = case
    worst, best = exact(log_r0, votes, max_votes), exact(log_r0, votes + max_votes - cast, max_votes)
    if any(abs(Decimal(uniform) - bound) < Decimal("1e-10") * bound for bound in (worst, best)):
        return
    expected = Verdict.ACCEPT if uniform < worst else Verdict.REJECT if uniform >= best else Verdict.UNDECIDED
    assert quietly(verdict, log_r0, uniform, votes, cast, max_votes) is expected


@pytest.mark.parametrize("max_votes", [(5,), (1, 6, 2), (4, 4, 3, 1), (1000,) * 150], ids=len)
def test_one_more_vote_never_lowers_acceptance_whichever_side_of_the_doubles_it_is_on(max_votes):
    rng = np.random.default_rng(4)
    for log_r0 in (-900.0, -650.0, *rng.uniform(-6, 6, 20), 650.0):
        votes = rng.integers(0, max_votes)
        before = quietly(acceptance_probability, log_r0, votes, max_votes)
        for judge in rng.permutation(np.repeat(np.arange(len(max_votes)), 4)):
            votes[judge] = min(votes[judge] + rng.integers(1, max(2, max_votes[judge] // 3)), max_votes[judge])
            after = quietly(acceptance_probability, log_r0, votes, max_votes)
            assert before <= after <= 1
            before = after
        assert before > 0 or len(max_votes) < 150


def test_a_product_that_leaves_the_doubles_on_its_way_settles_the_verdict_all_the_same():
    max_votes, votes = [1000] * 400, [1000] * 200 + [1] * 200
    # 1000^200, and then 1000^-200: the factors' product is 1, and the acceptance exp(-1).
    for uniform, expected in ((0.36, Verdict.ACCEPT), (0.38, Verdict.REJECT)):
        assert quietly(verdict, -1.0, uniform, votes, max_votes, max_votes) is expected


def test_a_crowd_is_asked_until_its_verdict_is_settled():
    max_votes, none = [1000] * 150, [0] * 150
    # The last to be asked finds the verdict open: everybody may be asked for one more vote.
    assert quietly(askable, 0.0, 0.5, none, none, none, max_votes) == (True,) * 150
    all_for = [1000] * 149 + [0]
    # 1000^149 for, K + 1 of the last judge still to come: one vote for accepts, only 1000 against reject.
    assert quietly(verdict, 0.0, 0.5, all_for, [*max_votes[:-1], 0], max_votes) is Verdict.UNDECIDED
    assert quietly(askable, 0.0, 0.5, all_for, [*max_votes[:-1], 0], none, max_votes) == (False,) * 149 + (True,)
    assert quietly(verdict, 0.0, 0.5, [*all_for[:-1], 1], [*max_votes[:-1], 1], max_votes) is Verdict.ACCEPT


def averaged(r0: Fraction, chance: Fraction, budget: int) -> Decimal:
    """Return the mean acceptance of one judge in rational arithmetic, p = a / 2^b."""
    top, bottom = chance.numerator, chance.denominator
    total = sum(
        math.comb(budget, k)
        * top**k
        * (bottom - top) ** (budget - k)
        * min(Fraction(1), r0 * Fraction(k, budget - k + 1))
        for k in range(1, budget + 1)
    )
    total = Fraction(total)
    return Decimal(total.numerator) / Decimal(total.denominator) / Decimal(bottom) ** budget


@pytest.mark.parametrize("budget", [500, 501, 1029, 1030, 1500])
@pytest.mark.parametrize(
    ("r0", "chance"), [(1, Fraction(1, 2)), (Fraction(1, 8), Fraction(7, 8)), (4, Fraction(1, 16))]
)
def test_the_mean_acceptance_of_one_judge_with_a_large_n(budget, r0, chance):
    expected = averaged(Fraction(r0), chance, budget)
    check(quietly(marginal_acceptance, math.log(r0), [float(chance)], [budget]), expected)
    check(quietly(NVote((budget,)).mean_acceptance, math.log(r0), [float(chance)]), expected)


@pytest.mark.parametrize("max_votes", [(1030, 2), (3, 600, 1)])
def test_the_mean_acceptance_of_several_judges_is_the_sum_over_the_others_tallies(max_votes):
    rng = np.random.default_rng(1)
    chances = [Fraction(int(number), 16) for number in rng.integers(1, 16, len(max_votes))]
    largest = max_votes.index(max(max_votes))
    others = [index for index in range(len(max_votes)) if index != largest]
    expected = Decimal(0)
    for tally in itertools.product(*(range(1, max_votes[index] + 1) for index in others)):
        factor, distribution = Fraction(1), Fraction(1)
        for index, k in zip(others, tally, strict=True):
            n, p = max_votes[index], chances[index]
            factor, distribution = (
                factor * Fraction(k, n - k + 1),
                distribution * math.comb(n, k) * p**k * (1 - p) ** (n - k),
            )
        mean = averaged(factor * Fraction(1, 4), chances[largest], max_votes[largest])
        expected += mean * Decimal(distribution.numerator) / Decimal(distribution.denominator)
    check(quietly(marginal_acceptance, math.log(0.25), [float(chance) for chance in chances], max_votes), expected)


def test_the_mean_acceptance_of_a_crowd_of_which_each_votes_once():
    # All 150 must be for the proposal: the factors are 1 or 0. With 2^150 tallies nobody could add them up one by one.
    chances = np.full((3, 150), [[0.5], [0.9], [0.999]])
    found = marginal_acceptance(np.log([0.5, 1.0, 3.0]), chances, [1] * 150)
    np.testing.assert_allclose(found, [0.5 * 0.5**150, 0.9**150, 0.999**150], rtol=1e-10)
    assert marginal_acceptance(0.0, [1.0] * 150, [2] * 150) == pytest.approx(1.0, rel=1e-12)


def test_the_control_takes_a_large_n_too():
    # With a judge in no doubt it is worked out by hand.
    assert quietly(InvalidPlugIn((1032,)).mean_acceptance, math.log(0.25), [1.0]) == pytest.approx(1.0, rel=1e-10)
    assert quietly(InvalidPlugIn((1032,)).mean_acceptance, 0.0, [0.0]) == 0.0
    # At an even chance p / (1 - p) is 1; K / (N - K) is about 1 up to its spread of 2 / sqrt(N).
    mean = float(quietly(InvalidPlugIn((1032,)).mean_acceptance, 0.0, [0.5]))
    assert mean == pytest.approx(1 - 2 / math.sqrt(2 * math.pi * 1032), abs=2 / 1032)


def test_a_budget_beyond_all_counting_is_refused_by_name():
    assert acceptance_probability(0.0, [2**62], [2**62]) == 1.0
    assert acceptance_probability(0.0, [1], [2**62]) == 2.0**-62
    for budget in (2**63 - 1, 2.0**70, np.uint64(2**64 - 1)):
        with pytest.raises(ValueError, match=r"max_votes must be whole numbers of at most 2\^62"):
            acceptance_probability(0.0, [0], [budget])


# Bad arguments of the acceptance functions are refused by name.


OPEN = {"log_r0": 0.0, "uniform": 0.5, "votes_for": [1, 1], "votes_cast": [1, 2], "max_votes": [2, 3]}
FUNCTIONS = {
    "acceptance_probability": (acceptance_probability, {"log_r0": 0.0, "votes_for": [1, 2], "max_votes": [2, 3]}),
    "marginal_acceptance": (marginal_acceptance, {"log_r0": 0.0, "preference": [0.5, 0.2], "max_votes": [2, 3]}),
    "verdict": (verdict, OPEN),
    "askable": (askable, OPEN | {"promised": [0, 1]}),
}

BAD = {
    "log_r0": [math.nan, math.inf],
    "uniform": [1.0, -1e-300, 1.5, math.nan],
    "preference": [[0.5], [0.5, 1.1], [-0.1, 0.5], [0.5, math.nan], [0.5, 0.5, 0.5]],
    "max_votes": [[0, 3], [2.5, 3], [2], [2, 3, 1], [-1, 3], [math.nan, 3], [math.inf, 3], [True, True], []],
    "votes_for": [[3, 2], [-1, 2], [0.5, 2], [1], [1, 2, 0], [math.nan, 2], [True, False], ["1", "2"]],
    "votes_cast": [[3, 2], [1, 4], [1, -1], [0, 0], [1.5, 2], [1], [1, 2, 0], [math.nan, 2]],
    "promised": [[2, 0], [0, 2], [-1, 0], [0.5, 0], [0], [0, 0, 0], [math.nan, 0]],
}

# What a value spoils may be told from either side: too many votes for, or too few cast.
ALSO_NAMED = {"max_votes": "votes_cast|votes_for|preference|promised|cast", "votes_cast": "votes_for|promised|cast"}


def written_as(container: type, arguments: dict) -> dict:
    """Return the arguments with lists or, as campaigns have them, tuples for counts."""
    return {name: container(each) if isinstance(each, list) else each for name, each in arguments.items()}


@pytest.mark.parametrize("container", [list, tuple])
@pytest.mark.parametrize(
    ("function", "argument", "value"),
    [(name, argument, value) for name, (_, good) in FUNCTIONS.items() for argument in good for value in BAD[argument]],
)
def test_a_bad_argument_is_refused_by_name(function, argument, value, container):
    call, good = FUNCTIONS[function]
    call(**written_as(container, good))
    with pytest.raises(ValueError, match=f"{argument}|{ALSO_NAMED.get(argument, argument)}"):
        call(**written_as(container, good | {argument: value}))


def test_a_budget_of_no_votes_is_refused_where_nobody_has_voted():
    for container in (list, tuple):
        with pytest.raises(ValueError, match="max_votes must be at least 1"):
            verdict(0.0, 0.5, *(container(each) for each in ([0, 0], [0, 0], [0, 3])))


@pytest.mark.parametrize("log_r0", [0, np.float32(0), np.array(0.0)])
def test_a_base_ratio_may_be_any_single_number(log_r0):
    assert verdict(log_r0, 0.9, [0], [0], [1]) is verdict(0.0, 0.9, [0], [0], [1])


# `askable` against every order and every answer that outstanding votes can have.


MAX_VOTES = [(1,), (3,), (5,), (1, 2), (2, 2), (3, 2), (1, 1, 2)]
QUESTIONS = [(log_r0, uniform) for log_r0 in (-3.0, -1.2, 0.0, 1.5, 5.0) for uniform in (0.0, 0.07, 0.45, 0.93)]

Counts = tuple[int, ...]


def plus_one(counts: Counts, judge: int, by: int = 1) -> Counts:
    return tuple(count + by * (index == judge) for index, count in enumerate(counts))


def tallies(max_votes: Counts):
    """Every (votes for, votes cast) within the max_votes."""
    for cast in itertools.product(*(range(n + 1) for n in max_votes)):
        for votes in itertools.product(*(range(n + 1) for n in cast)):
            yield votes, cast


def brute_force(log_r0: float, uniform: float, max_votes: Counts):
    """Return can_be_late(votes, cast, asked): is there an order and are there answers that make a vote late?"""

    @functools.cache
    def is_open(votes: Counts, cast: Counts) -> bool:
        return verdict(log_r0, uniform, votes, cast, max_votes) is Verdict.UNDECIDED

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


@pytest.mark.parametrize("max_votes", MAX_VOTES)
def test_askable_means_that_no_order_and_no_answers_make_a_vote_late(max_votes):
    for log_r0, uniform in QUESTIONS:
        can_be_late = brute_force(log_r0, uniform, max_votes)
        for votes, cast in tallies(max_votes):
            room = [n - c for n, c in zip(max_votes, cast, strict=True)]
            for promised in itertools.product(*(range(left + 1) for left in room)):
                expected = tuple(
                    promised[judge] < room[judge] and not can_be_late(votes, cast, plus_one(promised, judge))
                    for judge in range(len(max_votes))
                )
                assert askable(log_r0, uniform, votes, cast, promised, max_votes) == expected
                # Where nothing is promised, an open comparison can always ask somebody.
                if not any(promised):
                    assert any(expected) == (verdict(log_r0, uniform, votes, cast, max_votes) is Verdict.UNDECIDED)


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
    """Yield (log_r0, uniform, votes for, votes cast, promised, max_votes)."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        max_votes = FEW[rng.integers(len(FEW))]
        cast = rng.integers(0, np.array(max_votes) + 1)
        votes = rng.binomial(cast, rng.choice([0.2, 0.5, 0.9, 1.0]))
        promised = rng.binomial(max_votes - cast, rng.choice([0.0, 0.3, 1.0]))
        log_r0 = log_ratio(rng)
        # U near a bound of this tally, or of one that may still come.
        full = rng.integers(votes, votes + max_votes - cast + 1)
        uniform = uniform_near(rng, float(acceptance_probability(log_r0, full, max_votes)))
        yield log_r0, uniform, *(tuple(map(int, each)) for each in (votes, cast, promised)), max_votes


def by_arrays(
    log_r0: float, uniform: float, votes: Counts, cast: Counts, max_votes: Counts, wrong=lambda bounds: bounds
):
    """Return the verdict by the acceptance probability of arrays, at the worst and the best that may still come.

    Args:
        wrong: changes U and the two bounds: a negative control.
    """
    given, left = np.array(votes), np.array(max_votes) - np.array(cast)
    worst, best = (float(acceptance_probability(log_r0, each, np.array(max_votes))) for each in (given, given + left))
    u, worst, best = wrong((uniform, worst, best))
    return Verdict.ACCEPT if u < worst else Verdict.REJECT if u >= best else Verdict.UNDECIDED


def test_verdicts_are_those_of_the_arrays():
    settled = set()
    for log_r0, uniform, votes, cast, _, max_votes in questions(1, 3000):
        question = (log_r0, uniform, votes, cast, max_votes)
        settled.add(verdict(*question))
        assert verdict(*question) is by_arrays(*question)
        assert verdict(log_r0, uniform, *map(np.array, (votes, cast, max_votes))) is verdict(*question)
        comparison = Comparison(0, 1, "x", "y", log_r0, uniform, max_votes)
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
    asked = [
        (log_r0, uniform, votes, cast, max_votes) for log_r0, uniform, votes, cast, _, max_votes in questions(3, 1000)
    ]
    assert sum(verdict(*question) is not by_arrays(*question, wrong) for question in asked) > 5


@pytest.mark.parametrize("max_votes", [*FEW, (1, 1, 2, 2, 2), (9, 10), (1,) * 7])
def test_every_verdict_of_all_votes_is_settled_at_the_very_bits_of_the_acceptance_probability(max_votes):
    for log_r0 in [*INSIDE, *OUTSIDE, *np.random.default_rng(5).normal(0, 3, 20).tolist()]:
        for votes in itertools.product(*(range(budget + 1) for budget in max_votes)):
            bound = float(acceptance_probability(log_r0, votes, max_votes))
            if bound < 1:
                assert verdict(log_r0, bound, votes, max_votes, max_votes) is Verdict.REJECT
            if bound > 0:
                assert verdict(log_r0, math.nextafter(bound, 0), votes, max_votes, max_votes) is Verdict.ACCEPT
