"""A panel as a researcher watches it: who has joined, who holds up which chains; before the start, what it costs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Max
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import open_comparisons
from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Event, Invitation, Vote


@dataclass(frozen=True)
class Wait:
    """A chain that cannot go on without an answer of a panelist, and that nobody is answering: since when."""

    chain: int
    since: datetime


@dataclass(frozen=True)
class PanelistStanding:
    """One panelist.

    Args:
        number: from 1, as everybody but the owner knows them.
        name: of the config; the number again where it has none.
        link: by which they come.
        person: who has come by it; None before.
        answers: how many they have given.
        last_answer_at: the last one of them.
        waits: the chains that wait for them, the longest wait first.
        reminded_at: when the researcher noted that they were reminded.
    """

    number: int
    name: str
    link: Invitation
    person: Annotator | None
    answers: int
    last_answer_at: datetime | None
    waits: list[Wait]
    reminded_at: list[datetime]

    @property
    def is_online(self) -> bool:
        """True while a page of theirs is open."""
        until = self.person and self.person.online_until
        return bool(until and until > timezone.now())

    @property
    def since(self) -> datetime | None:
        """Since when the first chain has waited for them; None if none does."""
        return self.waits[0].since if self.waits else None


def panelists_of(campaign: Campaign) -> list[PanelistStanding]:
    """Return the panelists of a started campaign; none where there is no panel."""
    links = {link.panelist: link for link in campaign.invitations.filter(panelist__isnull=False)}
    people = {person.panelist: person for person in campaign.annotators.filter(panelist__isnull=False)}
    given = Vote.objects.filter(judge__campaign=campaign, judge__panelist__isnull=False).order_by()
    counts = given.values_list("judge__panelist").annotate(Count("pk"), Max("cast_at"))
    answers = {number: (count, last) for number, count, last in counts}
    waits, reminded = waits_in(campaign), _reminders(campaign)
    return [
        PanelistStanding(
            number,
            name,
            links[number],
            people.get(number),
            *answers.get(number, (0, None)),
            waits.get(number, []),
            reminded[number],
        )
        for number, name in enumerate(campaign.config.panelists, start=1)
    ]


def _reminders(campaign: Campaign) -> defaultdict[int, list[datetime]]:
    reminded: defaultdict[int, list[datetime]] = defaultdict(list)
    for data, at in Event.objects.filter(campaign=campaign, kind=Event.Kind.REMINDED).values_list("data", "at"):
        reminded[data["panelist"]].append(at)
    return reminded


def waits_in(campaign: Campaign, longer_than: timedelta = timedelta()) -> dict[int, list[Wait]]:
    """Return the chains that wait for each panelist, the longest wait first.

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
            for panelist in {judge.panelist for judge in judges if judge.panelist is not None}:
                waits[panelist].append(Wait(place, since))
    return {panelist: sorted(each, key=lambda wait: (wait.since, wait.chain)) for panelist, each in waits.items()}


@dataclass(frozen=True)
class PanelPrice:
    """What a panel costs, known before the start.

    Args:
        panelists: how many people there are.
        questions: how many each of them is asked about a pair.
        pairs: how many pairs the objects make, or at most so many; None where chains make their objects.
        asked: how often a panelist is asked at most.
    """

    panelists: int
    questions: int
    pairs: int | None
    asked: int

    @property
    def best_percent(self) -> float:
        """How many of the steps are accepted at best, if nobody cares."""
        return 100 * sampler.best_acceptance(self.panelists * self.questions)

    @property
    def again_percent(self) -> float | None:
        """How many of the questions may be about a pair that the person knows, if all pairs came up alike."""
        if not self.pairs:
            return None
        new = self.pairs * (1 - (1 - 1 / self.pairs) ** self.asked)
        return 100 * (1 - new / self.asked)


def price_of(campaign: Campaign) -> PanelPrice | None:
    """Return what the panel of a campaign costs; None where there is none."""
    config = campaign.config
    if not config.panelists:
        return None
    panelists = len(config.panelists)
    answers = sum(isinstance(judge.source, sampler.PanelistSource) for judge in config.judges)
    pairs = None if config.generates else _pairs(campaign, config)
    return PanelPrice(panelists, answers // panelists, pairs, config.chains * config.steps)


def _pairs(campaign: Campaign, config: sampler.ChainConfig) -> int | None:
    objects = campaign.states.count()
    every = objects * (objects - 1) // 2
    if config.kernel.kind != "neighbours" or not isinstance(config.space, sampler.CatalogConfig):
        return every or None
    # Each is a neighbour of as many, and of those that have it for one.
    return min(every, objects * config.space.neighbours) or None
