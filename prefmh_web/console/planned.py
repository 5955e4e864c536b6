"""A plan in words and numbers, as its page shows it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console import planning
from prefmh_web.console.forms.planning import PlanForm
from prefmh_web.participants.models import Recruitment


@dataclass(frozen=True)
class Row:
    """A figure: what it is, its middle value and its interval, in words; and what should be known of it."""

    name: str
    middle: str
    low: str
    high: str
    note: str = ""


@dataclass(frozen=True)
class Plan:
    """What a campaign will take, and what to change; `refused` says why there is none."""

    rows: list[Row]
    changes: list[str]
    refused: str = ""


def planned(campaign: Campaign, form: PlanForm, pilot: sampler.Pilot | None, recruitment: Recruitment) -> Plan:
    """Return what to show of a valid form."""
    recipe = campaign.parsed_recipe
    if recipe.rule.evidence != "votes" or all(
        isinstance(each.source, sampler.AUTOMATIC_SOURCES) for each in recipe.judges
    ):
        return Plan([], [], "No person votes in this campaign, so there is nobody to plan for.")
    told = form.told(recipe.seats)
    study, foreseen = planning.plan_for(campaign, told, pilot)
    rows = [*_rows(foreseen, recruitment.currency)]
    return Plan(rows, sampler.planned_changes(study, foreseen, form.cleaned_data["most_money"]))


def _rows(foreseen: sampler.StudyForecast, currency: str) -> Iterator[Row]:
    yield _row("Votes", foreseen.votes)
    yield _row("Steps decided", foreseen.steps, note="of all chains, those that need no vote included")
    yield _row("Votes a step", foreseen.votes_a_step, places=2)
    yield _row("Chains", foreseen.chains)
    yield _row("Effective samples", foreseen.effective_samples, note="a rough figure: see below")
    yield _row("Hours of people", foreseen.hours, places=1, note="from arrival to the end, reading and waits included")
    yield _row("Hours until the last person goes", foreseen.wall_hours, places=1)
    yield _row("Share of the time spent waiting", foreseen.waiting, unit=" %", by=100)
    yield _row("People whose part is complete", foreseen.complete)
    if foreseen.money is not None:
        yield _row("Money", foreseen.money, places=2, unit=f" {currency}" if currency else "")


def _row(
    name: str, interval: sampler.ForecastInterval, places: int = 0, note: str = "", unit: str = "", by: float = 1
) -> Row:
    middle, low, high = (f"{by * each:,.{places}f}{unit}" for each in (interval.middle, interval.low, interval.high))
    return Row(name, middle, low, high, note)
