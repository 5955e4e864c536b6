"""The seats of a panel as a researcher watches them: who has joined, who holds up which chains, how long it takes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median

from django.db.models import Max, Sum
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import open_comparisons
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Invitation, Seat, Vote
from prefmh_web.campaigns.started.seat_answers import SeatCount, counts_of, skips_of

# Below, the share of the steps that a seat answers says little.
_FEWEST_STEPS = 20


@dataclass(frozen=True)
class Wait:
    """A chain that cannot go on without an answer of a seat, and that nobody is answering: since when."""

    chain: int
    since: datetime


@dataclass(frozen=True)
class SeatStanding:
    """One seat.

    Args:
        seat: its number, name and reminders.
        link: by which its person comes.
        person: who has come by it; None before.
        count: what they have answered.
        skips: how many pairs they skipped.
        last_answer_at: when they answered the last time.
        median_ms: the median time of an answer; None without one.
        waits: the chains that wait for them, the longest wait first.
        votes_left: how many answers they have still to give, if it goes on as it did; None where too little is known.
    """

    seat: Seat
    link: Invitation
    person: Annotator | None
    count: SeatCount
    skips: int
    last_answer_at: datetime | None
    median_ms: float | None
    waits: list[Wait]
    votes_left: float | None

    @property
    def is_online(self) -> bool:
        """True while a page of theirs is open."""
        until = self.person and self.person.online_until
        return bool(until and until > timezone.now())

    @property
    def since(self) -> datetime | None:
        """Since when the first chain has waited for them; None if none does."""
        return self.waits[0].since if self.waits else None

    @property
    def agreed_percent(self) -> float | None:
        """How often they chose as before, of the pairs that they met again; None without one."""
        met = self.count.met
        return 100 * met.agreed / met.met_again if met.met_again else None

    @property
    def minutes_left(self) -> float | None:
        """How long they have still to answer: the median time of an answer, times the answers left."""
        if self.votes_left is None or self.median_ms is None:
            return None
        return self.votes_left * self.median_ms / 60_000


def seats_of(campaign: Campaign) -> list[SeatStanding]:
    """Return the seats of a started campaign; none where there is no panel."""
    links = {link.seat: link for link in campaign.invitations.filter(seat__isnull=False)}
    people = {person.seat: person for person in campaign.annotators.filter(seat__isnull=False)}
    counts, skips, waits = counts_of(campaign), skips_of(campaign), waits_in(campaign)
    times, last = _times(campaign), _last_answers(campaign)
    decided, left = _steps(campaign)
    return [
        SeatStanding(
            seat=seat,
            link=links[seat.number],
            person=people.get(seat.number),
            count=(count := counts.get(seat.number, SeatCount())),
            skips=skips.get(seat.number, 0),
            last_answer_at=last.get(seat.number),
            median_ms=median(times[seat.number]) if times[seat.number] else None,
            waits=waits.get(seat.number, []),
            votes_left=left * count.votes / decided if decided >= _FEWEST_STEPS else None,
        )
        for seat in campaign.seats.all()
    ]


def waits_in(campaign: Campaign, longer_than: timedelta = timedelta()) -> dict[int, list[Wait]]:
    """Return the chains that wait for each seat, the longest wait first.

    Of a chain that somebody is answering nobody knows yet whom it needs next, so it is not among them.
    """
    waiting = {opened.pk: (opened.place, judges) for opened, judges in open_comparisons.waiting_for(campaign)}
    found = Comparison.objects.filter(pk__in=waiting)
    found = found.annotate(voted=Max("votes__cast_at"), ended=Max("leases__ended_at"))
    waits: defaultdict[int, list[Wait]] = defaultdict(list)
    for pk, *moments in found.values_list("pk", "opened_at", "voted", "ended"):
        place, judges = waiting[pk]
        since = max(moment for moment in moments if moment is not None)
        if timezone.now() - since > longer_than:
            for seat in {judge.seat for judge in judges if judge.seat is not None}:
                waits[seat].append(Wait(place, since))
    return {seat: sorted(each, key=lambda wait: (wait.since, wait.chain)) for seat, each in waits.items()}


def _times(campaign: Campaign) -> defaultdict[int, list[int]]:
    found = Vote.objects.filter(judge__campaign=campaign, judge__seat__isnull=False, elapsed_ms__isnull=False)
    times: defaultdict[int, list[int]] = defaultdict(list)
    for seat, elapsed_ms in found.values_list("judge__seat", "elapsed_ms"):
        if seat is not None and elapsed_ms is not None:
            times[seat].append(elapsed_ms)
    return times


def _last_answers(campaign: Campaign) -> dict[int, datetime]:
    found = Vote.objects.filter(judge__campaign=campaign, judge__seat__isnull=False).order_by()
    return dict(found.values_list("judge__seat").annotate(Max("cast_at")))


def _steps(campaign: Campaign) -> tuple[int, int]:
    """Return how many steps are decided, and how many are left."""
    found = campaign.chains.aggregate(decided=Sum("step"), steps=Sum("length"))
    return found["decided"], found["steps"] - found["decided"]


@dataclass(frozen=True)
class PanelPrice:
    """What a panel costs, known before the start.

    Args:
        seats: how many people there are.
        questions: how many each of them is asked about a pair.
        pairs: how many pairs the objects make, or at most so many; None where chains make their objects.
        asked: how often a seat is asked at most.
    """

    seats: int
    questions: int
    pairs: int | None
    asked: int

    @property
    def best_percent(self) -> float:
        """How many of the steps are accepted at best, if nobody cares."""
        return 100 * sampler.best_acceptance(self.seats * self.questions)

    @property
    def again_percent(self) -> float | None:
        """How many of the questions may be about a pair that the person knows, if all pairs came up alike."""
        if not self.pairs:
            return None
        new = self.pairs * (1 - (1 - 1 / self.pairs) ** self.asked)
        return 100 * (1 - new / self.asked)


def price_of(campaign: Campaign) -> PanelPrice | None:
    """Return what the panel of a campaign costs; None where there is none."""
    recipe = campaign.parsed_recipe
    if not recipe.seats:
        return None
    seated = [judge for judge in recipe.judges if isinstance(judge.source, sampler.SeatSource)]
    pairs = None if recipe.generates else _pairs(campaign, recipe)
    return PanelPrice(recipe.seats, len(seated) // recipe.seats, pairs, recipe.chains * recipe.steps)


def _pairs(campaign: Campaign, recipe: sampler.Recipe) -> int | None:
    objects = campaign.states.count()
    every = objects * (objects - 1) // 2
    if recipe.kernel.kind != "neighbours" or not isinstance(recipe.space, sampler.CatalogRecipe):
        return every or None
    # Each is a neighbour of as many, and of those that have it for one.
    return min(every, objects * recipe.space.neighbours) or None
