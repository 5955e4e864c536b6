"""Rounds of further steps: after the declared ones, every chain walks as many more, as often as a budget lets it.

A budget in answers covers the declared steps with all their votes. Steps that are decided early leave some of it over.
When all chains have walked as far as they are to, the next round opens if what is left covers all that it can take. So
every chain gets the same number of steps, and the budget is never exceeded. How many rounds there are depends on how
many votes were saved, and so a little on what was answered: `docs/exactness.md` says what that means for averages.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_CHAIN = 1_000_000
MOST_TIMES = 10
"""No chain gets longer than so many times its declared steps. Some steps take no vote, so a budget alone might never
end a campaign."""


@dataclass(frozen=True)
class Rounds:
    """How a campaign's chains can become longer.

    Args:
        declared: steps of each chain, which are sure.
        steps: of each chain in a round.
        chains: how many there can be.
        votes_a_step: of people, if nothing is decided early.
    """

    declared: int
    steps: int
    chains: int
    votes_a_step: int

    @property
    def longest(self) -> int:
        """How long a chain can become."""
        return min(MOST_TIMES * self.declared, LONGEST_CHAIN)

    @property
    def most(self) -> int:
        """How many rounds there can be."""
        return (self.longest - self.declared) // self.steps

    def length_after(self, number: int) -> int:
        """Return how long every chain is once so many rounds are opened."""
        return self.declared + number * self.steps

    def votes_at_most(self, number: int, opened: int, walking: int) -> int:
        """Return how many votes of people can be given from the opening of a round to its end.

        Args:
            number: of the round, from 1.
            opened: how many chains have opened; those that may still open walk all steps.
            walking: how many of them were not ended.
        """
        steps = walking * self.steps + (self.chains - opened) * self.length_after(number)
        return steps * self.votes_a_step

    def misfits(self, is_automatic: bool) -> Iterator[str]:
        """Yield why a recipe cannot have them.

        Args:
            is_automatic: some judge is a model or a program.
        """
        if is_automatic:
            yield (
                "does not go with models or programs that judge: a budget counts people's answers, so nothing would "
                "limit what further steps cost there; leave it out"
            )
        if not self.most:
            yield f"must be at most {self.longest - self.declared}: a chain walks {self.longest} steps at most"
