"""A campaign as the planner sees it: its setup's numbers, base ratios tried on paper, what its pilots have shown."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

import numpy as np
from django.db.models import Q, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Lease, Vote
from prefmh_web.campaigns.started.plans import plan_of
from prefmh_web.participants.models import Outcome, Participation
from prefmh_web.participants.recruiting import recruitment_of

_TRIAL_SEED, _TRIAL_CHAINS, _TRIAL_STEPS = 1, 10, 30
_PLAN_SEED = 1
# Somebody of a pilot who has not been seen for so long has left.
_GONE = timedelta(minutes=10)
_KEPT = 64


@dataclass(frozen=True)
class Told:
    """What the researcher says of the people, beside the setup.

    Args:
        minutes_each: None for as long as the setup's own limits say.
        seconds_a_vote: of somebody in the middle.
        pay_hour: None for the setup's pay for a place, if it has one.
    """

    people: int
    minutes_each: float | None
    seconds_a_vote: float
    within_minutes: float = 0.0
    pay_hour: float | None = None


def study_of(campaign: Campaign, told: Told) -> sampler.PlannedStudy:
    """Return what is planned.

    Raises:
        ValueError: a number is not what it can be.
    """
    recipe, recruitment = campaign.parsed_recipe, recruitment_of(campaign)
    shares = recruitment.parsed_protocol.shares
    active: float | None = recruitment.most_active_minutes
    present: float | None = recruitment.minutes_each
    if told.minutes_each is not None:
        active, present = (told.minutes_each, present) if active else (None, told.minutes_each)
    return sampler.PlannedStudy(
        chains=recipe.chains,
        most_chains=recipe.most_chains,
        steps=recipe.steps,
        burn_in=recipe.burn_in,
        budgets=tuple(judge.budget for judge in recipe.judges),
        people=recipe.seats or told.people,
        votes_each=recruitment.votes_each,
        active_minutes=active,
        present_minutes=present,
        within_minutes=told.within_minutes,
        most_answers=recruitment.budget,
        trials=float(shares.total),
        is_panel=bool(recipe.seats),
        instant=tuple(isinstance(judge.source, sampler.AUTOMATIC_SOURCES) for judge in recipe.judges),
        pay_hour=told.pay_hour,
        pay_place=None if recruitment.place_pay is None else float(recruitment.place_pay),
    )


def plan_for(
    campaign: Campaign, told: Told, pilot: sampler.Pilot | None
) -> tuple[sampler.PlannedStudy, sampler.StudyForecast]:
    """Return what is planned, and what it will take: the same figures each time for the same numbers.

    Args:
        pilot: what the campaign's pilots have shown, which replaces the seconds that were told.

    Raises:
        ValueError: a number is not what it can be.
    """
    study, ratios = study_of(campaign, told), (*trial_ratios(campaign), *pilot_ratios(campaign))
    return study, _foreseen(study, pilot.seconds_a_vote if pilot else told.seconds_a_vote, pilot, ratios)


# A forecast takes a second or two; a page asks for the same ones again and again.
@lru_cache(maxsize=_KEPT)
def _foreseen(
    study: sampler.PlannedStudy, seconds_a_vote: float, pilot: sampler.Pilot | None, ratios: tuple[float, ...]
) -> sampler.StudyForecast:
    paces, leans = sampler.PaceBeliefs(seconds_a_vote, pilot), sampler.LeanBeliefs(ratios, pilot)
    return sampler.forecast_study(np.random.default_rng(_PLAN_SEED), study, paces, leans)


def trial_ratios(campaign: Campaign) -> Sequence[float]:
    """Return base ratios of proposals that nobody is asked about; none where a model makes them, or nothing can yet."""
    if campaign.backend != "kernel" or campaign.unreadable:
        return ()
    revision = 0
    if not campaign.parsed_recipe.generates:
        if campaign.catalog.status != campaign.catalog.Status.READY:
            return ()
        revision = campaign.catalog.revision
    return _tried(campaign.pk, json.dumps(campaign.recipe), revision)


@lru_cache(maxsize=_KEPT)
def _tried(campaign_id: int, _recipe: str, _revision: int) -> tuple[float, ...]:
    plan = plan_of(Campaign.objects.get(pk=campaign_id))
    return tuple(sampler.trial_ratios(plan, _TRIAL_SEED, _TRIAL_CHAINS, _TRIAL_STEPS))


def pilots_of(campaign: Campaign) -> QuerySet[Campaign]:
    """Return the pilots that have started."""
    return campaign.pilots.filter(started_at__isnull=False).exclude(status=Campaign.Status.DELETING)


def pilot_of(campaign: Campaign) -> sampler.Pilot | None:
    """Return what the campaign's pilots have shown, together; None before the first vote in one."""
    people: list[sampler.PilotPerson] = []
    steps: list[sampler.PilotStep] = []
    for each in pilots_of(campaign).order_by("pk"):
        people += people_in(each)
        steps += steps_in(each)
    found = sampler.Pilot(tuple(people), tuple(steps))
    return found if found.votes else None


def pilot_ratios(campaign: Campaign) -> list[float]:
    """Return the base ratios of the pilots' steps."""
    return ratios_in(pilots_of(campaign))


def ratios_in(campaigns: Iterable[Campaign]) -> list[float]:
    """Return the base ratios of all steps of some campaigns; infinite where the state itself was proposed.

    They come chain by chain: a forecast draws from them by place, and processes store the steps of chains in any order.
    """
    steps = Comparison.objects.filter(chain__campaign__in=campaigns).order_by("chain__campaign", "chain__place", "step")
    rows = steps.values_list("log_r0", "current_id", "proposal_id")
    return [math.inf if current == proposal else log_r0 for log_r0, current, proposal in rows]


def people_in(pilot: Campaign) -> list[sampler.PilotPerson]:
    """Return how long each person took, from the moment when a pair was shown to the vote."""
    seconds: defaultdict[int, list[float]] = defaultdict(list)
    first: dict[int, datetime] = {}
    leases = Lease.objects.filter(annotator__campaign=pilot).order_by("issued_at")
    for annotator, ending, issued_at, ended_at in leases.values_list("annotator", "ending", "issued_at", "ended_at"):
        first.setdefault(annotator, issued_at)
        if ended_at is not None and ending == Lease.Ending.VOTED:
            seconds[annotator].append((ended_at - issued_at).total_seconds())
    stayed = _who_stayed(pilot)
    return [
        sampler.PilotPerson(tuple(seconds[pk]), (first[pk] - joined_at).total_seconds(), stayed.get(pk))
        for pk, joined_at in Annotator.objects.filter(pk__in=first).order_by("pk").values_list("pk", "joined_at")
    ]


def _who_stayed(pilot: Campaign) -> dict[int, bool]:
    """Return who has done all that was asked, and who has gone before; nobody who may still be there."""
    parts = Participation.objects.filter(campaign=pilot)
    done = Q(outcome__in=(Outcome.COMPLETED, Outcome.NOTHING_LEFT))
    found = dict.fromkeys(parts.filter(done).values_list("annotator", flat=True), True)
    gone = parts.filter(~done).filter(~Q(outcome="") | Q(seen_at__lt=timezone.now() - _GONE))
    return found | dict.fromkeys(gone.values_list("annotator", flat=True), False)


def steps_in(pilot: Campaign) -> list[sampler.PilotStep]:
    """Return what was said about each step that was voted on."""
    places = dict(pilot.judges.values_list("pk", "place"))
    votes: dict[int, tuple[list[int], list[int]]] = {}
    found = Vote.objects.filter(judge__campaign=pilot, number__isnull=False).order_by("pk")
    for comparison, judge, chosen, proposal in found.values_list("comparison", "judge", "chosen_side", "proposal_side"):
        votes_for, votes_cast = votes.setdefault(comparison, ([0] * len(places), [0] * len(places)))
        votes_cast[places[judge]] += 1
        votes_for[places[judge]] += chosen == proposal
    return [sampler.PilotStep(tuple(votes_for), tuple(votes_cast)) for votes_for, votes_cast in votes.values()]
