"""Moves to a neighbour drawn uniformly: q(x'|x) = 1/deg(x) on an undirected graph.

Degrees differ once nearest-neighbour lists are made symmetric, so the ratio does not vanish:

    log r0 = log p0(x') - log p0(x) + log deg(x) - log deg(x').
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from sampler.chain import Proposal
from sampler.spaces.catalog import Catalog


class NeighboursRecipe(BaseModel):
    """The part of a recipe that says: propose one of the current item's nearest neighbours."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    moves_in: ClassVar[tuple[str, ...]] = ("catalog",)
    """The kinds of space."""
    kind: Literal["neighbours"] = "neighbours"

    def build(self, catalog: Catalog) -> Neighbours:
        """Return the kernel on this catalog."""
        return Neighbours(catalog)


class Neighbours:
    """Propose one of the current item's neighbours, each with the same probability.

    Raises:
        ValueError: the catalog has no neighbour graph, or an item in it has no neighbour.
    """

    is_cheap = True
    """A draw looks at one row of the graph; see `Plan.is_cheap`."""

    def __init__(self, catalog: Catalog) -> None:
        if not catalog.neighbours or not all(catalog.neighbours):
            raise ValueError("neighbours must give every item of the catalog at least one neighbour")
        self._neighbours = catalog.neighbours
        self._log_target = catalog.log_p0 - np.log([len(row) for row in catalog.neighbours])

    def propose(self, rng: np.random.Generator, state: int) -> Proposal[int]:
        """Draw a neighbour of `state`."""
        row = self._neighbours[state]
        proposal = row[min(int(rng.random() * len(row)), len(row) - 1)]
        return Proposal(proposal, float(self._log_target[proposal] - self._log_target[state]))
