"""Kernels: one file a proposal law q(x'|x), each with the recipe that names it.

To add one: copy a file, give its recipe a new `kind`, add the recipe to `ComponentRecipe` in `mixture.py`, and say in
`MOVES_IN` which spaces it moves in. The shared checks of `tests/support/kernels.py` then want a small instance of it.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sampler.kernels.crank_nicolson import CrankNicolson, CrankNicolsonRecipe
from sampler.kernels.fragments import FragmentMoves, FragmentsRecipe
from sampler.kernels.independent import Independent, IndependentRecipe
from sampler.kernels.mixture import ComponentRecipe, Mixture, MixturePart, MixtureRecipe
from sampler.kernels.neighbours import Neighbours, NeighboursRecipe
from sampler.kernels.suffix import Suffix, SuffixRecipe

KernelRecipe = Annotated[ComponentRecipe | MixtureRecipe, Field(discriminator="kind")]

# The kinds of space by kernel. Of molecules p0 is known up to a constant only: no fresh draws there.
MOVES_IN: dict[str, tuple[str, ...]] = {
    "independent": ("catalog", "texts", "model-texts", "images", "model-images"),
    "neighbours": ("catalog",),
    "fragments": ("molecules",),
    "suffix": ("texts", "model-texts"),
    "crank-nicolson": ("images", "model-images"),
}

__all__ = [
    "MOVES_IN",
    "ComponentRecipe",
    "CrankNicolson",
    "CrankNicolsonRecipe",
    "FragmentMoves",
    "FragmentsRecipe",
    "Independent",
    "IndependentRecipe",
    "KernelRecipe",
    "Mixture",
    "MixturePart",
    "MixtureRecipe",
    "Neighbours",
    "NeighboursRecipe",
    "Suffix",
    "SuffixRecipe",
]
