"""What a campaign can cost: answers against its budget, and places times pay."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import budget
from prefmh_web.participants.models import Recruitment

_CENT = Decimal("0.01")


@dataclass(frozen=True)
class Spending:
    """What the pages show of it.

    Args:
        spent: what has been given; None of a draft.
        rounds: how further steps can follow the declared ones; None where they cannot.
        opened: how many rounds of them were opened.
    """

    recruitment: Recruitment
    needs: budget.Needs
    spent: budget.Spent | None
    rounds: sampler.Rounds | None = None
    opened: int = 0

    @property
    def budget(self) -> int | None:
        """In answers; None for no limit."""
        return self.recruitment.budget

    @property
    def is_too_small(self) -> bool:
        """True where the campaign cannot start with this budget."""
        return self.budget is not None and self.budget < self.needs.answers

    @property
    def lacks_budget(self) -> bool:
        """True where the campaign cannot start without a budget: it pays for further steps."""
        return self.budget is None and self.rounds is not None

    @property
    def left(self) -> int:
        """Answers that are left of the budget."""
        return (self.budget or 0) - (self.spent.answers if self.spent else 0)

    @property
    def further_steps(self) -> int:
        """How many steps each chain has got beyond the declared ones."""
        return self.opened * self.rounds.steps if self.rounds else 0

    @property
    def places(self) -> int | None:
        """How many people can take part."""
        return self.recruitment.places

    @property
    def place_pay(self) -> str:
        """What a place is paid."""
        return self._money(self.recruitment.place_pay)

    @property
    def cost(self) -> str:
        """What all places cost; empty where that is not known."""
        return self._money(self.recruitment.cost_of_places)

    @property
    def per_vote(self) -> str:
        """The forecast: what a vote costs if all places are paid and every vote is needed."""
        cost = self.recruitment.cost_of_places
        return self._money(cost / self.needs.votes) if cost and self.needs.votes else ""

    def _money(self, amount: Decimal | None) -> str:
        if amount is None:
            return ""
        written, currency = f"{amount.quantize(_CENT):,}", self.recruitment.currency
        return f"{currency}{written}" if len(currency) == 1 else f"{written} {currency}".strip()


def spending_of(campaign: Campaign, recruitment: Recruitment) -> Spending | None:
    """Return what a campaign can cost; None where there is nothing to say, or its setup cannot be read."""
    is_known = recruitment.budget is not None or recruitment.cost_of_places is not None
    if campaign.unreadable or not (campaign.is_draft or is_known):
        return None
    recipe = campaign.parsed_recipe
    needs = budget.needs(recipe, recruitment.parsed_protocol)
    spent = None if campaign.is_draft else budget.spent(campaign)
    return Spending(recruitment, needs, spent, recipe.rounds, campaign.rounds.count() if recipe.rounds else 0)
