"""Scores fitted together with a position bias: what has a fit, what it is, and how far its intervals can be trusted.

Bradley-Terry scores with intervals, what has no fit, and the test against cycles.
"""

import itertools
import math

import evalica
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog, minimize
from scipy.special import expit as chance

from sampler.diagnostics import scores as fits
from sampler.diagnostics.scores import MIN_CLUSTERS, Choices, JointFit, NoFit, bradley_terry_intervals, fittable
from sampler.diagnostics.votes import cycle_test, source_bias


def simulated(rng, scores, bias, votes, clusters=40):
    """Return votes on pairs and sides drawn by chance, in clusters that mean nothing."""
    size = len(scores)
    first = rng.integers(size, size=votes)
    second = (first + rng.integers(1, size, size=votes)) % size
    chose_first = rng.random(votes) < chance(scores[first] - scores[second] + bias)
    columns = first, second, chose_first, rng.integers(clusters, size=votes)
    return Choices.of(zip(*(column.tolist() for column in columns), strict=True))


def scores_of(choices):
    """Return the scores that fit best, by item."""
    return dict(zip(choices.items, fittable(choices).solve()[:-1].tolist(), strict=True))


def rows_of(choices):
    """Return the log-odds of each vote's answer as a function of scores and bias, shape (v, n + 1)."""
    rows = np.zeros((choices.votes, len(choices.items) + 1))
    each = np.arange(choices.votes)
    rows[each, choices.first] += 1
    rows[each, choices.second] -= 1
    rows[:, -1] = 1
    return rows * np.where(choices.chose_first, 1, -1)[:, None]


def has_maximum(choices):
    """Albert and Anderson's condition, by linear programming: no direction helps some vote and harms none."""
    rows = rows_of(choices)
    found = linprog(-rows.sum(axis=0), A_ub=-rows, b_ub=np.zeros(len(rows)), bounds=(-1, 1))
    shifts = np.linalg.matrix_rank(rows) == len(choices.items)
    return found.fun > -1e-9 and shifts


def test_scores_have_mean_0():
    # In either order 6 of 7 votes are for one item, so there is no position bias: scores of half the log-odds.
    counts = {("a", "b", True): 1, ("a", "b", False): 6, ("b", "a", True): 6, ("b", "a", False): 1}
    found = scores_of(Choices.of((*vote, 0) for vote, count in counts.items() for _ in range(count)))
    assert found == pytest.approx({"a": -math.log(6) / 2, "b": math.log(6) / 2}, abs=1e-4)


def test_what_has_a_fit_is_what_linear_programming_says_has_one():
    rng = np.random.default_rng(1)
    outcomes = {True: 0, False: 0}
    for _ in range(400):
        choices = simulated(rng, rng.normal(size=rng.integers(2, 6)), rng.normal(), int(rng.integers(3, 22)))
        has_fit = not (choices.score_refusal() or choices.bias_refusal())
        assert has_fit == has_maximum(choices), choices
        outcomes[has_fit] += 1
    assert min(outcomes.values()) > 50


def test_a_long_cycle_can_speak_against_a_bias():
    around = [(1, 0, False, 0), (2, 1, False, 0), (0, 2, False, 0)]
    # All three won in the second place; and once more, all in the first.
    assert Choices.of(around).bias_refusal().startswith("the votes fit a bias to the second object without bound")
    assert Choices.of(around + [(a, b, True, 0) for a, b, _, _ in around]).bias_refusal() is None


def test_an_object_that_met_itself_and_was_chosen_on_either_side_speaks_against_a_bias():
    alike = [("a", "a", True, 0), ("a", "a", False, 1)]
    assert Choices.of(alike).bias_refusal() is None
    assert Choices.of(alike[:1]).bias_refusal().startswith("the votes fit a bias to the first object without bound")


def test_the_fit_is_the_maximum_of_the_likelihood():
    choices = simulated(np.random.default_rng(2), np.array([1.2, 0.1, -0.4, -0.9]), 0.8, 300)
    rows = rows_of(choices)
    lowest = minimize(lambda theta: np.logaddexp(0, -rows @ theta).sum(), np.zeros(5), tol=1e-10).x
    lowest[:-1] -= lowest[:-1].mean()
    fitted = JointFit.of(choices).solve()
    np.testing.assert_allclose(fitted, lowest, atol=1e-4)
    # At the maximum every item is chosen as often as expected, and so is the first object.
    np.testing.assert_allclose(rows.T @ chance(-rows @ fitted), 0, atol=1e-7)


# The bias.


@pytest.mark.parametrize("planted", [0.0, 1.0])
def test_the_joint_fits_bias_is_right_with_ten_votes_a_score(planted):
    rng, found = np.random.default_rng(6), []
    for _ in range(300):
        choices = simulated(rng, rng.normal(size=12), planted, 130)
        bias = source_bias([choices])
        found.append(bias.log_odds if bias.method == "joint fit" else math.nan)
    fitted = np.array([each for each in found if not math.isnan(each)])
    # Where fewer votes than ten a score remain in the parts that fit, another estimate is taken; here that is rare.
    assert len(fitted) > 200
    # The fit alone is about 0.2 too high for a position bias of 1; four standard errors of the mean are about 0.07.
    assert abs(fitted.mean() - planted) < 4 * fitted.std() / math.sqrt(len(fitted))


def pairs_with_early_stops(rng, bias, pairs, by_chance):
    """Return votes on pairs of new items, N = 4, that stop at the first vote for the second item."""
    for pair in range(pairs):
        gap = rng.normal(0, 2)
        for index in range(4):
            second_first = rng.random() < 0.5 if by_chance else index % 2 == 0
            log_odds = bias + (gap if second_first else -gap)
            chose_first = bool(rng.random() < chance(log_odds))
            yield (("b", pair), ("a", pair), chose_first, pair) if second_first else (
                ("a", pair), ("b", pair), chose_first, pair
            )  # fmt: skip
            if chose_first == second_first:
                break


@pytest.mark.parametrize("planted", [0.0, 0.8])
def test_pairs_alone_tell_the_bias_where_sides_are_drawn_by_chance(planted):
    choices = Choices.of(pairs_with_early_stops(np.random.default_rng(7), planted, 3_000, by_chance=True))
    bias = source_bias([choices], random_sides=[choices])
    assert (bias.method, bias.low <= planted <= bias.high) == ("pairs", True)
    # A tenth of the interval's width: had preferences and early stops any say, it would lie outside by far.
    assert bias.high - bias.low < 0.5


def test_pairs_alone_would_mislead_where_the_order_is_fixed():
    choices = Choices.of(pairs_with_early_stops(np.random.default_rng(9), 0.0, 3_000, by_chance=False))
    wrongly = source_bias([choices], random_sides=[choices])
    assert not wrongly.low <= 0 <= wrongly.high
    with pytest.raises(NoFit, match="it takes 10 votes for each"):
        source_bias([choices])


def test_one_bias_is_fitted_over_several_questions():
    rng = np.random.default_rng(11)
    scores = np.array([1.0, 0.0, -1.0])
    groups = [simulated(rng, scores, 0.7, 1_500), simulated(rng, -2 * scores, 0.7, 1_500)]
    both = source_bias(groups)
    alone = [source_bias([group]) for group in groups]
    assert both.votes == 3_000
    assert both.low <= 0.7 <= both.high
    # Twice the votes: narrower by the square root of two.
    assert both.high - both.low < 0.9 * min(each.high - each.low for each in alone)


def test_a_bias_is_no_cycle():
    rng = np.random.default_rng(13)
    # Of each pair one order only, round the ring: a position bias alone makes each beat the next.
    ring = [(i, (i + 1) % 5) for i in range(5)] * 60 + [(i, (i + 2) % 5) for i in range(5)] * 20
    votes = Choices.of((a, b, bool(rng.random() < chance(1.0)), 0) for a, b in ring)
    assert cycle_test(votes, rng).p_value > 0.01
    # The same winners, each once on either side: no position bias explains them.
    names = zip(votes.winners.tolist(), votes.losers.tolist(), strict=True)
    assert cycle_test(on_both_sides(names), rng).p_value < 1e-3


# Coverage of intervals.

EFFECTS = np.array([0.6, 0.1, -0.2, -0.5])
ENDS = np.array([pair for pair in itertools.product(range(4), repeat=2) if pair[0] != pair[1]])


def campaign_with_effects(rng, clusters):
    """Return four votes on each pair and order in each cluster, whose scores differ from the planted by N(0, 1)."""
    scores = EFFECTS + rng.normal(size=(clusters, 4))
    log_odds = scores[:, ENDS[:, 0]] - scores[:, ENDS[:, 1]] + 0.3
    chose_first = rng.random((4, *log_odds.shape)) < chance(log_odds)
    cluster = np.broadcast_to(np.arange(clusters)[:, None], log_odds.shape)
    first, second = (np.broadcast_to(end, log_odds.shape) for end in ENDS.T)
    rows = (np.broadcast_to(each, chose_first.shape).ravel().tolist() for each in (first, second, chose_first, cluster))
    return Choices.of(zip(*rows, strict=True))


def votes_alone(choices):
    return Choices.of((*vote[:3], index) for index, vote in enumerate(choices.rows()))


@pytest.fixture(scope="module")
def planted():
    """Return the scores of the population of clusters: the fit to very many of them."""
    return scores_of(campaign_with_effects(np.random.default_rng(14), 6_000))


def coverage(planted, clusters, campaigns, belongs=lambda choices: choices):
    """Return how often 95 % intervals of the four scores hold the truth."""
    rng, covered = np.random.default_rng(15), 0
    for _ in range(campaigns):
        found = bradley_terry_intervals(belongs(campaign_with_effects(rng, clusters)))
        truth = [planted[item] for item in found.items]
        covered += int(((found.low <= truth) & (truth <= found.high)).sum())
    return covered / (campaigns * len(planted))


def test_intervals_by_clusters_cover_and_those_by_votes_do_not(planted):
    # A coverage of 95 % over 400 campaigns has a standard error of 1.1 % for one score, less for four.
    by_clusters = coverage(planted, 40, 400)
    by_few = coverage(planted, MIN_CLUSTERS, 200)
    print(f"\ncoverage of 95 % intervals: {by_clusters:.1%} with 40 clusters, {by_few:.1%} with {MIN_CLUSTERS}")
    assert 0.91 <= by_clusters <= 0.98
    # The control: fewer campaigns are enough to see it fail.
    assert not 0.91 <= coverage(planted, 40, 100, votes_alone) <= 0.98


TEAMS = ("Milwaukee", "Detroit", "Toronto", "New York", "Boston", "Cleveland", "Baltimore")
# American League East 1987, wins of the row over the column: Agresti, Categorical Data Analysis, 2nd edition, 10.6.
WINS = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ]
)


def from_wins(wins, names=None):
    """Return votes (winner, loser) from a matrix of wins of the row over the column."""
    names = range(len(wins)) if names is None else names
    pairs = zip(itertools.product(names, repeat=2), np.ravel(wins).tolist(), strict=True)
    return [pair for pair, count in pairs for _ in range(count)]


def simulated_wins(rng, scores, votes):
    """Return `votes` votes between each pair of items with these scores."""
    wins = np.triu(rng.binomial(votes, chance(scores[:, None] - scores[None, :])), 1)
    return from_wins(wins + np.triu(votes - wins, 1).T)


def on_both_sides(votes):
    """Return each vote (winner, loser) twice, its winner once on either side, and each in a cluster of its own."""
    rows = list(votes)
    return Choices.of(
        [(a, b, True, index) for index, (a, b) in enumerate(rows)]
        + [(b, a, False, len(rows) + index) for index, (a, b) in enumerate(rows)]
    )


def on_sides_in_turn(votes):
    """Return each vote (winner, loser) once, its winner on either side in turn."""
    return Choices.of((a, b, True, 0) if index % 2 else (b, a, False, 0) for index, (a, b) in enumerate(votes))


def test_the_scores_of_the_textbook():
    scores = scores_of(on_both_sides(from_wins(WINS, TEAMS)))
    relative = [round(scores[team] - scores["Baltimore"], 2) for team in TEAMS]
    # Agresti's estimates, with Baltimore at 0.
    assert relative == [1.58, 1.44, 1.29, 1.25, 1.11, 0.68, 0]
    assert sum(scores.values()) == pytest.approx(0, abs=1e-12)


def test_scores_that_lie_far_apart_are_fitted_all_the_same():
    # Each beats the next 50 to 1, so neighbours differ by log 50; with its own defaults the library stops half way.
    votes = [(i, i + 1) for i in range(39) for _ in range(50)] + [(i + 1, i) for i in range(39)]
    scores = scores_of(on_both_sides(votes))
    gaps = [scores[i] - scores[i + 1] for i in range(39)]
    np.testing.assert_allclose(gaps, math.log(50), atol=1e-5)
    halted = evalica.bradley_terry(*zip(*votes, strict=True), [evalica.Winner.X] * len(votes)).scores
    assert math.log(halted[0] / halted[39]) < 0.9 * sum(gaps)


def test_intervals_are_as_wide_as_the_information_says():
    scores = np.array([1.0, 0.3, -0.2, -1.1])
    votes = on_both_sides(simulated_wins(np.random.default_rng(1), scores, 200))
    found = bradley_terry_intervals(votes)
    # On both sides alike, votes say nothing of a position bias.
    assert found.bias.log_odds == pytest.approx(0, abs=1e-9)
    ordered = found.estimate[np.argsort(found.items)]
    first_wins = chance(ordered[:, None] - ordered[None, :])
    information = -400 * first_wins * (1 - first_wins)
    np.fill_diagonal(information, 0)
    np.fill_diagonal(information, -information.sum(axis=1))
    error = np.sqrt(np.diag(np.linalg.pinv(information)))[np.array(found.items)]
    # Each vote is a cluster: a variance from 2,400 squares has a standard error of some 3 %, a width of half that.
    np.testing.assert_allclose((found.high - found.low) / 2, 1.96 * error, rtol=0.15)


def test_a_fit_that_did_not_converge_is_refused(monkeypatch):
    monkeypatch.setattr(fits, "_MAX_STEPS", 2)
    with pytest.raises(NoFit, match="no convergence within 2 steps"):
        scores_of(on_both_sides(from_wins(WINS)))


@pytest.mark.parametrize(
    ("votes", "reason"),
    [
        ([], "^there is no vote$"),
        ([("a", "b"), ("a", "b")], "^item a, never lost to any other; item b, never won over any$"),
        ([("a", "b"), ("a", "c"), ("b", "c"), ("c", "b")], r"^item a, never lost .*; 2 items \(b, c\), never won"),
        ([("b", "a"), ("c", "a"), ("b", "c"), ("c", "b")], r"^2 items \(b, c\), never lost .*; item a, never won"),
        ([("a", "c"), ("b", "c")], r"^2 groups of items, 2 items \(a, b\), never lost to any other; item c, never won"),
        ([("c", "a"), ("c", "b")], r"^item c, never lost .*; 2 groups of items, 2 items \(a, b\), never won"),
        ([("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")], r"^2 groups, of 2, 2 items, were never compared"),
    ],
)
def test_what_has_no_fit_is_reported_and_not_fitted(votes, reason):
    for attempt in (bradley_terry_intervals, lambda choices: cycle_test(choices, np.random.default_rng(0))):
        with pytest.raises(NoFit, match=reason):
            attempt(on_both_sides(votes))


def test_the_parts_that_can_be_fitted():
    votes = on_both_sides(tuple(vote) for vote in ["ab", "ba", "bc", "cd", "dc", "de", "ed", "fa"])
    labels = dict(zip(votes.items, votes.parts().tolist(), strict=True))
    parts = [{item for item in labels if labels[item] == label} for label in set(labels.values())]
    assert sorted(map(sorted, parts)) == [["a", "b"], ["c", "d", "e"], ["f"]]
    kept = votes.within(votes.parts())
    assert (set(kept.items), kept.votes) == (set("abcde"), 12)
    np.testing.assert_allclose(JointFit.of(kept, kept.parts()).solve(), 0, atol=1e-9)


def test_the_textbooks_league_has_no_cycles():
    found = cycle_test(on_sides_in_turn(from_wins(WINS, TEAMS)), np.random.default_rng(3))
    assert found.cycles == 15
    # Agresti reports a deviance of 15.7 on 15 degrees of freedom; Pearson's statistic has the same limit.
    assert found.statistic == pytest.approx(15.7, rel=0.1)
    expected = stats.chi2.sf(found.statistic, 15)
    # Four standard errors of a share among 9,999 simulations, and 0.01 for what the chi-square distribution leaves out.
    assert found.p_value == pytest.approx(expected, abs=0.02 + 0.01)


def test_rock_paper_scissors_is_found():
    wins = np.array([[0, 9, 1], [1, 0, 9], [9, 1, 0]])
    found = cycle_test(on_both_sides(from_wins(wins)), np.random.default_rng(4))
    # All scores are equal, so each pair leaves 8 of 20 votes over: X^2 = 3 * 8^2 / 5.
    assert found.statistic == pytest.approx(38.4, rel=1e-6)
    assert (found.cycles, found.p_value) == (1, pytest.approx(1e-4, abs=3e-4))


@pytest.mark.parametrize("votes", [3, 12])
def test_right_votes_are_called_cyclic_as_often_as_the_level_says(votes):
    rng = np.random.default_rng(5)
    found = []
    while len(found) < 300:
        choices = on_sides_in_turn(simulated_wins(rng, np.linspace(-1, 1, 5), votes))
        if not (choices.score_refusal() or choices.bias_refusal()):
            found.append(cycle_test(choices, rng, simulations=199).p_value)
    # Binomial(300, 0.05) exceeds 32 once in ten thousand seeds.
    assert sum(p <= 0.05 for p in found) <= 32


def test_a_tree_of_comparisons_has_no_cycle_to_test():
    with pytest.raises(ValueError, match="no cycle"):
        cycle_test(on_both_sides([("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]), np.random.default_rng(0))
