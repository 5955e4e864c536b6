"""What a campaign will take: the mean number of votes agrees with an enumeration, and the estimate with plain sums."""

import itertools

import numpy as np
import pytest

from sampler import Estimate, Verdict, acceptance_probability, estimate, mean_votes, step_votes, verdict

BUDGETS = [(1,), (2,), (3,), (5,), (1, 1), (2, 1), (2, 3), (1, 2, 1)]
ROUNDING = 1e-12


def enumerated(log_r0: float, preference: tuple[float, ...], budgets: tuple[int, ...], settled=None) -> float:
    """Return the mean number of votes by trying every answer of every voter under every U that makes a difference.

    Args:
        settled: takes U, k and n, and says whether nobody is asked any more; by default the verdict's rule.
    """
    settled = settled or (lambda u, k, n: verdict(log_r0, u, k, n, budgets) is not Verdict.UNDECIDED)
    full = itertools.product(*(range(budget + 1) for budget in budgets))
    edges = np.unique([0.0, 1.0, *(float(acceptance_probability(log_r0, list(k), list(budgets))) for k in full)])
    asked = [judge for judge, budget in enumerate(budgets) for _ in range(budget)]
    mean = 0.0
    for answers in itertools.product((0, 1), repeat=len(asked)):
        chance = np.prod([preference[i] if said else 1 - preference[i] for i, said in zip(asked, answers, strict=True)])
        for low, high in itertools.pairwise(edges):
            mean += chance * (high - low) * votes_until_settled((low + high) / 2, asked, answers, len(budgets), settled)
    return float(mean)


def votes_until_settled(uniform: float, asked, answers, judges: int, settled) -> int:
    votes_for, votes_cast = [0] * judges, [0] * judges
    for number, (judge, said) in enumerate(zip(asked, answers, strict=True)):
        if settled(uniform, tuple(votes_for), tuple(votes_cast)):
            return number
        votes_for[judge] += said
        votes_cast[judge] += 1
    return len(asked)


@pytest.mark.parametrize("budgets", BUDGETS)
@pytest.mark.parametrize("log_r0", [0.0, -1.5, 0.3])
def test_the_mean_number_of_votes_is_that_of_an_enumeration(budgets, log_r0):
    for chance in (0.5, 0.2, 1.0):
        preference = tuple(chance if judge == 0 else 0.7 for judge in range(len(budgets)))
        assert mean_votes(log_r0, preference, budgets) == pytest.approx(
            enumerated(log_r0, preference, budgets), abs=ROUNDING
        )


@pytest.mark.parametrize("budgets", BUDGETS)
def test_a_step_of_indifferent_voters(budgets):
    assert step_votes(budgets) == pytest.approx(enumerated(0.0, (0.5,) * len(budgets), budgets), abs=ROUNDING)


@pytest.mark.parametrize("budgets", [(3,), (5,), (2, 3)])
def test_other_ways_to_stop_have_other_means(budgets):
    """The control: neither a majority that cannot be lost any more nor asking everybody costs as many votes."""

    def has_a_majority(_uniform, votes_for, votes_cast) -> bool:
        return any(2 * max(k, n - k) > N for k, n, N in zip(votes_for, votes_cast, budgets, strict=True))

    indifferent = (0.5,) * len(budgets)
    for settled in (has_a_majority, lambda *_: False):
        wrong = enumerated(0.0, indifferent, budgets, settled)
        assert abs(step_votes(budgets) - wrong) > 0.1


def test_many_pairs_at_once():
    ratios, preference = np.array([[-1.5], [0.3]]), np.array([[0.3, 0.9], [0.5, 0.2], [0.0, 1.0]])
    table = mean_votes(np.broadcast_to(ratios, (2, 3)), np.broadcast_to(preference, (2, 3, 2)), (2, 3))
    for row, column in itertools.product(range(2), range(3)):
        one = mean_votes(ratios[row, 0], preference[column], (2, 3))
        assert table[row, column] == pytest.approx(one, abs=ROUNDING)


def test_early_stopping_never_costs_more_than_all_votes_and_may_cost_nothing():
    assert step_votes((1,)) == 1.0
    assert mean_votes(-np.inf, [0.5], (8,)) == 0.0
    # With r0 = 1/16 and 8 votes the factor is at most 8: half of all comparisons are rejected unseen.
    assert mean_votes(np.log(1 / 16), [0.9], (8,)) < 4
    assert all(step_votes(budgets) <= sum(budgets) for budgets in BUDGETS)


def test_the_estimate_is_a_product():
    found = estimate(20, 100, (2,), burn_in=10, votes_each=50, place_pay=2.5, seconds_a_vote=6)
    assert found == Estimate(
        most_votes=4000, votes=3000.0, burn_in_votes=300.0, hours=5.0, people=60, money=pytest.approx(150)
    )


def test_each_vote_on_a_pair_is_another_persons():
    assert estimate(1, 2, (7,), votes_each=1000).people == 7


def test_what_is_not_known_is_left_out():
    found = estimate(2, 10, (1000,), place_pay=2.5)
    assert (found.votes, found.burn_in_votes, found.people, found.money) == (None, None, None, None)
    assert found.hours == pytest.approx(20_000 * 10 / 3600)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: estimate(0, 1, (1,)), "chains must be 1 or more, not 0"),
        (lambda: estimate(1, 0, (1,)), "steps must be 1 or more, not 0"),
        (lambda: estimate(1, 1, (1,), seconds_a_vote=0), "seconds_a_vote must be more than 0"),
        (lambda: estimate(1, 1, (0,)), "budgets must"),
        (lambda: mean_votes(0.0, [0.5], (0,)), "budgets must"),
        (lambda: mean_votes(0.0, [0.5], (2, 2)), "preference has 1 judges"),
        (lambda: mean_votes(0.0, [1.5], (2,)), "preference must lie"),
    ],
)
def test_what_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()
