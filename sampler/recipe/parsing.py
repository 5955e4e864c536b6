"""From the JSON of a recipe to the recipe, or to every reason why it is none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from sampler.recipe.misfits import misfits, unbalanced, wrong_target
from sampler.recipe.problems import RecipeError, problems_in
from sampler.recipe.recipe import Recipe


def parse_recipe(data: Mapping[str, Any]) -> Recipe:
    """Return the recipe that `data` (parsed JSON) describes.

    Raises:
        RecipeError: with every problem found.
    """
    recipe = validated(data)
    if problems := [*misfits(recipe), *unbalanced(recipe), *wrong_target(recipe)]:
        raise RecipeError(problems)
    return recipe


def validated(data: Mapping[str, Any]) -> Recipe:
    """Return the recipe whose fields each are what they should be; they may not fit together yet.

    Raises:
        RecipeError: with every problem found.
    """
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        raise RecipeError(problems_in(error, data)) from error
