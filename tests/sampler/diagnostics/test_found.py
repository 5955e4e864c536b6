"""What a campaign has found: shares that cover the truth as often as they say, and a verdict that can be believed."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from sampler.diagnostics import verdict as verdicts

CAMPAIGNS = 200
# Chosen before anything was run: the shares whose coverage is measured, and nine objects that have the rest.
TRUE = np.array([0.3, 0.1, 0.03, *[0.57 / 9] * 9])
FOLLOWED = (0, 1, 2)


def chains_of(campaign: int, lengths: Sequence[int], burn_in: int) -> list[verdicts.ChainPath]:
    """Simulate one campaign: a uniform proposal and one vote a step of a Bradley-Terry judge, Barker's rule."""
    rng = np.random.default_rng([20261128, campaign])
    chains, steps = len(lengths), max(lengths)
    at = rng.integers(len(TRUE), size=chains)
    visited = np.empty((burn_in + steps, chains), dtype=np.int64)
    for step in range(burn_in + steps):
        proposal = rng.integers(len(TRUE), size=chains)
        accepted = rng.random(chains) < TRUE[proposal] / (TRUE[at] + TRUE[proposal])
        at = np.where(accepted, proposal, at)
        visited[step] = at
    along = zip(visited[burn_in:].T, lengths, strict=True)
    return [verdicts.ChainPath("", burn_in + 1, objects[:length]) for objects, length in along]


def coverage(interval_of, lengths: Sequence[int]) -> np.ndarray:
    every = [interval_of(chains_of(campaign, lengths, burn_in=60)) for campaign in range(CAMPAIGNS)]
    return np.mean([[found[n][0] <= TRUE[n] <= found[n][1] for n in FOLLOWED] for found in every], axis=0)


def intervals(chains: list[verdicts.ChainPath]) -> dict[int, tuple[float, float]]:
    return {each.object: (each.low, each.high) for each in verdicts.shares(chains, range(len(TRUE)))}


def as_if_steps_were_independent(chains: list[verdicts.ChainPath]) -> dict[int, tuple[float, float]]:
    drawn = np.concatenate([each.objects for each in chains])
    found = {}
    for number in FOLLOWED:
        share = np.mean(drawn == number)
        reach = 1.645 * math.sqrt(max(share * (1 - share), 1e-9) / len(drawn))
        found[number] = share - reach, share + reach
    return found


@pytest.mark.parametrize("lengths", [[400] * 8, [1000] * 2, [400, 400, 400, 20]])
def test_an_interval_of_a_share_covers_it_as_often_as_it_says(lengths):
    """Nominal 90 %; with 200 campaigns a coverage of 90 % comes out at 85 to 95 % (2.4 binomial standard errors)."""
    assert verdicts.LEVEL == 0.9
    found = coverage(intervals, lengths)
    assert np.all((found >= 0.85) & (found <= 0.95)), found


def test_steps_that_are_taken_for_independent_draws_are_found_out():
    found = coverage(as_if_steps_were_independent, [400] * 8)
    assert np.any(found < 0.85), found


def test_an_object_that_was_never_visited_has_an_upper_bound_alone():
    chains = [verdicts.ChainPath("", 1, np.arange(500) % 2) for _ in range(4)]
    found = {each.object: each for each in verdicts.shares(chains, [0, 1, 7])}
    assert (found[7].share, found[7].low, found[7].first_step) == (0, 0, None)
    assert 0 < found[7].high < 0.02
    assert (found[0].first_step, found[0].last_step) == (1, 499)


def test_an_object_that_chains_never_left_has_a_lower_bound_alone():
    (found,) = verdicts.shares([verdicts.ChainPath("", 5, np.zeros(50, dtype=int)) for _ in range(4)])
    assert (found.share, found.high, found.first_step, found.last_step) == (1, 1, 5, 54)
    assert 0 < found.low < 1


def test_targets_are_told_apart_and_chains_of_unequal_length_count_by_their_steps():
    chains = [
        verdicts.ChainPath("a", 1, np.array([0, 0, 0, 1])),
        verdicts.ChainPath("a", 1, np.array([1, 1])),
        verdicts.ChainPath("b", 1, np.array([2])),
    ]
    found = {(each.target, each.object): each.share for each in verdicts.shares(chains)}
    assert found == {("a", 0): 0.5, ("a", 1): 0.5, ("b", 2): 1.0}


def verdict(drawn: Sequence[np.ndarray], votes: int = 4000):
    walked = [verdicts.ChainPath("", 1, along) for along in drawn]
    weights = np.log(TRUE)
    return verdicts.verdict_on(
        walked, verdicts.indicators(walked) | {"log weight": [weights[along] for along in drawn]}, votes
    )


def test_independent_draws_show_no_sign_against_convergence():
    found = [
        verdict(np.random.default_rng([1, campaign]).choice(len(TRUE), size=(4, 500), p=TRUE)).is_that
        for campaign in range(50)
    ]
    assert found.count(verdicts.NO_SIGN) >= 45


def test_two_separated_modes_are_seen():
    found = []
    for campaign in range(50):
        rng = np.random.default_rng([2, campaign])
        mode = np.arange(4)[:, None] % 2
        found.append(verdict(6 * mode + rng.integers(6, size=(4, 500))).is_that)
    assert found.count(verdicts.NO_SIGN) <= 2
    assert found.count(verdicts.DISAGREE) >= 48


def walked_together(campaign: int, chains: int, steps: int, apart: float = 0.0) -> np.ndarray:
    """Simulate chains that stay where they are at every other step; of `apart`, each second one prefers one half."""
    rng = np.random.default_rng([4, campaign, chains])
    half = np.arange(chains)[:, None] % 2 ^ (rng.random((chains, steps)) < (1 - apart) / 2)
    drawn = 6 * half + rng.integers(6, size=(chains, steps))
    since = np.maximum.accumulate(np.where(rng.random((chains, steps)) < 0.5, np.arange(steps), 0), axis=1)
    return np.take_along_axis(drawn, since, axis=1)


@pytest.mark.parametrize(("chains", "steps"), [(10, 200), (20, 100), (50, 50)])
def test_many_short_chains_that_agree_are_not_said_to_disagree(chains, steps):
    """R-hat of chains of so few draws is above 1.01 by chance. Declared: one false alarm in 100; of 100 campaigns, five
    or more have one with a probability of 0.3 %, and 11 of 100 if they were three times as frequent.
    """
    found = [verdict(walked_together(campaign, chains, steps)).is_that for campaign in range(100)]
    assert found.count(verdicts.DISAGREE) <= 5
    # The control: the same chains, where every second one is in one half in 90 % of its draws and not in 10 %.
    found = [verdict(walked_together(campaign, chains, steps, apart=0.8)).is_that for campaign in range(20)]
    assert found.count(verdicts.DISAGREE) >= 18


def test_chains_of_which_few_are_long_or_have_moved_are_not_said_to_agree():
    rng = np.random.default_rng(5)
    long, elsewhere = rng.integers(6, size=(2, 2000)), 6 + rng.integers(6, size=(2, 100))
    found = verdict([*long, *elsewhere])
    assert found.because == "It takes 4 chains of about one length; 2 have it."
    moves_once = np.append(np.zeros(499, dtype=int), 1)
    found = verdict([moves_once, *np.zeros((3, 500), dtype=int)])
    assert (found.is_that, found.because) == (verdicts.NOT_JUDGED, "3 chains have not moved.")


def test_few_draws_are_said_to_be_few_and_how_many_votes_are_missing():
    found = verdict(np.random.default_rng(3).choice(len(TRUE), size=(4, 60), p=TRUE), votes=240)
    assert found.is_that == verdicts.TOO_FEW
    low, high = found.more_votes
    assert 0 < low < high
    assert f"{low:,} to {high:,} more votes" in found.advice


@pytest.mark.parametrize(
    ("seed", "because", "advice"),
    [
        # 399.56 draws are effective.
        (144, ", with 399 effective draws or more; it takes 400.", "About one more vote is needed: "),
    ],
)
def test_just_beyond_a_limit_the_figures_say_so(seed, because, advice):
    drawn = np.random.default_rng(seed).normal(size=(4, 120))
    found = verdicts.verdict_on([verdicts.ChainPath("", 1, np.arange(120))] * 4, {"words": list(drawn)}, 10)
    assert because in found.because
    assert found.advice.startswith(advice)


@pytest.mark.parametrize(
    ("drawn", "why"),
    [
        (np.zeros((0, 10), dtype=int), "No step of the sampling phase is decided."),
        (np.arange(60).reshape(3, 20) % 5, "It takes 4 chains with 20 sampling steps each; 3 chains have them."),
        # Each stays where it is, which so soon says nothing.
        (
            np.repeat([[0], [1], [2], [3]], 19, axis=1),
            "It takes 4 chains with 20 sampling steps each; no chain has them.",
        ),
        (np.zeros((4, 20), dtype=int), "The chains have not moved."),
    ],
)
def test_what_cannot_be_judged_says_why(drawn, why):
    walked = [verdicts.ChainPath("", 1, along) for along in drawn]
    found = verdicts.verdict_on(walked, verdicts.indicators(walked) if len(walked) else {}, 10)
    assert (found.is_that, found.because) == (verdicts.NOT_JUDGED, why)
