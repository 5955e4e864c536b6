"""Proposal laws q(x'|x) as tables, drawn for many chains at once; the kernels of `sampler.kernels`, vectorised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from sampler.exact import log_base_ratio
from sampler.vectorised.alias import alias_tables

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class ProposalTable(Protocol):
    """A proposal law on the states 0..states-1 that knows its own base ratio against p0."""

    states: int

    def draw(self, rng: np.random.Generator, state: IntArray) -> tuple[IntArray, FloatArray]:
        """Draw x' ~ q(.|x) for each x; return it with log r0, both of shape (chains,)."""
        ...


class IndependentTable:
    """q(x'|x) = p0(x'), so log r0 = 0.

    Args:
        log_p0: normalised or not, shape (n,).
    """

    def __init__(self, log_p0: npt.ArrayLike) -> None:
        log_law = np.asarray(log_p0, dtype=np.float64)
        cumulative = np.cumsum(np.exp(log_law - log_law.max()))
        self._cumulative = cumulative / cumulative[-1]
        self.states = len(log_law)

    def draw(self, rng: np.random.Generator, state: IntArray) -> tuple[IntArray, FloatArray]:
        """Draw x' ~ p0 by inversion, whatever x."""
        return np.searchsorted(self._cumulative, rng.random(len(state)), side="right"), np.zeros(len(state))


class NeighbourTable:
    """q(x'|x) = 1/deg(x) on an undirected graph; log r0 = log(p0(x') / p0(x)) + log(deg(x) / deg(x')).

    Args:
        log_p0: shape (n,).
        neighbours: for each state its neighbours.

    Raises:
        ValueError: the lists are not one for each state, or a state has no neighbour.
    """

    def __init__(self, log_p0: npt.ArrayLike, neighbours: Sequence[Sequence[int]]) -> None:
        log_law = np.asarray(log_p0, dtype=np.float64)
        if len(neighbours) != len(log_law) or not all(len(row) for row in neighbours):
            raise ValueError("neighbours must give every state at least one neighbour")
        self._degree = np.array([len(row) for row in neighbours])
        self._first = np.cumsum(self._degree) - self._degree
        self._flat = np.concatenate([np.asarray(row, dtype=np.int64) for row in neighbours])
        self._log_target = log_law - np.log(self._degree)
        self.states = len(log_law)

    def draw(self, rng: np.random.Generator, state: IntArray) -> tuple[IntArray, FloatArray]:
        """Draw a neighbour of each x, uniformly."""
        degree = self._degree[state]
        place = np.minimum((rng.random(len(state)) * degree).astype(np.int64), degree - 1)
        proposal = self._flat[self._first[state] + place]
        return proposal, self._log_target[proposal] - self._log_target[state]


class MatrixTable:
    """Any q(x'|x), given as a matrix with rows that sum to 1.

    Args:
        log_p0: shape (n,).
        q: q(x'|x) at [x, x'], shape (n, n).

    Raises:
        ValueError: q is not one law for each state.
    """

    def __init__(self, log_p0: npt.ArrayLike, q: npt.ArrayLike) -> None:
        matrix = np.asarray(q, dtype=np.float64)
        self.states = np.size(log_p0)
        if matrix.shape != (self.states, self.states) or np.any(matrix < 0):
            raise ValueError(f"q must be a matrix of {self.states} laws, one for each state")
        if not np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-9):
            raise ValueError("q must have rows that sum to 1")
        cut, other = alias_tables(matrix)
        self._cut, self._other = cut.ravel(), other.ravel()
        self._log_r0 = log_base_ratio(log_p0, matrix).ravel()

    def draw(self, rng: np.random.Generator, state: IntArray) -> tuple[IntArray, FloatArray]:
        """Draw x' from row x, for each x."""
        row = state * self.states
        place = rng.random(len(state)) * self.states
        column = place.astype(np.int64)
        index = row + column
        proposal = np.where(place < self._cut[index], column, self._other[index])
        return proposal, self._log_r0[row + proposal]


class MixtureTable:
    """Table j with probability weights[j], whatever the state; log r0 is that table's own, as in `kernels.mixture`.

    Its chain has the transition matrix sum_j weights[j] P_j, P_j being the chain of table j alone.

    Args:
        weights: positive, sum 1, length k.
        tables: k tables on one space.

    Raises:
        ValueError: the weights are not one for each table and sum to 1, or the tables differ in size.
    """

    def __init__(self, weights: Sequence[float], tables: Sequence[ProposalTable]) -> None:
        if len(weights) != len(tables) or abs(sum(weights) - 1) > 1e-9 or min(weights, default=0) <= 0:
            raise ValueError("weights must be positive, one for each table, and sum to 1")
        if len({table.states for table in tables}) != 1:
            raise ValueError("tables must be on one space")
        self._ends = np.cumsum(weights)[:-1]
        self._tables = tuple(tables)
        self.states = tables[0].states

    def draw(self, rng: np.random.Generator, state: IntArray) -> tuple[IntArray, FloatArray]:
        """Choose a table for each x, then draw from it."""
        chosen = np.searchsorted(self._ends, rng.random(len(state)), side="right")
        proposal, log_r0 = np.empty_like(state), np.empty(len(state))
        for place, table in enumerate(self._tables):
            who = np.flatnonzero(chosen == place)
            proposal[who], log_r0[who] = table.draw(rng, state[who])
        return proposal, log_r0
