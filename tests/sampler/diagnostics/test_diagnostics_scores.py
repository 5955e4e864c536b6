"""Bradley-Terry scores with intervals, what has no fit, and the test against cycles."""

import math

import evalica
import numpy as np
import pytest
from scipy import stats

from sampler.diagnostics import (
    Choices,
    Comparisons,
    NoFit,
    bradley_terry_intervals,
    bradley_terry_scores,
    cycle_test,
    newton,
)

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
    """Return comparisons from a matrix of wins of the row over the column."""
    names = range(len(wins)) if names is None else names
    return Comparisons.of((a, b) for a, row in zip(names, wins, strict=True) for b, n in zip(names, row, strict=True)
                          for _ in range(n))  # fmt: skip


def simulated(rng, scores, votes):
    """Return `votes` votes between each pair of items with these scores."""
    gap = scores[:, None] - scores[None, :]
    wins = np.triu(rng.binomial(votes, 1 / (1 + np.exp(-gap))), 1)
    return from_wins(wins + np.triu(votes - wins, 1).T)


def on_both_sides(comparisons):
    """Return each vote twice, its winner once on either side, and each in a cluster of its own."""
    each = zip(comparisons.winners.tolist(), comparisons.losers.tolist(), comparisons.counts.tolist(), strict=True)
    items = comparisons.items
    votes = [(items[a], items[b]) for a, b, count in each for _ in range(count)]
    return Choices.of(
        [(a, b, True, place) for place, (a, b) in enumerate(votes)]
        + [(b, a, False, len(votes) + place) for place, (a, b) in enumerate(votes)]
    )


def by_item(comparisons, values):
    return dict(zip(comparisons.items, values, strict=True))


def test_the_scores_of_the_textbook():
    comparisons = from_wins(WINS, TEAMS)
    scores = by_item(comparisons, bradley_terry_scores(comparisons))
    relative = [round(scores[team] - scores["Baltimore"], 2) for team in TEAMS]
    # Agresti's estimates, with Baltimore at 0.
    assert relative == [1.58, 1.44, 1.29, 1.25, 1.11, 0.68, 0]
    assert sum(scores.values()) == pytest.approx(0, abs=1e-12)


def test_scores_that_lie_far_apart_are_fitted_all_the_same():
    # Each beats the next 50 to 1, so neighbours differ by log 50; with its own defaults the library stops half way.
    votes = [(i, i + 1) for i in range(39) for _ in range(50)] + [(i + 1, i) for i in range(39)]
    comparisons = Comparisons.of(votes)
    scores = by_item(comparisons, bradley_terry_scores(comparisons))
    gaps = [scores[i] - scores[i + 1] for i in range(39)]
    np.testing.assert_allclose(gaps, math.log(50), atol=1e-5)
    halted = evalica.bradley_terry(*zip(*votes, strict=True), [evalica.Winner.X] * len(votes)).scores
    assert math.log(halted[0] / halted[39]) < 0.9 * sum(gaps)


def test_a_fit_that_did_not_converge_is_refused(monkeypatch):
    monkeypatch.setattr(newton, "_MOST_STEPS", 2)
    with pytest.raises(NoFit, match="no convergence within 2 steps"):
        bradley_terry_scores(from_wins(WINS))


def test_intervals_are_as_wide_as_the_information_says():
    scores = np.array([1.0, 0.3, -0.2, -1.1])
    comparisons = simulated(np.random.default_rng(1), scores, 200)
    found = bradley_terry_intervals(on_both_sides(comparisons), np.random.default_rng(2), resamples=1_000)
    # On both sides alike, votes say nothing of a lean, and scores are those without one.
    assert found.lean.log_odds == pytest.approx(0, abs=1e-9)
    once = by_item(comparisons, bradley_terry_scores(comparisons))
    np.testing.assert_allclose(found.estimate, [once[item] for item in found.items], atol=1e-7)
    ordered = found.estimate[np.argsort(found.items)]
    chance = 1 / (1 + np.exp(ordered[None, :] - ordered[:, None]))
    information = -400 * chance * (1 - chance)
    np.fill_diagonal(information, 0)
    np.fill_diagonal(information, -information.sum(axis=1))
    error = np.sqrt(np.diag(np.linalg.pinv(information)))[np.array(found.items)]
    # Of 1,000 resamples a 2.5 % quantile has a standard error of 0.084 standard deviations, 4.3 % of a half width.
    np.testing.assert_allclose((found.high - found.low) / 2, 1.96 * error, rtol=0.15)


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
    comparisons = Comparisons.of(votes)
    for attempt in (
        bradley_terry_scores,
        lambda given: bradley_terry_intervals(on_both_sides(given), np.random.default_rng(0)),
        lambda given: cycle_test(given, np.random.default_rng(0)),
    ):
        with pytest.raises(NoFit, match=reason):
            attempt(comparisons)


def test_the_parts_that_can_be_fitted():
    comparisons = Comparisons.of(tuple(vote) for vote in ["ab", "ba", "bc", "cd", "dc", "de", "ed", "fa"])
    assert comparisons.fittable_parts() == [("c", "d", "e"), ("a", "b")]
    part = comparisons.among("cde")
    assert (part.items, part.votes, part.refusal()) == (("c", "d", "e"), 4, None)
    np.testing.assert_allclose(bradley_terry_scores(part), 0, atol=1e-9)


def test_an_item_against_itself_is_refused():
    with pytest.raises(ValueError, match="'a' and itself"):
        Comparisons.of([("a", "a")])


def test_votes_that_do_not_know_their_clusters_have_no_intervals():
    with pytest.raises(TypeError, match="must be Choices: intervals need to know which votes belong to one cluster"):
        bradley_terry_intervals(from_wins(WINS), np.random.default_rng(0))


def test_the_textbooks_league_has_no_cycles():
    found = cycle_test(from_wins(WINS, TEAMS), np.random.default_rng(3))
    assert found.cycles == 15
    # Agresti reports a deviance of 15.7 on 15 degrees of freedom; Pearson's statistic has the same limit.
    assert found.statistic == pytest.approx(15.7, rel=0.1)
    expected = stats.chi2.sf(found.statistic, 15)
    # Four standard errors of a share among 9,999 simulations, and 0.01 for what the chi-square law leaves out.
    assert found.p_value == pytest.approx(expected, abs=0.02 + 0.01)


def test_rock_paper_scissors_is_found():
    wins = np.array([[0, 9, 1], [1, 0, 9], [9, 1, 0]])
    found = cycle_test(from_wins(wins), np.random.default_rng(4))
    # All scores are equal, so each pair leaves 4 of 10 votes over: X^2 = 3 * 4^2 / 2.5.
    assert found.statistic == pytest.approx(19.2, rel=1e-6)
    assert (found.cycles, found.p_value) == (1, pytest.approx(1e-4, abs=3e-4))


@pytest.mark.parametrize("votes", [3, 12])
def test_right_votes_are_called_cyclic_as_often_as_the_level_says(votes):
    rng = np.random.default_rng(5)
    found = []
    while len(found) < 300:
        comparisons = simulated(rng, np.linspace(-1, 1, 5), votes)
        if comparisons.refusal() is None:
            found.append(cycle_test(comparisons, rng, simulations=199).p_value)
    # Binomial(300, 0.05) exceeds 32 once in ten thousand seeds.
    assert sum(p <= 0.05 for p in found) <= 32


def test_a_tree_of_comparisons_has_no_cycle_to_test():
    with pytest.raises(ValueError, match="no cycle"):
        cycle_test(Comparisons.of([("a", "b"), ("b", "a"), ("b", "c"), ("c", "b")]), np.random.default_rng(0))
