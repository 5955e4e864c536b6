"""Recipes of version 1, for campaigns that prefmh 0.1.0 has started and that go on under the rules they began with.

`parse_recipe` refuses them, and so does `replay`: their records are checked by the program that wrote them. What
version 1 means otherwise than version 2:

    ratings    forms separate and joint took (rating - lowest) / (highest - lowest), not rating / highest
    orders     a judge of one order might stand alone, or beside a twin of another budget

A chain that changed its rule half-way would sample neither law, so whoever keeps such a recipe reads it here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sampler.recipe import Recipe, RecipeError, misfits, validated
from sampler.rules.recipe import PointwiseRecipe
from sampler.rules.tilt import accept_by_weight


class FirstPointwiseRecipe(PointwiseRecipe):
    """Ratings as version 1 reads them."""

    @property
    def unit(self) -> int:
        """How much on the scale is 1 in the exponent, for forms separate and joint."""
        return self.highest - self.lowest

    def acceptance(self, log_r0: float, current: Sequence[float], proposal: Sequence[float]) -> float:
        """Return the acceptance probability for the mean ratings of x and of x', one a judge.

        Raises:
            ValueError: as in `PointwiseRecipe`.
        """
        accepted = super().acceptance(log_r0, current, proposal)
        if self.form not in ("separate", "joint"):
            return accepted
        before, after = (
            np.sum((np.asarray(ratings, dtype=np.float64) - self.lowest) / self.unit) for ratings in (current, proposal)
        )
        return float(accept_by_weight(log_r0, before, after))


def parse_first_version(data: Mapping[str, Any]) -> Recipe:
    """Return the recipe of version 1 that `data` (parsed JSON) describes, with the meaning it had.

    Raises:
        RecipeError: with every problem found.
    """
    recipe = validated({name: value for name, value in data.items() if name != "version"})
    if problems := list(misfits(recipe)):
        raise RecipeError(problems)
    if recipe.rule.kind == "pointwise":
        recipe = recipe.model_copy(update={"rule": FirstPointwiseRecipe(**recipe.rule.model_dump())})
    return recipe
