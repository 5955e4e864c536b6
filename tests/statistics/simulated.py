"""A study with `sampler` alone: the same people, without database, leases or stages."""

from dataclasses import dataclass, field, replace

import numpy as np

import sampler
from sampler import Tally, Verdict, tell
from tests.statistics.cases import Case
from tests.statistics.crowds import GONE, Deed, Pair
from tests.statistics.distribution import Paths, simulated_paths

SEATS = 12
"""So many people vote at once."""


@dataclass
class Seats:
    """Who votes at the moment: each kind of voters in equal parts, and an equal chance for whoever comes next."""

    case: Case
    kinds: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.kinds = [seat % self.case.voters.kinds for seat in range(SEATS)]

    def vote(self, rng: np.random.Generator, current: int, proposal: int, order: int) -> bool:
        """Ask one after another until somebody's answer counts."""
        skips = 0
        while True:
            if self.case.counts_suspended_as_a_no and skips == self.case.suspends_after:
                return False
            seat = int(rng.integers(SEATS))
            proposal_is_left = order == 0 if self.case.is_in_both_orders else bool(rng.random() < 0.5)
            pair, kind = Pair(current, proposal, proposal_is_left), self.kinds[seat]

            def answer(kind: int = kind, pair: Pair = pair) -> bool:
                return self.case.voters.prefers_proposal(rng, kind, pair)

            reaction = self.case.conduct(rng, pair, answer(), answer)
            skips += reaction.deed is Deed.SKIP
            if reaction.deed in GONE:
                self.kinds[seat] = int(rng.integers(self.case.voters.kinds))
            if reaction.vote is not None:
                return reaction.vote


def simulated(case: Case, seed: int) -> Paths:
    """Return where the chains of a study go."""
    seats = Seats(case)

    def verdict_on(drawn: sampler.Comparison[int], rng: np.random.Generator) -> Verdict:
        if case.wrong_budget:
            drawn = replace(drawn, max_votes=(case.wrong_budget(drawn.current),))
        tally = Tally.empty(len(drawn.max_votes))
        while (verdict := tell(drawn, tally)) is Verdict.UNDECIDED:
            index = next(i for i, budget in enumerate(drawn.max_votes) if tally.votes_cast[i] < budget)
            tally = tally.add(index, seats.vote(rng, drawn.current, drawn.proposal, index))
        return verdict

    # All that may open; when they do makes no difference to them.
    return simulated_paths(case.plan(seed), case.max_chains or case.chains, case.steps, verdict_on)
