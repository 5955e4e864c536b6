"""What the campaigns of each experiment run: one file for each, registered in `RECIPES`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from prefmh_web.experiments.recipes import images, molecules, stories, translation
from prefmh_web.experiments.recipes.part import Part

RECIPES: Mapping[str, Callable[[Part], dict[str, Any]]] = {
    "stories": stories.recipe,
    "images": images.recipe,
    "molecules": molecules.recipe,
    "translation": translation.recipe,
}
"""By the experiment's name, what makes the recipe of one of its campaigns."""

__all__ = ["RECIPES", "Part"]
