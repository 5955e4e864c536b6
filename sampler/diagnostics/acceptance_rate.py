"""How often chains accept, and how often they move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class AcceptanceRate:
    """Shares of decided steps. Accepting a proposal equal to the current state is no move."""

    accepted: float
    moved: float
    steps: int
    by_chain: tuple[float, ...]
    """Accepted share of each chain, in order; NaN for a chain without a step."""


def acceptance_rate(accepted: Sequence[npt.ArrayLike], moved: Sequence[npt.ArrayLike]) -> AcceptanceRate:
    """Return the shares over ragged chains.

    Args:
        accepted: for each chain whether each decided step was accepted, shape (T_c,).
        moved: for each chain whether the state changed, shape (T_c,).

    Raises:
        ValueError: no step is decided, the two differ in length, or a step moved that was not accepted.
    """
    verdicts = [np.asarray(each, dtype=bool) for each in accepted]
    moves = [np.asarray(each, dtype=bool) for each in moved]
    if [len(each) for each in verdicts] != [len(each) for each in moves]:
        raise ValueError("accepted and moved must have the same chains of the same lengths")
    if not sum(len(each) for each in verdicts):
        raise ValueError("accepted must hold at least one step")
    every, every_move = np.concatenate(verdicts), np.concatenate(moves)
    if np.any(every_move & ~every):
        raise ValueError("moved must be true only where accepted is")
    by_chain = tuple(float(each.mean()) if len(each) else float("nan") for each in verdicts)
    return AcceptanceRate(float(every.mean()), float(every_move.mean()), len(every), by_chain)
