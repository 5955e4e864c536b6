"""Recipes of version 1, read for campaigns that began under them: what changed since keeps the meaning it had."""

from __future__ import annotations

import math

import pytest

from sampler import RecipeError, parse_first_version, parse_recipe, replay
from tests.support.records import make_record

JUDGE = {"question": "How gothic is it?", "budget": 2, "source": {"kind": "model", "endpoint": "A model"}}
RECIPE = {
    "version": 1,
    "space": {"kind": "catalog", "objects": "texts", "neighbours": 4},
    "kernel": {"kind": "neighbours"},
    "judges": [JUDGE],
    "chains": 1,
    "steps": 10,
    "seed": 1,
}
HALF = {"question": "Which?", "budget": 2, "order": "proposal-first"}


def rated(form, **changes):
    return RECIPE | {"rule": {"kind": "pointwise", "form": form} | changes}


@pytest.mark.parametrize(
    ("recipe", "old", "new"),
    [
        (rated("separate"), math.exp(-3 / 9), math.exp(-0.3)),
        (rated("joint"), math.exp(-3 / 9), math.exp(-0.3)),
        (rated("joint", lowest=0), math.exp(-0.3), math.exp(-0.3)),
        (rated("difference"), math.exp(-3), math.exp(-3)),
        (rated("power"), 0.7**30, 0.7**30),
    ],
)
def test_ratings_keep_the_scale_they_had(recipe, old, new):
    # From a mean rating of 10 to one of 7.
    assert parse_first_version(recipe).rule.acceptance(0.0, [10], [7]) == pytest.approx(old, rel=1e-12)
    assert parse_recipe(recipe | {"version": 2}).rule.acceptance(0.0, [10], [7]) == pytest.approx(new, rel=1e-12)
    with pytest.raises(ValueError, match="ratings"):
        parse_first_version(rated("joint")).rule.acceptance(0.0, [11], [7])


def test_the_law_is_that_of_the_old_scale():
    assert parse_first_version(rated("joint")).law.startswith("p0(x) * exp(r1(x)/9); r1:")
    assert parse_first_version(rated("joint", lowest=0)).law.startswith("p0(x) * exp(r1(x)/10); r1:")


@pytest.mark.parametrize("judges", [[HALF], [HALF, HALF | {"order": "proposal-second", "budget": 5}]])
def test_judges_of_one_order_might_stand_alone(judges):
    assert len(parse_first_version(RECIPE | {"judges": judges}).judges) == len(judges)
    with pytest.raises(RecipeError, match="twin"):
        parse_recipe(RECIPE | {"version": 2, "judges": judges})


def test_what_was_refused_still_is():
    for wrong in ({"chains": 0}, {"kernel": {"kind": "suffix"}}, {"rule": {"kind": "pointwise", "form": "mean"}}):
        with pytest.raises(RecipeError):
            parse_first_version(RECIPE | wrong)


def test_replay_refuses_a_record_of_version_1_in_one_sentence_that_names_its_program():
    record = make_record()
    assert not replay(*record.tables()).differences
    record.recipe["version"] = 1
    with pytest.raises(RecipeError, match=r"^version: [^.]*version 1 is read by prefmh 0\.1\.0[^.]*$"):
        replay(*record.tables())
