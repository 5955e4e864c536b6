"""Independent draws from p0: q(x'|x) = p0(x'), so r0 = p0(x') p0(x) / (p0(x) p0(x')) = 1."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from sampler.chain import Proposal
from sampler.spaces.catalogs.catalog import Catalog


class IndependentRecipe(BaseModel):
    """The part of a recipe that says: propose by a fresh draw from p0."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["independent"] = "independent"

    def build(self, catalog: Catalog) -> Independent:
        """Return the kernel on this catalog."""
        return Independent(catalog)


class Independent:
    """Propose x' ~ p0 whatever x is; log r0 = 0."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def propose(self, rng: np.random.Generator, state: int) -> Proposal[int]:
        """Draw x' ~ p0. It may be `state` itself."""
        return Proposal(self._catalog.draw(rng), 0.0)
