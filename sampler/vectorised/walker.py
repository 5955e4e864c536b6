"""Chains of a transition matrix, side by side; one long chain is cut into segments that run side by side too.

Every step is the same function of the state and one uniform number. So all uniforms of a block are drawn first,
and the segments of a chain start at once from a guess. Two chains that see the same uniforms usually meet after a
few steps and stay together: a segment that started from a wrong guess is run again from where its
predecessor really ended, only until it meets its first run. The result is, bit for bit, the chain that one
step after another would have given.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sampler.vectorised.alias import alias_tables
from sampler.vectorised.record import Recorder, Walk

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# Lanes side by side and steps a lane: wide enough to hide NumPy's cost per call, small enough for the cache.
LANES = 2048
SEGMENT = 128
# A chain whose segments have not met after so many runs is finished one step after another.
RUNS = 4


class Walker:
    """Simulates chains of one transition matrix; the tables are built once.

    Args:
        transitions: P(x, x'), rows that sum to 1, shape (n, n). Tables take 16 n^2 bytes.

    Raises:
        ValueError: the matrix is not square, has a negative entry, or a row that does not sum to 1 within 1e-9.
    """

    def __init__(self, transitions: npt.ArrayLike) -> None:
        matrix = np.asarray(transitions, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"transitions must be a square matrix, not of shape {matrix.shape}")
        # A diagonal computed as 1 minus a sum may fall below 0 by rounding.
        if not np.all(matrix >= -1e-12) or not np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise ValueError("transitions must have no negative entry and rows that sum to 1")
        self.states = len(matrix)
        cut, other = alias_tables(np.maximum(matrix, 0.0))
        # States are kept as the place x n where row x begins in the flat tables.
        self._cut, self._other = cut.ravel(), other.ravel() * self.states

    def run(
        self,
        rng: np.random.Generator,
        start: npt.ArrayLike,
        steps: int,
        *,
        every: int | None = None,
        per_chain: bool = False,
        keep_path: bool = False,
    ) -> Walk:
        """Simulate `steps` steps of each chain; see the package's docstring.

        Raises:
            ValueError: a start is no state, or steps or every is less than 1.
        """
        recorder = Recorder(self.states, start, steps, every, per_chain, keep_path)
        chains = len(recorder.start)
        state = recorder.start * self.states
        done = 0
        while done < steps:
            left = steps - done
            segments = max(1, min(LANES // chains, left // SEGMENT))
            length = min(-(-left // segments), max(1, LANES * SEGMENT // (segments * chains)))
            uniforms = rng.random((length, segments * chains))
            path = self._block(uniforms, state, segments)
            # Lanes are segment after segment, chains within; the last segment may run past the end.
            block = path.reshape(length, segments, chains).swapaxes(0, 1).reshape(-1, chains)[:left]
            state = block[-1].copy()
            recorder.add(block // self.states)
            done += len(block)
        return recorder.walk(state // self.states)

    def _block(self, uniforms: FloatArray, start: IntArray, segments: int) -> IntArray:
        """Return the path of all lanes as table offsets, shape (length, lanes)."""
        places = uniforms * self.states
        columns = places.astype(np.int64)
        path = np.empty_like(columns)
        used = np.tile(start, segments)
        self._run_all(places, columns, used, path)
        for _ in range(RUNS):
            right = np.concatenate([start, path[-1, : -len(start)]])
            wrong = np.flatnonzero(right != used)
            if not len(wrong):
                return path
            self._run_until_met(places, columns, right, wrong, path)
            used = right
        self._run_in_order(places, columns, start, path)
        return path

    def _run_all(self, places: FloatArray, columns: IntArray, state: IntArray, path: IntArray) -> None:
        index, cut = np.empty_like(state), np.empty(len(state))
        take_column = np.empty(len(state), dtype=np.bool_)
        targets = columns * self.states
        for place, column, target, after in zip(places, columns, targets, path, strict=True):
            np.add(state, column, out=index)
            np.take(self._cut, index, out=cut, mode="clip")
            np.take(self._other, index, out=after, mode="clip")
            np.less(place, cut, out=take_column)
            np.copyto(after, target, where=take_column)
            state = after

    def _run_until_met(
        self, places: FloatArray, columns: IntArray, right: IntArray, lanes: IntArray, path: IntArray
    ) -> None:
        state = right[lanes]
        for place, column, after in zip(places, columns, path, strict=True):
            index = state + column[lanes]
            target = np.where(place[lanes] < self._cut[index], column[lanes] * self.states, self._other[index])
            apart = target != after[lanes]
            lanes, state = lanes[apart], target[apart]
            if not len(lanes):
                return
            after[lanes] = state

    def _run_in_order(self, places: FloatArray, columns: IntArray, start: IntArray, path: IntArray) -> None:
        cuts, others = self._cut, self._other
        for chain in range(len(start)):
            state = int(start[chain])
            for lane in range(chain, path.shape[1], len(start)):
                after: list[int] = []
                for place, column in zip(places[:, lane].tolist(), columns[:, lane].tolist(), strict=True):
                    index = state + column
                    state = column * self.states if place < cuts.item(index) else others.item(index)
                    after.append(state)
                path[:, lane] = after
