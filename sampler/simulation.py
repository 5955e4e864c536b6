"""Chains with simulated judges, no web: judges with hidden scores (equation 5 of the paper) vote as people would."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from sampler.acceptance import FloatArray, IntArray, Verdict
from sampler.chain import Plan, Position, State, Tally, advance, ask, begin, tell
from sampler.exact import log_base_ratio, preferences
from sampler.rules.base import JudgeRule
from sampler.streams import Purpose, stream


@dataclass(frozen=True)
class BradleyTerry(Generic[State]):
    """Prefers y to x with probability sigma(s(y) - s(x)).

    Args:
        score: s, in nats of log-odds.
    """

    score: Callable[[State], float]

    def preference(self, current: State, proposal: State) -> float:
        """Return the probability that this judge prefers `proposal` to `current`."""
        return float(expit(self.score(proposal) - self.score(current)))

    def vote(self, rng: np.random.Generator, current: State, proposal: State) -> bool:
        """Draw one vote: True for the proposal."""
        return bool(rng.random() < self.preference(current, proposal))


def simulate(
    plan: Plan[State], judges: Sequence[BradleyTerry[State]], steps: int, chain: int = 0
) -> Iterator[Position[State]]:
    """Yield the positions 0..steps of one chain, asking judge after judge and stopping as early as allowed.

    Raises:
        ValueError: the plan has another number of judges.
    """
    if len(judges) != len(plan.budgets):
        raise ValueError(f"judges must be {len(plan.budgets)}, one for each budget, not {len(judges)}")
    position = begin(plan, chain)
    yield position
    for _ in range(steps):
        comparison = ask(plan, position)
        rng = stream(plan.seed, chain, comparison.step, Purpose.JUDGES)
        tally = Tally.empty(len(judges))
        while (verdict := tell(comparison, tally)) is Verdict.UNDECIDED:
            judge = next(i for i, budget in enumerate(plan.budgets) if tally.votes_cast[i] < budget)
            tally = tally.add(judge, judges[judge].vote(rng, comparison.current, comparison.proposal))
        position = advance(position, comparison, verdict)
        yield position


def simulate_many(
    rng: np.random.Generator,
    log_p0: npt.ArrayLike,
    q: npt.ArrayLike,
    scores: npt.ArrayLike,
    rule: JudgeRule,
    start: npt.ArrayLike,
    steps: int,
) -> IntArray:
    """Return the states of many chains on a finite space after each step, shape (steps, chains).

    Every proposal and every vote is drawn; averaged over the votes, the law is that of `exact.transition_matrix`.

    Args:
        log_p0: shape (n,).
        q: q(x'|x) at [x, x'], rows that sum to 1, shape (n, n).
        scores: s_i(x), in nats of log-odds, shape (m, n).
        rule: a rule that asks judges, such as `NVote((4,))`.
        start: the first state of each chain, shape (chains,).

    Raises:
        ValueError: q is not one law for each state, or a start is no state.
    """
    state, matrix = np.asarray(start, dtype=np.int64), np.asarray(q, dtype=np.float64)
    if np.any(matrix < 0) or not np.allclose(matrix.sum(axis=1), 1, rtol=0, atol=1e-9):
        raise ValueError("q must have no negative entry and rows that sum to 1")
    if np.any((state < 0) | (state >= len(matrix))):
        raise ValueError(f"start must name states from 0 to {len(matrix) - 1}")
    cumulative, log_r0, preferred = np.cumsum(matrix, axis=1), log_base_ratio(log_p0, matrix), preferences(scores)
    path = np.empty((steps, len(state)), dtype=np.int64)
    for after in path:
        proposal = _drawn(rng, cumulative[state])
        acceptance = rule.draw_acceptance(rng, log_r0[state, proposal], preferred[state, proposal])
        state = np.where(rng.random(len(state)) < acceptance, proposal, state)
        after[:] = state
    return path


def _drawn(rng: np.random.Generator, cumulative: FloatArray) -> IntArray:
    """Return one draw from each row of distribution functions, by inversion."""
    numbers = rng.random(len(cumulative)) * cumulative[:, -1]
    return np.asarray(np.sum(cumulative <= numbers[:, None], axis=1))
