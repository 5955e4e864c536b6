"""Pairs that are given: the law of a chain on its pair, the recipe, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from sampler import RecipeError, parse_recipe
from sampler.kernels.neighbours import Neighbours
from sampler.spaces.pairs import MAX_CHARACTERS, MAX_PAIRS, Pairs
from sampler.streams import Purpose, stream
from tests.support.exact import imbalance, target, transition_matrix

CONTENTS = (("ash", "birch"), ("cedar", "ash"), ("elm", "fir"))
SCORES = np.array([0.7, -0.2])


def recipe(**changed):
    """Return a recipe of three pairs, with fields of the space replaced; None leaves one out."""
    space = {"kind": "pairs", "objects": "texts", "pairs": [list(pair) for pair in CONTENTS], **changed}
    return {
        "version": 1,
        "space": {name: value for name, value in space.items() if value is not None},
        "kernel": {"kind": "neighbours"},
        "judges": [{"question": "Which is better?", "budget": 1}],
        "chains": 3,
        "steps": 4,
        "seed": 0,
    }


def test_a_chain_stands_on_its_pair_and_each_move_is_to_the_other_object():
    space, kernel = Pairs(CONTENTS), Neighbours(Pairs(CONTENTS))
    for chain, pair in enumerate(CONTENTS * 2):
        start = space.start(stream(1, chain, 0, Purpose.START), chain)
        assert space.content(start) == pair[0]
        moved = kernel.propose(stream(1, chain, 1, Purpose.PROPOSAL), start)
        assert (space.content(moved.state), moved.log_r0) == (pair[1], 0.0)
        back = kernel.propose(stream(1, chain, 2, Purpose.PROPOSAL), moved.state)
        assert (back.state, back.log_r0) == (start, 0.0)


def test_one_vote_a_step_is_exact_on_the_pair():
    """Half and half before any vote, so exp(s) after: a step goes to the other one just when it is chosen."""
    space = Pairs(CONTENTS[:1])
    q = np.array([[0.0, 1.0], [1.0, 0.0]])
    transitions = transition_matrix(space.log_p0, q, [SCORES], (1,))
    assert transitions[0, 1] == pytest.approx(expit(SCORES[1] - SCORES[0]), abs=1e-15)
    assert np.exp(space.log_p0).sum() == pytest.approx(1, abs=1e-15)
    assert imbalance(target(space.log_p0, [SCORES]), transitions) < 1e-12
    # The control: with three to one before any vote, and a ratio that says otherwise, it is not.
    assert imbalance(target(np.log([0.75, 0.25]), [SCORES]), transitions) > 1e-2


def test_a_recipe_comes_back_as_it_was_and_builds_the_pairs():
    found = parse_recipe(recipe())
    assert parse_recipe(found.model_dump(mode="json")) == found
    assert found.space.objects == "texts"
    space = found.space.build()
    codes = [space.encode(state) for state in range(6)]
    assert [space.content(space.decode(code)) for code in codes] == [content for pair in CONTENTS for content in pair]
    assert not any(space.is_close(one, one ^ 1) for one in range(6))


@pytest.mark.parametrize("code", ["6", "-1", "01", "1.0", "", "٣", "one"])
def test_a_code_that_is_no_place_is_refused(code):
    with pytest.raises(ValueError, match="code must be a whole number below 6"):
        Pairs(CONTENTS).decode(code)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"pairs": []}, "space.pairs"),
        ({"pairs": None}, "space.pairs"),
        ({"pairs": [["ash"]]}, "space.pairs"),
        ({"pairs": [["ash", "birch", "cedar"]]}, "space.pairs"),
        ({"pairs": [["ash", ""]]}, "space.pairs"),
        ({"pairs": [["ash", "x" * (MAX_CHARACTERS + 1)]]}, "space.pairs"),
        ({"pairs": [["ash", "birch"]] * (MAX_PAIRS + 1)}, "space.pairs"),
        ({"objects": "sounds"}, "space.objects"),
        ({"objects": "images", "pairs": [[f"{'0' * 64}.png", "../../etc/passwd"]]}, "space.pairs: 0.1 must be the SHA"),
        ({"objects": "images", "pairs": [[f"{'0' * 64}.png/../x", "ash"]]}, "space.pairs: 0.0 must be the SHA"),
        ({"limit": 3}, "space.limit"),
    ],
)
def test_what_is_no_list_of_pairs_is_refused_with_its_field(changed, told):
    with pytest.raises(RecipeError) as error:
        parse_recipe(recipe(**changed))
    assert told in str(error.value)


def test_pairs_go_with_no_other_kernel():
    with pytest.raises(RecipeError, match="kernel"):
        parse_recipe(recipe() | {"kernel": {"kind": "independent"}})
