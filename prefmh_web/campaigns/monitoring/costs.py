"""What asking models has come to in a campaign, beside its caps. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Q

import sampler
from prefmh_web.campaigns.models import Campaign, ModelUsage, Vote


@dataclass(frozen=True)
class Costs:
    """What the models of a campaign have taken, each judge for itself and the writing of proposals."""

    campaign: Campaign
    rows: list[ModelCost]

    @property
    def requests(self) -> int:
        return sum(row.usage.requests for row in self.rows)

    @property
    def cost(self) -> float:
        return sum(row.usage.cost for row in self.rows)

    @property
    def price(self) -> str:
        """The cost of all, as `price_of` words it."""
        return price_of(self.cost, sum(row.usage.unpriced for row in self.rows))


@dataclass(frozen=True)
class ModelCost:
    """One judge, or the writing of proposals."""

    usage: ModelUsage
    question: str
    """What the judge answers; empty where texts are written."""
    cap: tuple[float | None, int | None]
    """The campaign's, in money and in requests."""
    wasted: Wasted | None = None
    """Of a judge who is asked for all votes at once."""

    @property
    def price(self) -> str:
        return price_of(self.usage.cost, self.usage.unpriced)

    @property
    def share_percent(self) -> int | None:
        """How much of the cap it has taken: of the one in money, if there are both. None where there is none."""
        cost, requests = self.cap
        if cost is not None:
            return round(100 * self.usage.cost / cost) if cost else None
        return round(100 * self.usage.requests / requests) if requests else None

    @property
    def mean_seconds(self) -> float | None:
        """Of an answered request."""
        return self.usage.seconds / self.usage.answered if self.usage.answered else None


@dataclass(frozen=True)
class Wasted:
    """Votes that came after the outcome of their step was settled, of so many votes in all."""

    votes: int
    of: int

    @property
    def percent(self) -> int:
        return round(100 * self.votes / self.of) if self.of else 0


def costs_of(campaign: Campaign) -> Costs | None:
    """Return what the models of a campaign have taken; None where none has been asked since that is counted."""
    usage = list(campaign.model_usage.all())
    if not usage:
        return None
    # Read anew: the caps of a running campaign change.
    cost, requests = Campaign.objects.values_list("cost_cap", "request_cap").get(pk=campaign.pk)
    cap = None if cost is None else float(cost), requests
    judges = campaign.config.judges
    questions = {place: judge.question for place, judge in enumerate(judges)}
    wasted = _wasted(campaign, [place for place, judge in enumerate(judges) if _is_asked_at_once(judge)])
    rows = [ModelCost(each, questions.get(each.place, ""), cap, wasted.get(each.place)) for each in usage]
    return Costs(campaign, rows)


def _wasted(campaign: Campaign, places: list[int]) -> dict[int, Wasted]:
    """Return what some judges have answered in vain. Only these judges' votes are counted: others have next to none."""
    if not places:
        return {}
    votes = Vote.objects.filter(judge__campaign=campaign, judge__place__in=places).values("judge__place").order_by()
    counts = votes.annotate(of=Count("pk"), wasted=Count("pk", filter=Q(number__isnull=True)))
    return {row["judge__place"]: Wasted(row["wasted"], row["of"]) for row in counts}


def _is_asked_at_once(judge: sampler.JudgeConfig) -> bool:
    return isinstance(judge.source, sampler.ModelSource) and judge.source.all_at_once


def price_of(cost: float, unpriced: int) -> str:
    """Return a cost in words: it is not known where requests had no price."""
    if not unpriced:
        return money(cost)
    return f"at least {money(cost)}" if cost else "price unknown"


def money(cost: float) -> str:
    """Return an amount without a currency; small ones to a hundredth of a cent."""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:.4f}"
