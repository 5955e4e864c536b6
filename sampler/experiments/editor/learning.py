"""What an editor learns from: edits that raised the score, accepted or not, kept in a bounded memory.

Sizes are those of the release of MARS: Adam with a step of 3e-4, at most 25 updates a step of the chains, the memory
cut to 50,000 edits once it holds more than 100,000, batches of 128 · 20 / mean size. Chosen, because nothing says it:
the newest are kept; a step's batches are one pass through the memory in random order, broken off after 25.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sampler.experiments.editor.features import size_of
from sampler.spaces.molecules.edits import Edit


class ImprovingEdit(NamedTuple):
    """An edit drawn at a state whose product scores higher."""

    state: str
    edit: Edit


class Update(NamedTuple):
    """What happened between two steps: how many updates, and the mean loss over them; None without any."""

    updates: int
    loss: float | None


@dataclass(frozen=True)
class LearningSettings:
    """How an editor learns.

    Args:
        rate: of Adam.
        most_updates: in one step of the chains.
        most_kept: edits in the memory; with more, the newest `kept_then` stay.
        kept_then: see there.
        batch_atoms: a batch holds as many edits as their mean number of atoms goes into this.
    """

    rate: float = 3e-4
    most_updates: int = 25
    most_kept: int = 100_000
    kept_then: int = 50_000
    batch_atoms: int = 128 * 20


class Memory:
    """Improving edits, the oldest first."""

    def __init__(self, settings: LearningSettings) -> None:
        self._settings = settings
        self._edits: list[ImprovingEdit] = []
        self._atoms = 0

    def __len__(self) -> int:
        return len(self._edits)

    def add(self, edits: Sequence[ImprovingEdit]) -> None:
        """Keep these too."""
        self._edits.extend(edits)
        if len(self._edits) > self._settings.most_kept:
            self._edits = self._edits[-self._settings.kept_then :]
            self._atoms = sum(size_of(each.state) for each in self._edits)
        else:
            self._atoms += sum(size_of(each.state) for each in edits)

    @property
    def batch_size(self) -> int:
        """Edits of a batch."""
        return max(1, int(self._settings.batch_atoms * len(self._edits) / max(self._atoms, 1)))

    def batches(self, rng: np.random.Generator) -> Iterator[list[ImprovingEdit]]:
        """Yield the batches of one step of the chains."""
        if not self._edits:
            return
        # An order by random(), which NumPy keeps stable between releases.
        order = np.argsort(rng.random(len(self._edits)), kind="stable")
        size = self.batch_size
        for number in range(min(self._settings.most_updates, math.ceil(len(order) / size))):
            yield [self._edits[place] for place in order[number * size : (number + 1) * size]]
