"""Preconditioned Crank-Nicolson moves on latents (Cotter, Roberts, Stuart and White, 2013).

    z' = sqrt(1 - β²) z + β ξ,    ξ ~ N(0, I),    0 < β ≤ 1

With p0 = N(0, I), the logarithm of p0(z) q(z'|z) is, up to a constant,

    -|z|²/2 - |z' - sqrt(1 - β²) z|² / 2β²  =  -(|z|² + |z'|² - 2 sqrt(1 - β²) z·z') / 2β²,

which does not change when z and z' trade places. So p0(z) q(z'|z) = p0(z') q(z|z'), and log r0 = 0. This needs the
scale sqrt(1 - β²) and the prior N(0, I): with any other, the chain is reversible for another distribution. β = 1 is a
fresh draw from p0. z' is rounded to the grid that z is on; `sampler.spaces.latents` says what that changes.

The paper (its image experiment) mixes a local move, a wider one and a fresh draw; each is reversible for p0, so the
mixture is too.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import ConfigDict, Field

from sampler.chain import Proposal
from sampler.declared import Declared
from sampler.spaces.latents import Latent, LatentSpace, standard_normals

PAPER_MIXTURE: dict[str, Any] = {
    "kind": "mixture",
    "parts": [
        {"weight": 0.6, "kernel": {"kind": "crank-nicolson", "beta": 0.08}},
        {"weight": 0.3, "kernel": {"kind": "crank-nicolson", "beta": 0.25}},
        {"weight": 0.1, "kernel": {"kind": "independent"}},
    ],
}
"""The kernel of the paper's image experiment, as it stands in a config."""


class CrankNicolsonConfig(Declared):
    """The part of a config that says: move latents by a step of size β."""

    model_config = ConfigDict(title="A step of the latent vector")

    moves_in: ClassVar[tuple[str, ...]] = ("images", "model-images")
    """The kinds of space."""
    kind: Literal["crank-nicolson"] = "crank-nicolson"
    beta: float = Field(gt=0, le=1, title="Size of a step (β)")

    def build(self, space: LatentSpace) -> CrankNicolson:
        """Return the kernel; any space whose p0 is N(0, I) on latents will do."""
        return CrankNicolson(self.beta)


class CrankNicolson:
    """Propose z' = sqrt(1 - β²) z + β ξ; log r0 = 0.

    Args:
        beta: β, the size of a step: above 0, at most 1. Corr(z, z') = sqrt(1 - β²).

    Raises:
        ValueError: β is not in that range.
    """

    def __init__(self, beta: float) -> None:
        if not 0 < beta <= 1:
            raise ValueError(f"beta must be above 0 and at most 1, not {beta}")
        self._beta, self._keep = beta, math.sqrt(1 - beta * beta)

    def propose(self, rng: np.random.Generator, state: Latent) -> Proposal[Latent]:
        """Draw z' ~ q(.|z)."""
        vector = state.vector
        moved = self._keep * vector + self._beta * standard_normals(rng, len(vector))
        return Proposal(Latent.of(moved, state.grid), 0.0)

    def walk(self, rng: np.random.Generator, state: Latent, steps: int) -> Latent:
        """Return the state after so many steps, which is one step with β_L; see `beta_of_steps`, `after_steps`."""
        return CrankNicolson(beta_of_steps(self._beta, steps)).propose(rng, state).state


def beta_of_steps(beta: float, steps: int) -> float:
    """Return β_L = sqrt(1 - (1 - β²)^L): L steps of size β have the distribution of one step of this size.

    z after L steps is (1 - β²)^(L/2) z plus normal noise, and N(0, I) is unchanged, so the noise's variance is
    1 - (1 - β²)^L. (Rounding to the grid after each step is left out; `spaces/latents.py` says how little it changes.)
    """
    return math.sqrt(-math.expm1(steps * math.log1p(-beta * beta))) if beta < 1 else 1.0
