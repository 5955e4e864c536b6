"""Votes before anybody is asked: which object each shows first and, of a model's, the number it is drawn with.

All are functions of (seed, chain, step). A model judge has one for each of its N_i votes, so that a vote that is asked
for again after a crash is the same vote, and a reader with the record can draw both again. People have one for each
time that a person is asked, whichever question it is. Theirs come from a stream of their own: on a pair that models
judge too, the sides of the one must not follow from those of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from sampler.judges.sources import Order
from sampler.streams import Purpose, stream

_DRAWN_AT_ONCE = 8


def presentations_of(
    seed: int, chain: int, step: int, budgets: Sequence[int], judge: int, order: Order
) -> tuple[bool, ...]:
    """Return, for each vote of a judge on a step, whether it shows the proposal first; length budgets[judge]."""
    uniforms = _numbers(seed, chain, step, Purpose.SIDES, budgets, judge)
    if order == "balanced":
        half = np.argsort(uniforms, kind="stable")[: budgets[judge] // 2]
        return tuple(bool(place in half) for place in range(budgets[judge]))
    if order == "random":
        return tuple(bool(uniform < 0.5) for uniform in uniforms)
    return (order == "proposal-first",) * budgets[judge]


def shows_proposal_first(seed: int, chain: int, step: int, asked: int) -> bool:
    """Return whether a person is shown the proposal first.

    Args:
        asked: how many times people were asked about this step before, whatever the question.
    """
    if asked < _DRAWN_AT_ONCE:
        return _first_sides(seed, chain, step)[asked]
    return bool(stream(seed, chain, step, Purpose.PEOPLE_SIDES).random(asked + 1)[-1] < 0.5)


# Most steps are asked about more than once, and making a stream takes longer than all that is drawn from it.
@lru_cache(maxsize=4096)
def _first_sides(seed: int, chain: int, step: int) -> tuple[bool, ...]:
    return tuple((stream(seed, chain, step, Purpose.PEOPLE_SIDES).random(_DRAWN_AT_ONCE) < 0.5).tolist())


def draws_of(seed: int, chain: int, step: int, budgets: Sequence[int], judge: int) -> tuple[float, ...]:
    """Return, for each vote of a judge that is drawn from a probability p, its uniform: x' gets it iff that is < p."""
    return tuple(map(float, _numbers(seed, chain, step, Purpose.JUDGES, budgets, judge)))


def _numbers(seed: int, chain: int, step: int, purpose: Purpose, budgets: Sequence[int], judge: int) -> np.ndarray:
    # One stream a step: each judge takes its numbers after those of the judges before it.
    before = sum(budgets[:judge])
    drawn: np.ndarray = stream(seed, chain, step, purpose).random(before + budgets[judge])
    return drawn[before:]
