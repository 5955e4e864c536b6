"""What a campaign will take; and what chains that open later or are ended early do to its distribution."""

import itertools
from bisect import bisect_right
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

import sampler
from sampler import Estimate, NVote, Verdict, acceptance_probability, estimate, exact, mean_votes, step_votes, verdict
from tests.statistics.crowds import Voters
from tests.statistics.distribution import CATALOG, Matrix
from tests.support.sampling import independent_distribution, neighbours_distribution

# What a campaign will take: the mean number of votes agrees with an enumeration, and the estimate with plain sums.


MAX_VOTES = [(1,), (2,), (3,), (5,), (1, 1), (2, 1), (2, 3), (1, 2, 1)]
ROUNDING = 1e-12


def enumerated(log_r0: float, preference: tuple[float, ...], max_votes: tuple[int, ...], settled=None) -> float:
    """Return the mean number of votes by trying every answer of every voter under every U that makes a difference.

    Args:
        settled: takes U, k and n, and says whether nobody is asked any more; by default the verdict's rule.
    """
    settled = settled or (lambda u, k, n: verdict(log_r0, u, k, n, max_votes) is not Verdict.UNDECIDED)
    full = itertools.product(*(range(budget + 1) for budget in max_votes))
    edges = np.unique([0.0, 1.0, *(float(acceptance_probability(log_r0, list(k), list(max_votes))) for k in full)])
    asked = [judge for judge, budget in enumerate(max_votes) for _ in range(budget)]
    mean = 0.0
    for answers in itertools.product((0, 1), repeat=len(asked)):
        chance = np.prod([preference[i] if said else 1 - preference[i] for i, said in zip(asked, answers, strict=True)])
        for low, high in itertools.pairwise(edges):
            mean += (
                chance * (high - low) * votes_until_settled((low + high) / 2, asked, answers, len(max_votes), settled)
            )
    return float(mean)


def votes_until_settled(uniform: float, asked, answers, judges: int, settled) -> int:
    votes_for, votes_cast = [0] * judges, [0] * judges
    for number, (judge, said) in enumerate(zip(asked, answers, strict=True)):
        if settled(uniform, tuple(votes_for), tuple(votes_cast)):
            return number
        votes_for[judge] += said
        votes_cast[judge] += 1
    return len(asked)


@pytest.mark.parametrize("max_votes", MAX_VOTES)
def test_the_mean_number_of_votes_is_that_of_an_enumeration(max_votes):
    # Where no vote can change the verdict, none is asked for.
    for log_r0, chance in itertools.product((0.0, -1.5, 0.3, -np.log(16), -np.inf), (0.5, 0.2, 1.0)):
        preference = tuple(chance if judge == 0 else 0.7 for judge in range(len(max_votes)))
        expected = enumerated(log_r0, preference, max_votes)
        assert mean_votes(log_r0, preference, max_votes) == pytest.approx(expected, abs=ROUNDING)
    assert step_votes(max_votes) == pytest.approx(enumerated(0.0, (0.5,) * len(max_votes), max_votes), abs=ROUNDING)


@pytest.mark.parametrize("max_votes", [(3,), (5,), (2, 3)])
def test_other_ways_to_stop_have_other_means(max_votes):
    """The control: neither a majority that cannot be lost any more nor asking everybody costs as many votes."""

    def has_a_majority(_uniform, votes_for, votes_cast) -> bool:
        return any(2 * max(k, n - k) > N for k, n, N in zip(votes_for, votes_cast, max_votes, strict=True))

    indifferent = (0.5,) * len(max_votes)
    for settled in (has_a_majority, lambda *_: False):
        wrong = enumerated(0.0, indifferent, max_votes, settled)
        assert abs(step_votes(max_votes) - wrong) > 0.1


def test_many_pairs_at_once():
    ratios, preference = np.array([[-1.5], [0.3]]), np.array([[0.3, 0.9], [0.5, 0.2], [0.0, 1.0]])
    table = mean_votes(np.broadcast_to(ratios, (2, 3)), np.broadcast_to(preference, (2, 3, 2)), (2, 3))
    for row, column in itertools.product(range(2), range(3)):
        one = mean_votes(ratios[row, 0], preference[column], (2, 3))
        assert table[row, column] == pytest.approx(one, abs=ROUNDING)


def test_the_estimate_is_a_product():
    found = estimate(20, 100, (2,), burn_in=10, votes_per_person=50, full_pay=2.5, seconds_a_vote=6)
    assert found == Estimate(
        votes_at_most=4000, votes=3000.0, burn_in_votes=300.0, hours=5.0, people=60, money=pytest.approx(150)
    )

    # Each vote on a pair is another person's.
    assert estimate(1, 2, (7,), votes_per_person=1000).people == 7


@pytest.mark.parametrize(
    ("max_votes", "least", "most"), [((2,), 1, 1), ((5,), 1.01, 1.1), ((20,), 1.01, 1.1), ((1, 1), 0, 0.9)]
)
def test_strong_preferences_take_up_to_a_tenth_more_votes_than_estimated_or_fewer_of_two_questions(
    max_votes, least, most
):
    """In the long run of a chain on two objects, over the proposals that differ."""
    scores, q = np.tile([0.0, 3.0], (len(max_votes), 1)), np.array([[0.0, 1.0], [1.0, 0.0]])
    in_fact = exact.votes_per_step(np.zeros(2), q, scores, NVote(max_votes))
    assert least - ROUNDING <= in_fact / step_votes(max_votes) <= most + ROUNDING


def test_what_is_not_known_is_left_out():
    hours = pytest.approx(20_000 * 10 / 3600)
    assert estimate(2, 10, (1000,), full_pay=2.5) == Estimate(20_000, None, None, hours, None, None)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: estimate(0, 1, (1,)), "chains must be 1 or more, not 0"),
        (lambda: estimate(1, 0, (1,)), "steps must be 1 or more, not 0"),
        (lambda: estimate(1, 1, (1,), seconds_a_vote=0), "seconds_a_vote must be more than 0"),
        (lambda: estimate(1, 1, (0,)), "max_votes must"),
        (lambda: mean_votes(0.0, [0.5], (0,)), "max_votes must"),
        (lambda: mean_votes(0.0, [0.5], (2, 2)), "preference has 1 judges"),
        (lambda: mean_votes(0.0, [1.5], (2,)), "preference must lie"),
    ],
)
def test_what_is_refused(call, told):
    with pytest.raises(ValueError, match=told):
        call()


# Chains that open when somebody would wait: each has its distribution, and the bias of an average over them is bounded.
# A crowd is simulated whose steps take more votes in some states than in others, and who come and go: so how many
# chains open depends on what the chains did. Their distributions are worked out by enumeration.


FOUR_OBJECTS = sampler.Catalog(np.array([4.0, 2.0, 1.0, 1.0]))
SCORES = np.array([-1.0, 0.0, 0.6, 1.2])
VOTES_OF_A_STEP = (1, 1, 4, 8)
"""By the state that the step leaves."""
LEAST, MOST, CROWD_STEPS, BURN_IN = 2, 12, 10, 3
MATRIX = exact.transition_matrix(
    FOUR_OBJECTS.log_p0, independent_distribution(FOUR_OBJECTS), SCORES[None], sampler.NVote((1,))
)
START = np.exp(FOUR_OBJECTS.log_p0)
DISTRIBUTIONS = np.stack([START @ np.linalg.matrix_power(MATRIX, step) for step in range(CROWD_STEPS + 1)])
"""Of a chain's state after each step."""
_CUMULATIVE = [row.tolist() for row in np.cumsum(np.vstack([MATRIX, START]), axis=1)]

Opens = Callable[[int], bool]
"""Whether a chain opens for somebody who would wait, by its start."""


def _draw(rng: np.random.Generator, distribution: int) -> int:
    return min(bisect_right(_CUMULATIVE[distribution], rng.random()), 3)


def crowd(rng: np.random.Generator, opens: Opens) -> list[list[int]]:
    """Return the paths of the chains that eight people vote on, who come one by one and give twenty votes each.

    Whoever stays behind when all have gone ends what is open.
    """
    chains = [[_draw(rng, 4)] for _ in range(LEAST)]
    arrivals = np.cumsum(rng.integers(0, 4, size=8)).tolist()
    votes_left, at = [20] * 8, {}
    owed: dict[int, int] = {}
    for moment in range(arrivals[-1] + 60):
        for person, arrival in enumerate(arrivals):
            if moment < arrival or not votes_left[person]:
                continue
            if person not in at:
                free = [c for c in range(len(chains)) if len(chains[c]) <= CROWD_STEPS and c not in at.values()]
                if free:
                    at[person] = min(free, key=lambda c: (len(chains[c]), c))
                elif len(chains) < MOST and opens(start := _draw(rng, 4)):
                    at[person] = len(chains)
                    chains.append([start])
                else:
                    continue
            index = at[person]
            chain = chains[index]
            owed[index] = owed.get(index, VOTES_OF_A_STEP[chain[-1]]) - 1
            votes_left[person] -= 1
            if not owed[index]:
                chain.append(_draw(rng, chain[-1]))
                del owed[index], at[person]
            elif not votes_left[person]:
                del at[person]
    for chain in chains:
        while len(chain) <= CROWD_STEPS:
            chain.append(_draw(rng, chain[-1]))
    return chains


def crowds(number: int, opens: Opens) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    return [np.array(crowd(rng, opens)) for _ in range(number)]


def distribution_p_value(found: list[np.ndarray]) -> float:
    """Return the p-value of where the chains that opened later start, go first and end, by Bonferroni."""
    p_values = []
    for step in (0, 1, CROWD_STEPS):
        visits = np.bincount(np.concatenate([chains[LEAST:, step] for chains in found]), minlength=4)
        p_values.append(stats.chisquare(visits, visits.sum() * DISTRIBUTIONS[step] / DISTRIBUTIONS[step].sum()).pvalue)
    return 3 * min(p_values)


def bias(found: list[np.ndarray]) -> tuple[float, float, float]:
    """Return how far the mean score of a crowd is off, chains weighed equally; its standard error; and the bound of
    docs/exactness.md.
    """
    of_chains = [SCORES[chains[:, BURN_IN + 1 :]].mean(axis=1) for chains in found]
    averages = np.array([each.mean() for each in of_chains])
    numbers = np.array([len(each) for each in of_chains])
    expected = (DISTRIBUTIONS[BURN_IN + 1 :] @ SCORES).mean()
    bound = np.concatenate(of_chains).std() * np.sqrt(numbers.mean()) * (1 / numbers).std()
    return abs(averages.mean() - expected), averages.std() / np.sqrt(len(found)), bound


def test_chains_that_open_for_whoever_waits_have_their_distribution_and_the_bias_of_an_average_is_bounded():
    found = crowds(1_500, lambda start: True)
    # How many there are depends on what happened: else there would be nothing to test.
    assert len({len(chains) for chains in found}) > 4
    # By a right program missed once in a thousand seeds; this one is fixed.
    assert distribution_p_value(found) > 1e-3
    off, error, bound = bias(found)
    assert off < bound + 3.3 * error
    assert bound < 0.03


def test_chains_that_open_by_where_they_start_are_found_out():
    # Wrong: a chain is kept only if it starts well.
    found = crowds(300, lambda start: start >= 2)
    assert distribution_p_value(found) < 1e-9
    off, error, bound = bias(found)
    assert off > bound + 3.3 * error


# What it costs to end chains at suspended steps: the distribution of the samples that are left, worked out by
# enumeration. At x the kernel proposes x' and the step is suspended for ever with a probability e(x, x'), or decided.


STEPS = 60
Q = neighbours_distribution(CATALOG)
ACCEPTANCE = NVote((1,)).mean_acceptance(exact.log_base_ratio(CATALOG.log_p0, Q), Voters().preferences()[..., None])
N = len(Q)
SUSPENDED = {
    "by luck": np.full((N, N), 0.02),
    "by an object": np.broadcast_to(0.1 * (np.arange(N) == 4), (N, N)),
    "by the answer that it gets": 0.1 * ACCEPTANCE,
}


def distributions_left(suspended: Matrix) -> tuple[Matrix, Matrix]:
    """Return the distributions of x^(0) to x^(T) of the chains that are not ended by then, and the shares of these."""
    moved = Q * ACCEPTANCE * (1 - suspended)
    stayed = (Q * (1 - ACCEPTANCE) * (1 - suspended)).sum(axis=1)
    # Rows sum to less than one: the rest is ended.
    left = [np.exp(CATALOG.log_p0)]
    for _ in range(STEPS):
        left.append(left[-1] @ moved + left[-1] * stayed)
    shares = np.sum(left, axis=1)
    return np.array(left) / shares[:, None], shares


def errors(suspended: Matrix) -> tuple[Matrix, Matrix]:
    """Return the total variation from the chains that are never ended, after each step, and the shares not ended."""
    (distributions, shares), (whole, _) = distributions_left(suspended), distributions_left(np.zeros((N, N)))
    return np.abs(distributions - whole).sum(axis=1) / 2, shares


@pytest.mark.parametrize("suspended", SUSPENDED.values(), ids=list(SUSPENDED))
def test_the_error_is_at_most_the_share_of_chains_that_were_ended(suspended):
    found, shares = errors(suspended)
    assert shares[-1] < 0.8
    assert np.all(found <= 1 - shares + 1e-12)


def test_there_is_none_where_it_does_not_depend_on_the_objects():
    assert errors(SUSPENDED["by luck"])[0].max() < 1e-12
    # And there is one where it does.
    assert errors(SUSPENDED["by an object"])[0].max() > 0.01
