"""A warm-up in a config: how its steps draw their length, what stays the same whatever it chooses, what is refused."""

import numpy as np
import pytest
from scipy import stats

import sampler
from sampler import ConfigError, Neighbours, exact, parse_config
from tests.sampler.kernels.test_walk import NEIGHBOURS, SQUARE, TRIANGLE, space_of, walk_config
from tests.support.sampling import LOPSIDED

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
    """The law of a warm-up's proposals, as drawn over many chains: chi-square, fixed seed, p > 1e-3."""
    config = parse_config(warming() | {"chains": 1000})
    plan, law = config.build(LOPSIDED), space_of(LOPSIDED).law(Neighbours(LOPSIDED))
    drawn = np.bincount(
        [sampler.ask(plan, sampler.Position(chain, step, 0)).proposal for chain in range(1000) for step in range(3)],
        minlength=len(LOPSIDED),
    )
    lengths = [exact.walk_law(LOPSIDED.log_p0, law, length) for length in WARM_UP["grid"]]
    assert stats.chisquare(drawn, 3000 * np.mean(lengths, axis=0)[0]).pvalue > 1e-3
    # As if every step walked the longest of them.
    assert stats.chisquare(drawn, 3000 * lengths[-1][0]).pvalue < 1e-6


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
    with pytest.raises(ConfigError) as caught:
        parse_config(config)
    assert path in {problem.path for problem in caught.value.problems}
    assert message in str(caught.value)


def test_a_warm_up_of_no_steps_is_none():
    config = walk_config(NEIGHBOURS, 4)
    none = config | {"kernel": config["kernel"] | {"warm_up": 0}}
    assert parse_config(none) == parse_config(config)


def test_a_warm_up_that_might_choose_half_of_a_catalog_is_refused():
    with pytest.raises(ConfigError, match="odd lengths"):
        parse_config(warming(grid=[1, 4])).build(SQUARE)
    parse_config(warming(grid=[1, 3])).build(SQUARE)
