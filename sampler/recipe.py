"""The recipe: everything that fixes a campaign, checked before anything runs.

A recipe is plain JSON. `parse_recipe` refuses a bad one with every field's path and what would be accepted;
`Recipe.build` joins it with the catalog it speaks of and returns the plan the chain follows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from sampler.chain import Plan
from sampler.kernels import IndependentRecipe, KernelRecipe, MixtureRecipe, NeighboursRecipe
from sampler.spaces.catalog import Catalog, CatalogRecipe

Question = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=300)]


@dataclass(frozen=True)
class RecipeProblem:
    """One thing wrong with a recipe: where (a path such as judges.0.budget) and what would be accepted."""

    path: str
    message: str


class RecipeError(ValueError):
    """A recipe that cannot be run; `problems` lists every reason."""

    def __init__(self, problems: list[RecipeProblem]) -> None:
        super().__init__("; ".join(f"{p.path}: {p.message}" if p.path else p.message for p in problems))
        self.problems = problems


class JudgeRecipe(BaseModel):
    """One question and how many votes each comparison may cost it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    question: Question
    budget: int = Field(ge=1, le=1000)


class Recipe(BaseModel):
    """Space, kernel, judges, chains, steps and seed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Literal[1] = 1
    space: CatalogRecipe
    kernel: KernelRecipe
    judges: tuple[JudgeRecipe, ...] = Field(min_length=1, max_length=8)
    chains: int = Field(ge=1, le=1000)
    steps: int = Field(ge=1, le=1_000_000)
    # Up to 2^53 - 1, so that the number survives JSON readers and spreadsheets that keep doubles.
    seed: int = Field(ge=0, lt=2**53)

    @model_validator(mode="after")
    def _kernel_fits_space(self) -> Recipe:
        if self.uses_neighbours and not self.space.neighbours:
            raise ValueError("space.neighbours must be 1 or more for a kernel that moves to neighbours")
        return self

    @property
    def uses_neighbours(self) -> bool:
        """True when some move of the kernel follows the neighbour graph."""
        return _moves_to_neighbours(self.kernel)

    @property
    def budgets(self) -> tuple[int, ...]:
        """N_i of each judge, in order."""
        return tuple(judge.budget for judge in self.judges)

    def build(self, catalog: Catalog) -> Plan[int]:
        """Return the plan of this recipe on a catalog.

        Raises:
            RecipeError: the catalog does not fit the kernel.
        """
        if self.uses_neighbours and not catalog.neighbours:
            raise RecipeError([RecipeProblem("space.neighbours", "the catalog has no neighbour graph")])
        if not _draws_afresh(self.kernel) and (parts := catalog.components()) > 1:
            message = (
                f"the neighbour graph falls into {parts} parts that no move connects; use a mixture with "
                "independent draws, or more neighbours per item"
            )
            raise RecipeError([RecipeProblem("kernel", message)])
        return Plan(self.seed, catalog, self.kernel.build(catalog), self.budgets)


def parse_recipe(data: Mapping[str, Any]) -> Recipe:
    """Return the recipe that `data` (parsed JSON) describes.

    Raises:
        RecipeError: with every problem found.
    """
    try:
        return Recipe.model_validate(data)
    except ValidationError as error:
        problems = [
            RecipeProblem(".".join(str(part) for part in found["loc"]), found["msg"])
            for found in error.errors(include_url=False, include_context=False, include_input=False)
        ]
        raise RecipeError(problems) from error


def _draws_afresh(kernel: object) -> bool:
    if isinstance(kernel, MixtureRecipe):
        return any(_draws_afresh(part.kernel) for part in kernel.parts)
    return isinstance(kernel, IndependentRecipe)


def _moves_to_neighbours(kernel: object) -> bool:
    if isinstance(kernel, MixtureRecipe):
        return any(_moves_to_neighbours(part.kernel) for part in kernel.parts)
    return isinstance(kernel, NeighboursRecipe)
