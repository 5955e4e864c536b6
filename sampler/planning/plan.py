"""The plan of one comparison: the next request, and why no plan changes the accept law.

U is drawn before the first vote and the budgets are fixed. A plan decides only which of the sum N_i votes are looked
at, and in which order, from votes already seen; the verdict is the one that all of them would give (`acceptance`).
So the law of the verdict given U, the pair and the budgets is that of the N-vote rule, whatever the policy.

A single judge who still needs `a` votes for x' to accept and `c` against to reject is asked min(a, c) votes at once:
fewer cannot settle it, so none of them can come too late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sampler.acceptance import Verdict, verdict
from sampler.planning.policies import Policy
from sampler.rules.ballots import checked_budgets


@dataclass(frozen=True)
class Request:
    """Ask `judge` for `votes` votes, all at once if that helps: none of them can be wasted."""

    judge: int
    votes: int


class VotePlan:
    """What to ask, tally by tally, until the verdict is settled.

    Args:
        policy: who is asked next.
        log_r0, uniform, budgets: as in `acceptance.verdict`.

    Raises:
        ValueError: as `acceptance.verdict`; or `FewestVotes` has too many tallies to plan on.
    """

    def __init__(self, policy: Policy, log_r0: float, uniform: float, budgets: Sequence[int]) -> None:
        self._question = (float(log_r0), float(uniform))
        self._budgets = checked_budgets(tuple(budgets))
        self._verdict((0,) * len(self._budgets), (0,) * len(self._budgets))
        self._next_judge = policy.follow(*self._question, self._budgets)

    def next(self, votes_for: Sequence[int], votes_cast: Sequence[int]) -> Request | None:
        """Return the next request, or None when the verdict is settled; k_i and n_i so far, length m.

        Raises:
            ValueError: the tally does not fit the budgets.
        """
        if self._verdict(votes_for, votes_cast) is not Verdict.UNDECIDED:
            return None
        judge = self._next_judge(tuple(int(k) for k in votes_for), tuple(int(n) for n in votes_cast))
        return Request(judge, self._at_once(judge, list(votes_for), list(votes_cast)))

    def _at_once(self, judge: int, votes_for: list[int], votes_cast: list[int]) -> int:
        """Return min(a, c, votes left)."""
        left = self._budgets[judge] - votes_cast[judge]
        for asked in range(1, left):
            cast = [n + asked * (i == judge) for i, n in enumerate(votes_cast)]
            in_favour = [k + asked * (i == judge) for i, k in enumerate(votes_for)]
            if any(self._verdict(votes, cast) is not Verdict.UNDECIDED for votes in (in_favour, votes_for)):
                return asked
        return left

    def _verdict(self, votes_for: Sequence[int], votes_cast: Sequence[int]) -> Verdict:
        return verdict(*self._question, votes_for, votes_cast, self._budgets)
