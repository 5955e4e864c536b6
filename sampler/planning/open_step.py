"""Steps while their votes come in: what is decided, and about which judge one more person may be asked.

A step of one judge is two counts; for several judges, `sampler.acceptance` is asked. Both give the verdicts of the
rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from sampler.acceptance import Verdict, askable, verdict


class OpenStep:
    """A step of several judges. Votes that are promised have been asked of somebody and have not come back."""

    def __init__(self, log_r0: float, uniform: float, budgets: tuple[int, ...]) -> None:
        self._log_r0, self._uniform, self._budgets = log_r0, uniform, budgets
        self._for, self._cast, self._promised = ([0] * len(budgets) for _ in range(3))
        self.accepted: bool | None = None
        self._room: tuple[bool, ...] = ()
        self._look()

    def room(self) -> Sequence[bool]:
        """Return for each judge whether one more vote can be asked for that cannot come too late."""
        return self._room

    def promise(self, judge: int) -> None:
        """Note that somebody is asked."""
        self._promised[judge] += 1
        self._look()

    def answer(self, judge: int, is_for: bool) -> None:
        """Note what they said."""
        self._promised[judge] -= 1
        self._cast[judge] += 1
        self._for[judge] += is_for
        self._look()

    def give_back(self, judge: int) -> None:
        """Note that they have gone without a word."""
        self._promised[judge] -= 1
        self._look()

    def _look(self) -> None:
        votes = tuple(self._for), tuple(self._cast)
        standing = verdict(self._log_r0, self._uniform, *votes, self._budgets)
        self.accepted = None if standing is Verdict.UNDECIDED else standing is Verdict.ACCEPT
        self._room = askable(self._log_r0, self._uniform, *votes, tuple(self._promised), self._budgets)


class OneJudgeStep:
    """The same for one judge: accepted after K votes for the proposal, rejected after N + 1 - K against it."""

    def __init__(self, log_r0: float, uniform: float, budgets: tuple[int, ...]) -> None:
        [budget] = budgets
        self._to_accept = fewest_votes(log_r0, uniform, budget)
        self._to_reject = budget + 1 - self._to_accept
        self._promised = 0
        self.accepted: bool | None = None
        self._look()

    def room(self) -> Sequence[bool]:
        """Return whether one more vote can be asked for that cannot come too late."""
        return (self.accepted is None and self._promised < min(self._to_accept, self._to_reject),)

    def promise(self, judge: int) -> None:
        """Note that somebody is asked."""
        self._promised += 1

    def answer(self, judge: int, is_for: bool) -> None:
        """Note what they said."""
        self._promised -= 1
        if is_for:
            self._to_accept -= 1
        else:
            self._to_reject -= 1
        self._look()

    def give_back(self, judge: int) -> None:
        """Note that they have gone without a word."""
        self._promised -= 1

    def _look(self) -> None:
        if self._to_accept <= 0:
            self.accepted = True
        elif self._to_reject <= 0:
            self.accepted = False


def open_step(log_r0: float, uniform: float, budgets: tuple[int, ...]) -> OpenStep | OneJudgeStep:
    """Return a step before its first vote."""
    return (OneJudgeStep if len(budgets) == 1 else OpenStep)(log_r0, uniform, budgets)


def fewest_votes(log_r0: float, uniform: float, budget: int) -> int:
    """Return the least K with U < min(1, r0 K / (N - K + 1)); N + 1 where there is none."""
    wanted = math.log(uniform) - log_r0 if uniform > 0 else -math.inf
    factors = _log_factors(budget)
    return next((votes for votes in range(budget + 1) if wanted < factors[votes]), budget + 1)


@lru_cache(maxsize=1000)
def _log_factors(budget: int) -> tuple[float, ...]:
    return (-math.inf, *(math.log(votes / (budget - votes + 1)) for votes in range(1, budget + 1)))
