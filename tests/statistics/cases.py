"""The studies: a right one for each kind of voters, and one for each rule that is broken on purpose."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import sampler
from tests.statistics import crowds
from tests.statistics.crowds import Conduct, Voters
from tests.statistics.distribution import CATALOG, SCORES, Matrix, transitions

SEED = 20261123
# Of a right study the p-value falls below it for one seed of a thousand; of a broken one for at least nine of ten, as
# forty simulated runs of each have shown.
LEVEL = 1e-3


@dataclass(frozen=True)
class Case:
    """A study and the chain that is true for its voters.

    Args:
        steps: of each chain.
        chains: at the start.
        max_chains: up to so many open while people vote; None for no further ones.
        budget: N of its judge, or of each of two.
        is_in_both_orders: the question is asked of two judges, one for each order.
        is_limited: people give a number of votes, in a limited time.
        check_share: how often a vote is followed by an attention check.
        suspends_after: after so many skips a step is suspended, and tried again later; None for never.
        counts_suspended_as_a_no: whoever is asked about a suspended step next votes against it, which is wrong.
        wrong_budget: N by the current object, which is wrong; None for the campaign's.
        claimed: for whose chain these voters' is taken, wrongly; None for their own.
    """

    voters: Voters
    conduct: Conduct
    steps: int
    budget: int = 1
    chains: int = 20
    max_chains: int | None = None
    is_in_both_orders: bool = False
    is_limited: bool = False
    check_share: float = 0.0
    suspends_after: int | None = None
    counts_suspended_as_a_no: bool = False
    wrong_budget: Callable[[int], int] | None = None
    claimed: Voters | None = None

    @property
    def max_votes(self) -> tuple[int, ...]:
        """N of each judge."""
        return (self.budget,) * (2 if self.is_in_both_orders else 1)

    def plan(self, seed: int) -> sampler.Plan[int]:
        """Return what the sampler needs of this study."""
        return sampler.Plan(seed, CATALOG, sampler.Neighbours(CATALOG), self.max_votes)

    def true_chain(self) -> Matrix:
        """Return the chain of these voters, or of those that they are taken for, under the rules."""
        voters = self.claimed or self.voters
        orders = ((True,), (False,)) if self.is_in_both_orders else ((True, False),)
        return transitions([voters.preferences(order) for order in orders], self.max_votes)


MIXED = Voters(np.array([0.1, 1.9])[:, None] * SCORES)
LAPSING = Voters(2 * SCORES[None], lapses=0.05)

LAPSES = "voters with lapses"
WHOLE = "voters of one distribution with every fate"
RIGHT = {
    WHOLE: Case(Voters(), crowds.lives, 35, budget=3, chains=5, max_chains=20, is_limited=True, check_share=0.1),
    "biased voters asked in both orders": Case(
        Voters(0.5 * SCORES[None], bias=1.0), crowds.lives, 35, budget=2, is_in_both_orders=True
    ),
    LAPSES: Case(LAPSING, crowds.votes_at_once, 220),
    "a mixed crowd": Case(MIXED, crowds.votes_at_once, 120),
    "steps suspended and tried again": Case(Voters(), crowds.lives, 60, suspends_after=2),
}
VOTES_BY_OBJECT = "E10, N by the current object"
BROKEN = {
    "E2, refused when for": Case(Voters(), crowds.is_refused_when_for, 480),
    "E3, checks counted": Case(Voters(), crowds.answers_a_check_by_voting, 160),
    "E3, removed for disagreeing": Case(MIXED, crowds.is_removed_for_disagreeing, 130),
    "E4, removed with a vote against": Case(Voters(), crowds.is_removed_with_a_vote_against, 95, budget=3),
    "E6, coin flips": Case(Voters(), crowds.flips_a_coin_instead, 80),
    "E6, skips what they would accept": Case(Voters(), crowds.skips_what_they_would_accept, 150),
    "E6, suspended steps are a no": Case(Voters(), crowds.lives, 200, suspends_after=2, counts_suspended_as_a_no=True),
    "E8, failures are a no": Case(Voters(), crowds.rejects_what_does_not_show, 160),
    VOTES_BY_OBJECT: Case(
        Voters(),
        crowds.votes_at_once,
        35,
        budget=3,
        wrong_budget=lambda index: 1 if SCORES[index] > 0 else 3,
    ),
    "E11, short leases": Case(Voters(), crowds.takes_twice_as_long_to_accept, 100),
}
CLAIMED = {"lapses, taken for none": replace(RIGHT[LAPSES], claimed=Voters(LAPSING.scores))}
