"""Kernels: one file a proposal law q(x'|x), each with the recipe that names it.

To add one: copy a file, give its recipe a new `kind`, and add the recipe to `KernelRecipe`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sampler.kernels.independent import Independent, IndependentRecipe
from sampler.kernels.mixture import Mixture, MixturePart, MixtureRecipe
from sampler.kernels.neighbours import Neighbours, NeighboursRecipe

KernelRecipe = Annotated[IndependentRecipe | NeighboursRecipe | MixtureRecipe, Field(discriminator="kind")]

__all__ = [
    "Independent",
    "IndependentRecipe",
    "KernelRecipe",
    "Mixture",
    "MixturePart",
    "MixtureRecipe",
    "Neighbours",
    "NeighboursRecipe",
]
