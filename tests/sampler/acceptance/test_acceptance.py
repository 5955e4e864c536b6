"""The N-vote rule, its average and its early verdicts."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sampler import Verdict, acceptance_probability, marginal_acceptance, verdict


def by_fractions(r0: Fraction, votes_for: tuple[int, ...], budgets: tuple[int, ...]) -> Fraction:
    """Equation 12, in rational arithmetic."""
    odds = math.prod((Fraction(k, n - k + 1) for k, n in zip(votes_for, budgets, strict=True)), start=Fraction(1))
    return min(Fraction(1), r0 * odds)


@pytest.mark.parametrize(
    ("r0", "votes_for", "budgets", "expected"),
    [
        (Fraction(1), (0,), (1,), Fraction(0)),
        (Fraction(1), (1,), (1,), Fraction(1)),
        (Fraction(1), (1,), (2,), Fraction(1, 2)),
        (Fraction(1), (1,), (8,), Fraction(1, 8)),
        (Fraction(1, 8), (3,), (4,), Fraction(3, 16)),
        (Fraction(3), (1,), (4,), Fraction(3, 4)),
        (Fraction(1, 3), (2, 1), (3, 2), Fraction(1, 6)),
        (Fraction(5), (3, 0), (3, 9), Fraction(0)),
    ],
)
def test_acceptance_has_the_values_worked_out_by_hand(r0, votes_for, budgets, expected):
    assert by_fractions(r0, votes_for, budgets) == expected
    assert acceptance_probability(math.log(r0), votes_for, budgets) == pytest.approx(float(expected), rel=1e-14)


@pytest.mark.parametrize("budgets", [(1,), (4,), (8,), (2, 3), (1, 2, 3)])
@pytest.mark.parametrize("r0", [Fraction(1, 50), Fraction(1), Fraction(7, 3)])
def test_acceptance_agrees_with_rational_arithmetic_for_every_tally(r0, budgets):
    for tally in itertools.product(*(range(n + 1) for n in budgets)):
        expected = float(by_fractions(r0, tally, budgets))
        assert acceptance_probability(math.log(r0), tally, budgets) == pytest.approx(expected, rel=1e-14)


def test_acceptance_broadcasts_over_leading_axes():
    log_r0 = np.log([[0.1], [1.0], [2.0]])
    votes = np.array([[0, 2], [1, 2], [3, 1], [2, 2]])
    budgets = (3, 2)
    table = acceptance_probability(log_r0, votes, budgets)
    assert table.shape == (3, 4)
    for row, column in itertools.product(range(3), range(4)):
        assert table[row, column] == acceptance_probability(log_r0[row, 0], votes[column], budgets)


@pytest.mark.parametrize(
    ("log_r0", "votes_for", "expected"),
    [(800, 0, 0.0), (800, 1, 1.0), (800, 5, 1.0), (-800, 0, 0.0), (-800, 5, 0.0), (-math.inf, 5, 0.0)],
)
def test_base_ratios_beyond_double_precision_give_zero_or_one(log_r0, votes_for, expected):
    assert acceptance_probability(log_r0, [votes_for], [5]) == expected


def test_a_tiny_base_ratio_times_many_good_votes_keeps_its_digits():
    # r0 alone is a subnormal number, of which only few digits remain.
    expected = math.exp(-740 + 8 * math.log(1000))
    assert acceptance_probability(-740.0, [1000] * 8, [1000] * 8) == pytest.approx(expected, rel=1e-12)


def test_marginal_acceptance_is_the_binomial_average_in_rational_arithmetic():
    r0, chances, budgets = Fraction(2, 3), (Fraction(1, 5), Fraction(3, 4)), (3, 2)
    expected = Fraction(0)
    for tally in itertools.product(*(range(n + 1) for n in budgets)):
        chance = math.prod(
            math.comb(n, k) * p**k * (1 - p) ** (n - k) for k, n, p in zip(tally, budgets, chances, strict=True)
        )
        expected += chance * by_fractions(r0, tally, budgets)
    mean = marginal_acceptance(math.log(r0), [float(p) for p in chances], budgets)
    assert mean == pytest.approx(float(expected), rel=1e-14)


@pytest.mark.parametrize(
    ("uniform", "votes_for", "votes_cast", "expected"),
    [
        (0.0, 0, 0, Verdict.UNDECIDED),
        (0.0, 1, 1, Verdict.ACCEPT),
        (0.0, 0, 3, Verdict.REJECT),
        (0.4, 1, 1, Verdict.UNDECIDED),  # the worst end is 1/3, the best 3
        (0.4, 2, 2, Verdict.ACCEPT),  # the worst end is 1
        (0.4, 0, 2, Verdict.REJECT),  # the best end is 1/3
        (1 / 3, 1, 3, Verdict.REJECT),  # accepted strictly below 1/3 only
        (math.nextafter(1 / 3, 0), 1, 3, Verdict.ACCEPT),
    ],
)
def test_verdict_is_settled_as_soon_as_missing_votes_cannot_change_it(uniform, votes_for, votes_cast, expected):
    assert verdict(0.0, uniform, [votes_for], [votes_cast], [3]) is expected


def test_some_proposals_are_rejected_with_no_vote_at_all():
    assert verdict(math.log(0.05), 0.5, [0, 0], [0, 0], [2, 3]) is Verdict.REJECT
    assert verdict(-math.inf, 0.0, [0], [0], [8]) is Verdict.REJECT


def test_no_proposal_is_accepted_with_no_vote_at_all():
    assert verdict(800.0, 0.0, [0, 0], [0, 0], [2, 3]) is Verdict.UNDECIDED


@st.composite
def ballots(draw):
    """A comparison and every vote it may cost, in some order: (log_r0, uniform, budgets, votes)."""
    budgets = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    log_r0 = draw(st.floats(-6, 6) | st.floats(-800, 800) | st.just(-math.inf))
    uniform = draw(st.floats(0, 1, exclude_max=True))
    order = draw(st.permutations([judge for judge, budget in enumerate(budgets) for _ in range(budget)]))
    return log_r0, uniform, budgets, [(judge, draw(st.booleans())) for judge in order]


@given(ballots())
@settings(deadline=None, derandomize=True, max_examples=300)
def test_an_early_verdict_is_the_verdict_of_all_votes(case):
    log_r0, uniform, budgets, votes = case
    votes_for, votes_cast = [0] * len(budgets), [0] * len(budgets)
    said = [verdict(log_r0, uniform, votes_for, votes_cast, budgets)]
    for judge, for_proposal in votes:
        votes_cast[judge] += 1
        votes_for[judge] += for_proposal
        said.append(verdict(log_r0, uniform, votes_for, votes_cast, budgets))
    accepted = uniform < acceptance_probability(log_r0, votes_for, budgets)
    settled = [each for each in said if each is not Verdict.UNDECIDED]
    assert set(settled) == {Verdict.ACCEPT if accepted else Verdict.REJECT}
    assert said[-len(settled) :] == settled, "a settled verdict was opened again"


@given(ballots())
@settings(deadline=None, derandomize=True, max_examples=200)
def test_one_more_vote_for_the_proposal_never_lowers_acceptance(case):
    log_r0, _, budgets, votes = case
    votes_for = [0] * len(budgets)
    before = acceptance_probability(log_r0, votes_for, budgets)
    for judge, _ in votes:
        votes_for[judge] += 1
        after = acceptance_probability(log_r0, votes_for, budgets)
        assert before <= after <= 1
        before = after
