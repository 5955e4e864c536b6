"""The choice of a walk's length from the counts of a warm-up."""

import numpy as np
import pytest

import sampler
from sampler import ConfigError, Neighbours, parse_config
from sampler.kernels.warm_up import MIN_VOTES, chosen_length, trials
from tests.sampler.kernels.test_walk import NEIGHBOURS, SQUARE, TRIANGLE, space_of, walk_config
from tests.support.enumerated import walk_distribution
from tests.support.outcomes import distribution_of
from tests.support.sampling import LOPSIDED, problems_of

GRID = (1, 16, 256)


def warm_up(jumps, votes_per_person=200, seed=1, share_moved=(0.5, 0.4, 0.3)):
    """Return trials of steps with one vote each; length i moves by `jumps[i]` where it moves, in one property."""
    rng = np.random.default_rng(seed)
    drawn = np.repeat(np.arange(len(GRID)), votes_per_person)
    won = rng.random(len(drawn)) < np.array(share_moved)[drawn]
    before = rng.standard_normal((len(drawn), 1))
    proposed = before + (np.array(jumps)[drawn] * rng.choice([-1, 1], len(drawn)))[:, None]
    after = np.where(won[:, None], proposed, before)
    return trials(GRID, drawn, np.ones(len(drawn), dtype=int), won, before, proposed, after)


def test_the_length_that_moves_most_per_vote_is_chosen():
    assert chosen_length(warm_up((0.1, 1.0, 0.3))) == 16
    assert chosen_length(warm_up((1.0, 0.3, 0.1))) == 1
    assert chosen_length(warm_up((0.1, 0.3, 1.0))) == 256


def test_where_a_single_move_goes_far_a_walk_stops_when_it_has_come_most_of_the_way():
    """Squared, the three go 49 %, 81 % and all of the way; then 36 %, 81 % and all of it."""
    share_moved = (0.3, 0.3, 0.3)
    found = warm_up((0.7, 0.9, 1.0), share_moved=share_moved)
    assert [trial.reach for trial in found] == pytest.approx([0.49, 0.81, 1.0])
    assert chosen_length(found) == 16
    assert chosen_length(warm_up((0.6, 0.9, 1.0), share_moved=share_moved)) == 256
    assert chosen_length(warm_up((0.9, 0.9, 1.0), share_moved=share_moved)) == 1


def test_a_length_that_hardly_ever_wins_is_left_out():
    found = warm_up((0.1, 1.0, 12.0), share_moved=(0.5, 0.4, 0.1))
    assert found[2].esjd_per_vote_lower > found[1].esjd_per_vote_lower
    assert chosen_length(found) == 16


def test_the_property_that_moves_least_counts():
    steps = 600
    drawn, votes = np.arange(steps) % 2, np.ones(steps, dtype=int)
    sign = np.where(np.arange(steps) // 2 % 2, 1.0, -1.0)
    # The first length moves one property far and the other hardly; the second both a little.
    after = np.stack([np.where(drawn == 0, 5.0, 1.0) * sign, np.where(drawn == 0, 0.01, 1.0) * sign], axis=1)
    assert chosen_length(trials((1, 16), drawn, votes, votes, np.zeros((steps, 2)), after, after)) == 16


def test_a_proposal_without_a_property_takes_it_from_the_reach_alone():
    rng = np.random.default_rng(3)
    drawn, ones = rng.integers(3, size=600), np.ones(600, dtype=int)
    states = rng.standard_normal((3, 600, 2))
    known = trials(GRID, drawn, ones, ones, *states)
    states[1, 5, 0] = np.nan
    lacking = trials(GRID, drawn, ones, ones, *states)
    assert [trial.esjd_per_vote for trial in lacking] == [trial.esjd_per_vote for trial in known]
    assert all(trial.reach is not None for trial in lacking)
    states[1, 5, 1] = np.nan
    assert {trial.reach for trial in trials(GRID, drawn, ones, ones, *states)} == {None}


@pytest.mark.parametrize(("votes", "chosen"), [(MIN_VOTES - 1, 16), (MIN_VOTES, 1)])
def test_with_few_votes_the_middle_of_the_grid_is_kept(votes, chosen):
    after = np.where(np.arange(votes) % 2, 1.0, -1.0)[:, None]
    ones = np.ones(votes, dtype=int)
    found = trials(GRID, np.zeros(votes, dtype=int), ones, ones, np.zeros((votes, 1)), after, after)
    assert chosen_length(found) == chosen


def test_what_each_length_did_is_counted():
    proposed, after = [[1.0], [3.0], [0.0], [-1.0]], [[1.0], [0.0], [0.0], [-1.0]]
    found = trials(GRID, [0, 0, 1, 2], [1, 2, 0, 4], [1, 0, 0, 1], np.zeros((4, 1)), proposed, after)
    assert [(trial.steps, trial.votes, trial.votes_for) for trial in found] == [(2, 3, 1), (1, 0, 0), (1, 4, 1)]
    assert [trial.share_won for trial in found] == [1 / 3, None, 0.25]
    assert found[1].esjd_per_vote == 0
    # Proposals at 1 and 3, at 0, at -1: squared and averaged 5, 0 and 1.
    assert [trial.reach for trial in found] == pytest.approx([1, 0, 0.2])


# A warm-up in a config: how its steps draw their length, what stays the same whatever it chooses, what is refused.


WARM_UP = {"steps": 3, "grid": [1, 3], "properties": ["words"], "burn_in": 1}


RATES = {
    "rule": {"kind": "pointwise", "form": "separate"},
    "judges": [{"question": "How dark is it?", "votes": 1, "source": {"kind": "model", "endpoint": "any"}}],
}


def warming(steps: int = 6, length: object = 5, **changes) -> dict:
    config = walk_config(NEIGHBOURS, length)
    return config | {"steps": steps, "kernel": config["kernel"] | {"warm_up": WARM_UP | changes}}


def test_a_warm_up_draws_its_lengths_and_then_waits_for_a_choice():
    config = parse_config(warming())
    assert parse_config(config.model_dump(mode="json")) == config
    parts = {step: config.part_of(0, step) for step in range(1, 7)}
    assert {parts[step] for step in (1, 2, 3)} <= {0, 1}
    assert {parts[step] for step in (4, 5, 6)} == {None}
    plan = config.build(TRIANGLE)
    assert sampler.ask(plan, sampler.Position(0, 2, 1)).log_r0 == 0
    with pytest.raises(ValueError, match="before its length is chosen"):
        sampler.ask(plan, sampler.Position(0, 3, 1))
    # Whatever is chosen, the steps of the warm-up are the same; the others are those of a config with that length.
    chosen, fixed = (config.build(TRIANGLE, walk_length=9), parse_config(walk_config(NEIGHBOURS, 9)).build(TRIANGLE))
    positions = [sampler.Position(chain, step, 1) for chain in range(4) for step in range(6)]
    asked = sampler.ask_many(chosen, positions)
    assert asked == [sampler.ask(chosen, position) for position in positions]
    for position, comparison in zip(positions, asked, strict=True):
        assert comparison == sampler.ask(plan if position.step < 3 else fixed, position)


def test_the_warm_up_is_a_mixture_of_its_lengths():
    plan, distribution = parse_config(warming()).build(LOPSIDED), space_of(LOPSIDED).distribution(Neighbours(LOPSIDED))
    drawn = distribution_of(lambda rng: plan.kernel_at(1).propose(rng, 0).state)
    lengths = [walk_distribution(LOPSIDED.log_p0, distribution, length)[0] for length in WARM_UP["grid"]]
    assert drawn == pytest.approx(dict(enumerate(np.mean(lengths, axis=0))), abs=1e-12)
    # As if every step walked the longest of them.
    assert drawn != pytest.approx(dict(enumerate(lengths[-1])), abs=1e-2)


@pytest.mark.parametrize(
    ("config", "path", "message"),
    [
        (warming(steps=3), "kernel.warm_up.steps", "less than the 3 steps"),
        (warming(steps=4), "kernel.warm_up.burn_in", "no step to sample"),
        (warming(grid=[4, 4]), "kernel.warm_up.grid", "larger than the one before"),
        (warming(grid=[0, 4]), "kernel.warm_up.grid", "from 1 to"),
        (warming(properties=["weight"]), "kernel.warm_up.properties", "there are words, sentences"),
        (warming(properties=["words", "words"]), "kernel.warm_up.properties", "once"),
        (warming(length=[{"weight": 0.5, "length": 1}, {"weight": 0.5, "length": 2}]), "kernel", "one number"),
        (warming() | {"burn_in": 6}, "burn_in", "less than the 6 steps"),
        (
            warming() | {"space": {"kind": "catalog", "objects": "images", "neighbours": 2}},
            "kernel.warm_up.properties",
            "does not hold the files",
        ),
        (warming() | RATES, "kernel.warm_up", "counts votes"),
    ],
)
def test_a_warm_up_that_cannot_be_is_refused_by_its_field(config, path, message):
    assert message in problems_of(config)[path]


def test_a_warm_up_of_no_steps_is_none():
    config = walk_config(NEIGHBOURS, 4)
    none = config | {"kernel": config["kernel"] | {"warm_up": 0}}
    assert parse_config(none) == parse_config(config)


def test_a_warm_up_that_might_choose_half_of_a_catalog_is_refused():
    with pytest.raises(ConfigError, match="odd lengths"):
        parse_config(warming(grid=[1, 4])).build(SQUARE)
    parse_config(warming(grid=[1, 3])).build(SQUARE)
