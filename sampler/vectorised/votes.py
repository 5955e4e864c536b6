"""Chains side by side with every proposal and every vote drawn, as simulated judges would cast them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from sampler.rules.shape import JudgeRule
from sampler.vectorised.proposals import ProposalTable
from sampler.vectorised.record import Recorder, Walk

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# So many states are handed to the recorder at once.
BLOCK = 2**18


class VoteWalker:
    """Simulates chains of one proposal law, one rule and Bradley-Terry judges.

    Args:
        proposals: draws x' and gives log r0.
        rule: `NVote`, `Oracle`, `InvalidPlugIn` or one of the presentation orders.
        scores: s_i(x), in nats of log-odds, shape (m, n).

    Raises:
        ValueError: scores are not one number for each judge and state.
    """

    def __init__(self, proposals: ProposalTable, rule: JudgeRule, scores: npt.ArrayLike) -> None:
        by_judge = np.asarray(scores, dtype=np.float64)
        if by_judge.ndim != 2 or by_judge.shape[1] != proposals.states:
            raise ValueError(f"scores must have one row a judge and {proposals.states} columns")
        self._proposals, self._rule = proposals, rule
        self._scores = np.ascontiguousarray(by_judge.T)

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
        recorder = Recorder(self._proposals.states, start, steps, every, per_chain, keep_path)
        state = recorder.start
        height = max(1, BLOCK // len(state))
        for begun in range(0, steps, height):
            block = np.empty((min(height, steps - begun), len(state)), dtype=np.int64)
            for after in block:
                state = self._step(rng, state)
                after[:] = state
            recorder.add(block)
        return recorder.walk(state)

    def _step(self, rng: np.random.Generator, state: IntArray) -> IntArray:
        proposal, log_r0 = self._proposals.draw(rng, state)
        preference = expit(self._scores[proposal] - self._scores[state])
        acceptance = self._rule.draw_acceptance(rng, log_r0, preference)
        return np.where(rng.random(len(state)) < acceptance, proposal, state)
