"""The recipe: everything that fixes a campaign, checked before anything runs.

A recipe is plain JSON. `parse_recipe` refuses a bad one with every field's path and what would be accepted;
`Recipe.build` returns the plan the chain follows, joined with the catalog if the recipe speaks of one.

recipe      the recipe, and what follows from its parts together
parsing     from JSON to a recipe
misfits     where parts do not fit together, though each is what it should be
problems    how all that is told
"""

from sampler.recipe.misfits import misfits
from sampler.recipe.parsing import parse_recipe, validated
from sampler.recipe.problems import RecipeError, RecipeProblem, problems_in
from sampler.recipe.recipe import MOST_CHAINS, MOST_STEPS, Recipe

__all__ = [
    "MOST_CHAINS",
    "MOST_STEPS",
    "Recipe",
    "RecipeError",
    "RecipeProblem",
    "misfits",
    "parse_recipe",
    "problems_in",
    "validated",
]
