"""Kernels: one file a proposal law q(x'|x), each with the recipe that names it.

To add one: copy a file, give its recipe a new `kind` and its spaces (`moves_in`), and add the recipe to
`ComponentRecipe` in `mixture.py`. The shared checks of `tests/support/kernels.py` then want a small instance of it.
`learned_fragments.py` has no recipe: its editor learns while chains run, so the lockstep runner builds it.
"""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from sampler.kernels.crank_nicolson import CrankNicolson, CrankNicolsonRecipe
from sampler.kernels.fragments import FragmentMoves, FragmentsRecipe
from sampler.kernels.independent import Independent, IndependentRecipe
from sampler.kernels.learned_fragments import EditLogits, Editor, EditProposal, LearnedFragments
from sampler.kernels.mixture import ComponentRecipe, Mixture, MixturePart, MixtureRecipe
from sampler.kernels.neighbours import Neighbours, NeighboursRecipe
from sampler.kernels.suffix import Suffix, SuffixRecipe
from sampler.kernels.walk import WalkKernel, WalkRecipe
from sampler.kernels.warm_up import WarmUp

KernelRecipe = Annotated[ComponentRecipe | MixtureRecipe | WalkRecipe, Field(discriminator="kind")]

MOVES_IN: dict[str, tuple[str, ...]] = {
    recipe.model_fields["kind"].default: recipe.moves_in for recipe in get_args(ComponentRecipe)
}
"""The kinds of space by the kind of kernel."""

__all__ = [
    "MOVES_IN",
    "ComponentRecipe",
    "CrankNicolson",
    "CrankNicolsonRecipe",
    "EditLogits",
    "EditProposal",
    "Editor",
    "FragmentMoves",
    "FragmentsRecipe",
    "Independent",
    "IndependentRecipe",
    "KernelRecipe",
    "LearnedFragments",
    "Mixture",
    "MixturePart",
    "MixtureRecipe",
    "Neighbours",
    "NeighboursRecipe",
    "Suffix",
    "SuffixRecipe",
    "WalkKernel",
    "WalkRecipe",
    "WarmUp",
    "components_of",
]


def components_of(kernel: KernelRecipe) -> tuple[ComponentRecipe, ...]:
    """Return the parts of a mixture or of a walk, or the kernel alone."""
    return kernel.components if isinstance(kernel, MixtureRecipe | WalkRecipe) else (kernel,)
