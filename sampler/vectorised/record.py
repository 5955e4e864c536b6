"""What a simulation leaves behind: final states, visit counts, paths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Walk:
    """Where chains went; shapes are in the package's docstring."""

    final: IntArray
    times: IntArray
    visits: IntArray
    path: IntArray | None


class Recorder:
    """Counts visits block by block.

    Args:
        states: n, the number of states.
        start: the first state of each chain, an integer or shape (chains,).
        steps: how many steps will be recorded.
        every: steps between two records; None for one record at the end.
        per_chain: count each chain by itself.
        keep_path: keep every state.

    Raises:
        ValueError: a start is no state, or steps or every is less than 1.
    """

    def __init__(
        self, states: int, start: npt.ArrayLike, steps: int, every: int | None, per_chain: bool, keep_path: bool
    ) -> None:
        self.start = np.atleast_1d(np.asarray(start))
        if self.start.dtype.kind not in "iu" or self.start.ndim != 1 or not self.start.size:
            raise ValueError("start must be a state or a vector of states")
        if np.any((self.start < 0) | (self.start >= states)):
            raise ValueError(f"start must name states from 0 to {states - 1}")
        if steps < 1 or (every is not None and every < 1):
            raise ValueError("steps and every must be at least 1")
        self.start = self.start.astype(np.int64)
        self.steps = steps
        self._states, self._every, self._per_chain = states, every or steps, per_chain
        self._times = np.append(np.arange(self._every, steps, self._every), steps)
        cells = states * (len(self.start) if per_chain else 1)
        self._visits: IntArray = np.zeros((len(self._times), cells), dtype=np.int64)
        self._path: IntArray | None = np.empty((steps, len(self.start)), dtype=np.int64) if keep_path else None
        self._done = 0

    def add(self, block: IntArray) -> None:
        """Count the next steps: states of shape (steps of the block, chains), in the order of time."""
        if self._path is not None:
            self._path[self._done : self._done + len(block)] = block
        cells = block + np.arange(len(self.start)) * self._states if self._per_chain else block
        at = 0
        while at < len(block):
            record = (self._done + at) // self._every
            upto = min(len(block), (record + 1) * self._every - self._done)
            width = self._visits.shape[1]
            self._visits[record] += np.bincount(cells[at:upto].ravel(), minlength=width)
            at = upto
        self._done += len(block)

    def walk(self, final: IntArray) -> Walk:
        """Return the result after the last block."""
        visits = self._visits.cumsum(axis=0)
        if self._per_chain:
            visits = visits.reshape(len(self._times), len(self.start), self._states)
        return Walk(final, self._times, visits, self._path)
