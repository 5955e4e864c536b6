"""Kernels: one file a proposal law q(x'|x), each with the config that names it.

To add one: copy a file, give its config a new `kind` and its spaces (`moves_in`), and add the config to
`ComponentConfig` in `mixture.py`. The shared checks of `tests/support/sampling.py` then want a small instance of it.
`learned_fragments.py` has no config: its editor learns while chains run, so the lockstep runner builds it.
"""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from sampler.kernels.crank_nicolson import CrankNicolson, CrankNicolsonConfig
from sampler.kernels.fragments import FragmentMoves, FragmentsConfig
from sampler.kernels.independent import Independent, IndependentConfig
from sampler.kernels.learned_fragments import EditLogits, Editor, EditProposal, LearnedFragments
from sampler.kernels.mixture import ComponentConfig, Mixture, MixtureConfig, MixturePart
from sampler.kernels.neighbours import Neighbours, NeighboursConfig
from sampler.kernels.suffix import Suffix, SuffixConfig
from sampler.kernels.walk import WalkConfig, WalkKernel
from sampler.kernels.warm_up import WarmUp

KernelConfig = Annotated[ComponentConfig | MixtureConfig | WalkConfig, Field(discriminator="kind")]

MOVES_IN: dict[str, tuple[str, ...]] = {
    config.model_fields["kind"].default: config.moves_in for config in get_args(ComponentConfig)
}
"""The kinds of space by the kind of kernel."""

__all__ = [
    "MOVES_IN",
    "ComponentConfig",
    "CrankNicolson",
    "CrankNicolsonConfig",
    "EditLogits",
    "EditProposal",
    "Editor",
    "FragmentMoves",
    "FragmentsConfig",
    "Independent",
    "IndependentConfig",
    "KernelConfig",
    "LearnedFragments",
    "Mixture",
    "MixtureConfig",
    "MixturePart",
    "Neighbours",
    "NeighboursConfig",
    "Suffix",
    "SuffixConfig",
    "WalkConfig",
    "WalkKernel",
    "WarmUp",
    "components_of",
]


def components_of(kernel: KernelConfig) -> tuple[ComponentConfig, ...]:
    """Return the parts of a mixture or of a walk, or the kernel alone."""
    return kernel.components if isinstance(kernel, MixtureConfig | WalkConfig) else (kernel,)
