"""Every rule against the paper's formula, worked out by hand, and at the ends of its range.

Presentation orders under voters with a position bias: what each is exact for, by matrix. And the distribution that a
config says, which is the one that its chains sample.
"""

import itertools
import math
import re
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit, logit

import sampler
from sampler.acceptance import average_over_votes
from sampler.exact import log_base_ratio, preferences, stationary, transitions_of, visit_covariance
from sampler.rules.scored import QuestConfig, accept_by_power
from tests.support import sampling
from tests.support.campaigns import make_config
from tests.support.enumerated import imbalance
from tests.support.sampling import (
    LOPSIDED,
    SMALL_CATALOGS,
    averaged,
    independent_distribution,
    neighbours_distribution,
    two_scores,
)

SCORES = two_scores(LOPSIDED)
PI = sampler.target(LOPSIDED.log_p0, SCORES)
# Sums and products of numbers below 1 lose less than this.
ROUNDING = 1e-12


def close(value):
    return pytest.approx(value, rel=1e-13)


def test_the_oracle_multiplies_the_odds():
    assert sampler.Oracle().acceptance(math.log(0.5), [0.6, 0.25]) == close(0.5 * (0.6 / 0.4) * (0.25 / 0.75))
    assert sampler.Oracle().acceptance(math.log(5), [0.6]) == 1.0
    assert sampler.Oracle().acceptance(-math.inf, [1.0]) == 0.0
    assert sampler.Oracle().acceptance(0.0, [0.0, 1.0]) == 0.0
    # Of several pairs at once, only the impossible one is rejected.
    assert list(sampler.Oracle().acceptance(0.0, [[0.0, 0.5], [0.5, 0.5]])) == [0.0, 1.0]
    assert sampler.Oracle().acceptance(-1e4, [1.0]) == 1.0


def test_the_plug_in_rule_estimates_the_odds_by_the_share():
    assert sampler.InvalidPlugIn((4,)).acceptance(math.log(0.25), [3]) == close(0.25 * 3 / 1)
    assert sampler.InvalidPlugIn((4, 2)).acceptance(math.log(0.25), [3, 1]) == close(0.75)
    assert sampler.InvalidPlugIn((4,)).acceptance(-800.0, [4]) == 1.0
    assert sampler.InvalidPlugIn((4, 2)).acceptance(800.0, [4, 0]) == 0.0
    assert sampler.InvalidPlugIn((4,)).acceptance(-math.inf, [4]) == 0.0


DISTRIBUTIONS = {"independent": independent_distribution, "neighbours": neighbours_distribution}
every_distribution = pytest.mark.parametrize("distribution", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS)


def errors(rule, distribution, scores=SCORES, times=1, catalog=LOPSIDED):
    """Return how far the rule's chain is from detailed balance and from p0 exp(times sum_i s_i)."""
    pi = sampler.target(catalog.log_p0, times * scores)
    transitions = sampler.transition_matrix(catalog.log_p0, distribution(catalog), scores, rule)
    return imbalance(pi, transitions), float(np.abs(stationary(transitions) - pi).sum() / 2)


@every_distribution
def test_the_oracle_is_exact_and_the_plug_in_rule_is_not(distribution):
    assert max(errors(sampler.Oracle(), distribution)) < ROUNDING
    assert max(errors(sampler.NVote((16, 1)), distribution)) < ROUNDING
    unbalanced, distance = errors(sampler.InvalidPlugIn((4, 4)), distribution)
    assert unbalanced > 1e-3
    assert distance > 0.01


def test_mars_leaves_a_state_of_score_zero_and_never_enters_one():
    assert accept_by_power(-50.0, 0.0, 0.01) == 1.0
    assert accept_by_power(-math.inf, 0.0, 0.3) == 0.0
    assert accept_by_power(0.0, 0.3, 0.0) == 0.0


def test_quest_overflows_at_no_published_temperature():
    for beta in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5):
        rule = QuestConfig(scorer="qe", beta=beta)
        assert rule.acceptance(0.0, [0.0], [1.0]) == 1.0
        assert rule.acceptance(0.0, [1.0], [0.0]) == pytest.approx(999.0 ** (-2 / beta), rel=1e-9, abs=1e-300)


def biased(preference, bias):
    """Return sigma(g + b) and sigma(g - b), the preferences for x' standing first and second."""
    return expit(logit(preference) + bias), expit(logit(preference) - bias)


@dataclass(frozen=True)
class RandomSides:
    """A fair coin for every vote: of voters with a bias of b, every vote is for x' with the mean of both chances."""

    max_votes: tuple[int, ...]
    bias: float = 0.0

    def mean_acceptance(self, log_r0, preference):
        return sampler.NVote(self.max_votes).mean_acceptance(log_r0, np.mean(biased(preference, self.bias), axis=0))


class TwoJudges(RandomSides):
    """Half of the votes in each order, each order a judge of its own."""

    def in_both_orders(self, preference):
        both = np.stack(biased(preference, self.bias), axis=-1)
        return both.reshape(*both.shape[:-2], -1), tuple(budget // 2 for budget in self.max_votes for _ in range(2))

    def mean_acceptance(self, log_r0, preference):
        both, halves = self.in_both_orders(preference)
        return sampler.NVote(halves).mean_acceptance(log_r0, both)


class PooledHalves(TwoJudges):
    """Half of the votes in each order, counted together: the paper's molecules."""

    def mean_acceptance(self, log_r0, preference):
        def acceptance(votes):
            return sampler.acceptance_probability(log_r0, votes[0::2] + votes[1::2], self.max_votes)

        return average_over_votes(acceptance, *self.in_both_orders(preference))


every_bias = pytest.mark.parametrize("bias", [0.25, 0.5, 1.0, 2.0])


@every_distribution
@every_bias
@pytest.mark.parametrize("catalog", SMALL_CATALOGS.values(), ids=SMALL_CATALOGS)
@pytest.mark.parametrize("max_votes", [(2,), (4,), (8,), (2, 6)], ids=str)
def test_two_judges_cancel_a_constant_bias(distribution, bias, catalog, max_votes):
    scores = two_scores(catalog)[: len(max_votes)]
    assert max(errors(TwoJudges(max_votes, bias), distribution, scores, 2, catalog)) < ROUNDING


@every_distribution
@every_bias
@pytest.mark.parametrize("order", [RandomSides, PooledHalves])
def test_one_factor_for_both_orders_does_not(distribution, bias, order):
    unbalanced, distance = errors(order((4, 4), bias), distribution)
    # An error of second order in the position bias: far above rounding at 0.25, plain to see at 1.
    assert unbalanced > 1e-5
    assert distance > 1e-4 * (bias / 0.25) ** 2
    # Nor is the other target reached.
    assert errors(order((4, 4), bias), distribution, times=2)[1] > 0.01


@every_distribution
@pytest.mark.parametrize("order", [RandomSides, PooledHalves])
def test_without_a_bias_one_factor_is_exact(distribution, order):
    assert max(errors(order((2, 6)), distribution)) < ROUNDING


@every_bias
@pytest.mark.parametrize("budget", [2, 8])
def test_pooling_half_the_votes_in_each_order_is_worse_than_random_sides_on_the_papers_target(bias, budget):
    scores = sampling.SCORE[None]
    pi = sampler.target(sampling.LOG_P0, scores)

    def distance(rule):
        transitions = sampler.transition_matrix(sampling.LOG_P0, sampling.PROPOSALS, scores, rule)
        return np.abs(stationary(transitions) - pi).sum() / 2

    assert distance(PooledHalves((budget,), bias)) > 1.05 * distance(RandomSides((budget,), bias)) > 0.004


@every_bias
@pytest.mark.parametrize(
    ("max_votes", "times", "least"),
    # Going back, the orders change places: then 1 and 3 votes do not cancel.
    [((1, 3), 2, 1e-4), ((4,), 1, 1e-3)],
    ids=["unequal max_votes", "the proposal first"],
)
def test_orders_that_do_not_balance_fail(bias, max_votes, times, least):
    q, scores = independent_distribution(LOPSIDED), two_scores(LOPSIDED)[:1]
    shown = np.concatenate(biased(preferences(scores), bias)[: len(max_votes)], axis=-1)
    transitions = transitions_of(q, sampler.NVote(max_votes).mean_acceptance(log_base_ratio(LOPSIDED.log_p0, q), shown))
    assert imbalance(sampler.target(LOPSIDED.log_p0, times * scores), transitions) > least


# Peskun-Tierney: the N-vote rule accepts at least as much as any exact rule on the same votes, pair by pair.


FOUR_AND_TWO = (4, 2)


def ratio(log_r0, votes, max_votes):
    """r0 prod_i K_i / (N_i - K_i + 1), not capped."""
    return np.exp(log_r0) * np.prod(votes / (max_votes - votes + 1))


def barker_one_vote(log_r0, votes, max_votes):
    """Barker's r0 / (1 + r0) if one vote of each judge, drawn from its N_i, is for x'."""
    return np.exp(log_r0) / (1 + np.exp(log_r0)) * np.prod(votes / max_votes)


def barker_all_votes(log_r0, votes, max_votes):
    """Barker's t / (1 + t), at t = r0 prod_i K_i / (N_i - K_i + 1)."""
    return ratio(log_r0, votes, max_votes) / (1 + ratio(log_r0, votes, max_votes))


def cautious(log_r0, votes, max_votes):
    """Another function with g(t) = t g(1 / t), at the same t."""
    t = ratio(log_r0, votes, max_votes)
    return (t + t**2 + t**3) / (1 + t + t**2 + t**3)


def thinned(log_r0, votes, max_votes):
    """The N-vote rule, then a coin that depends on the unordered pair."""
    indices = np.arange(len(LOPSIDED))
    coin = 0.3 + 0.6 * np.cos(indices[:, None] + indices[None, :]) ** 2
    return coin * np.minimum(1, ratio(log_r0, votes, max_votes))


COMPETITORS = {
    "Barker, one vote": averaged(barker_one_vote),
    "Barker, all votes": averaged(barker_all_votes),
    "another balancing function": averaged(cautious),
    "a randomly thinned rule": averaged(thinned),
    "fewer votes": lambda log_r0, preference, _: sampler.NVote((3, 1)).mean_acceptance(log_r0, preference),
    "one vote each": lambda log_r0, preference, _: sampler.NVote((1, 1)).mean_acceptance(log_r0, preference),
}

every_competitor = pytest.mark.parametrize("competitor", COMPETITORS.values(), ids=COMPETITORS)


def off_diagonal(transitions):
    return transitions - np.diag(np.diag(transitions))


def chain(distribution, rule=sampler.marginal_acceptance):
    return sampling.transition_matrix(LOPSIDED.log_p0, distribution(LOPSIDED), SCORES, FOUR_AND_TWO, rule)


@every_distribution
@every_competitor
def test_no_exact_rule_moves_more_between_any_two_states(distribution, competitor):
    other = chain(distribution, competitor)
    assert imbalance(PI, other) < ROUNDING
    gap = off_diagonal(chain(distribution) - other)
    assert gap.min() > -ROUNDING
    assert gap.max() > 1e-3


@every_distribution
@every_competitor
def test_so_no_exact_rule_has_a_smaller_asymptotic_variance_for_any_function(distribution, competitor):
    """Tierney (1998): the difference of the limiting covariances is positive semidefinite."""
    gap = visit_covariance(chain(distribution, competitor), PI) - visit_covariance(chain(distribution), PI)
    assert np.linalg.eigvalsh(gap).min() > -1e-10
    assert np.trace(gap) > 1e-3


@every_distribution
def test_the_oracle_moves_more_than_any_number_of_votes(distribution):
    known = sampler.transition_matrix(LOPSIDED.log_p0, distribution(LOPSIDED), SCORES, sampler.Oracle())
    before = chain(distribution)
    for max_votes in [(8, 4), (16, 16)]:
        after = sampler.transition_matrix(LOPSIDED.log_p0, distribution(LOPSIDED), SCORES, sampler.NVote(max_votes))
        assert off_diagonal(after - before).min() > -ROUNDING
        assert off_diagonal(known - after).min() > -ROUNDING
        before = after


def test_a_rule_that_is_not_exact_is_not_bounded_so():
    wrong = sampler.transition_matrix(
        LOPSIDED.log_p0, independent_distribution(LOPSIDED), SCORES, sampler.InvalidPlugIn(FOUR_AND_TWO)
    )
    assert imbalance(PI, wrong) > 1e-3
    assert off_diagonal(chain(independent_distribution) - wrong).min() < -1e-3


# Choices that are held before they are sent leave the rule exact; an undo while a step is open does not.


N, CHANGES = 3, 0.1
OF_VOTERS = np.array([0.1, 0.3, 0.6, 0.9])
# Votes for the proposal that accept, with r0 = 1: at least k, where k is drawn with the step's uniform number. The
# acceptance probabilities min(1, K / (N - K + 1)) of K = 0, 1, 2, 3 votes are 0, 1/3, 1, 1.
NEEDED = {1: 1 / 3, 2: 2 / 3}


def accepts(preference, undo, wanted, left=N):
    """Return the probability that so many of the votes that are left are for the proposal; settled, nobody is asked.

    Args:
        undo: from the probability of a vote for the proposal and whether each vote would settle the step, that of
            what counts in the end.
    """
    if wanted <= 0 or wanted > left:
        return float(wanted <= 0)
    counted = undo(preference, wanted == 1, wanted == left)
    yes, no = (accepts(preference, undo, wanted - vote, left - 1) for vote in (1, 0))
    return counted * yes + (1 - counted) * no


def held(preference, settles_for, settles_against):
    """Whoever changes their mind chooses anew, whatever the choice would have settled."""
    return (1 - CHANGES) * preference + CHANGES * preference


def while_open(preference, settles_for, settles_against):
    """A choice that settles the step is gone; another one may be made anew."""
    again_for = 0.0 if settles_for else CHANGES
    again_against = 0.0 if settles_against else CHANGES
    again = preference * again_for + (1 - preference) * again_against
    return preference * (1 - again_for) + again * preference


def odds_of_acceptance(undo):
    """Return A(x, x') / A(x', x) for each preference: detailed balance with p0·exp(s) wants p / (1 - p)."""

    def acceptance(preference):
        return sum(share * accepts(preference, undo, needed) for needed, share in NEEDED.items())

    return np.array([acceptance(p) / acceptance(1 - p) for p in OF_VOTERS])


def test_a_choice_that_is_held_leaves_the_chain_exact():
    assert odds_of_acceptance(held) == pytest.approx(OF_VOTERS / (1 - OF_VOTERS), rel=1e-12)


def test_an_undo_while_the_step_is_open_does_not():
    off = np.abs(odds_of_acceptance(while_open) / (OF_VOTERS / (1 - OF_VOTERS)) - 1)
    assert off.max() > 0.01


# The distribution that a config's chains sample, in words; and that it is the one they do sample.


PEOPLE = {"question": "Which is darker?", "votes": 2}
KIND = {"question": "Which is kinder?", "votes": 1}
MODEL = {"source": {"kind": "model", "endpoint": "A model", "temperature": 0.7}}


def both(judge):
    return [judge | {"order": order} for order in ("proposal-first", "proposal-second")]


def distribution(judges, **changes):
    return sampler.parse_config(make_config(kernel={"kind": "neighbours"}, judges=judges) | changes).target_distribution


def rated(form, judges=(PEOPLE,), **changes):
    return distribution([judge | MODEL for judge in judges], rule={"kind": "pointwise", "form": form} | changes)


@pytest.mark.parametrize(
    ("judges", "formula"),
    [
        ([PEOPLE], "p0(x) * exp(s1(x))"),
        ([PEOPLE, KIND], "p0(x) * exp(s1(x) + s2(x))"),
        (both(PEOPLE), "p0(x) * exp(2*s1(x))"),
        ([*both(PEOPLE), KIND], "p0(x) * exp(2*s1(x) + s2(x))"),
        ([KIND, *both(PEOPLE)], "p0(x) * exp(s1(x) + 2*s2(x))"),
        ([*both(PEOPLE), *both(PEOPLE | MODEL)], "p0(x) * exp(2*s1(x) + 2*s2(x))"),
        ([*both(PEOPLE), PEOPLE], "p0(x) * exp(3*s1(x))"),
        ([PEOPLE | MODEL | {"order": "balanced"}], "p0(x) * exp(s1(x))"),
    ],
)
def test_a_question_counts_once_for_each_judge(judges, formula):
    assert distribution(judges).split("; ")[0] == formula


def test_the_letters_are_explained():
    assert distribution([*both(PEOPLE), KIND | MODEL]) == (
        "p0(x) * exp(2*s1(x) + s2(x)); s1: “Which is darker?”, people; "
        "s2: “Which is kinder?”, model “A model” at temperature 0.7"
    )


@pytest.mark.parametrize(
    ("form", "changes", "formula"),
    [
        (("separate", (PEOPLE, KIND)), {}, "p0(x) * exp(r1(x)/10 + r2(x)/10)"),
        (("separate",), {"lowest": 0}, "p0(x) * exp(r1(x)/10)"),
        (("joint",), {}, "p0(x) * exp(r1(x)/10)"),
        (("difference",), {}, "p0(x) * exp(r1(x))"),
        (("power",), {}, "p0(x) * r1(x)^30"),
        (("power",), {"beta": 2.5}, "p0(x) * r1(x)^2.5"),
    ],
)
def test_ratings_have_a_distribution_of_their_own(form, changes, formula):
    found = rated(*form, **changes)
    head, *names = found.split("; ")
    assert head == formula
    assert all(re.match(r"r\d: the mean of (1 rating|[2-9] ratings) from \d to 10, drawn once", name) for name in names)


@pytest.mark.parametrize("mixed", [False, True])
def test_a_distribution_that_nobody_knows_is_called_so(mixed):
    paper = {"kind": "fragments", "convention": "paper"}
    parts = [{"weight": 0.5, "kernel": paper}, {"weight": 0.5, "kernel": {"kind": "fragments"}}]
    kernel = {"kind": "mixture", "parts": parts} if mixed else paper
    assert distribution([PEOPLE], space={"kind": "molecules"}, kernel=kernel).startswith("not known")
    assert distribution([PEOPLE], space={"kind": "molecules"}, kernel={"kind": "fragments"}).startswith("p0(x)")


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_the_chain_of_a_mixed_campaign_is_in_balance_with_what_its_config_says(bias):
    # The first question in both orders, by people with a position bias; the second in none, by people who do not.
    log_p0, scores, q = LOPSIDED.log_p0, np.array(two_scores(LOPSIDED)), neighbours_distribution(LOPSIDED)
    dark, kind = np.moveaxis(preferences(scores), -1, 0)
    first, second = biased(dark, bias)
    chances = np.stack([first, second, kind], axis=-1)
    chain = transitions_of(q, sampler.NVote((2, 2, 1)).mean_acceptance(log_base_ratio(log_p0, q), chances))
    formula = distribution([*both(PEOPLE), KIND]).split("; ")[0]
    stated = [int(times or 1) for times in re.findall(r"(?:(\d)\*)?s\d\(x\)", formula)]
    for times in itertools.product((1, 2), repeat=2):
        off = imbalance(sampler.target(log_p0, np.array(times)[:, None] * scores), chain)
        assert (off < 1e-14) == (list(times) == stated), times
