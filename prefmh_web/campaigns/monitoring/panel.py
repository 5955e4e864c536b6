"""A panel as a researcher watches it: who has joined, who holds up which chains; before the start, what it costs."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import open_comparisons
from prefmh_web.campaigns.models import Campaign, Comparison, Event, Vote


@dataclass(frozen=True)
class Wait:
    """A chain that cannot go on without an answer of a panelist, and that nobody is answering: since when."""

    chain: int
    since: datetime


def panelists_of(campaign: Campaign) -> list[dict[str, Any]]:
    """Return the panelists of a started campaign; none where there is no panel.

    Each has its ``number``, as everybody but the owner knows them, and the ``name`` of the config; the ``link`` by
    which they come, and the ``person`` who has come by it, if anybody has; whether they are online; how many
    ``answers`` they have given, and when the last one; the ``waits`` of chains for them, the longest first; and when
    the researcher noted that they were reminded.
    """
    links = {link.panelist: link for link in campaign.invitations.filter(panelist__isnull=False)}
    people = {person.panelist: person for person in campaign.annotators.filter(panelist__isnull=False)}
    given = Vote.objects.filter(judge__campaign=campaign, judge__panelist__isnull=False).order_by()
    counts = given.values_list("judge__panelist").annotate(Count("pk"), Max("cast_at"))
    answers = {number: (count, last) for number, count, last in counts}
    waits, reminded, now = waits_in(campaign), _reminders(campaign), timezone.now()
    found = []
    for number, name in enumerate(campaign.config.panelists, start=1):
        person, (count, last) = people.get(number), answers.get(number, (0, None))
        found.append(
            {
                "number": number,
                "name": name,
                "link": links[number],
                "person": person,
                "is_online": bool(person and person.online_until and person.online_until > now),
                "answers": count,
                "last_answer_at": last,
                "waits": waits.get(number, []),
                "reminded_at": reminded[number],
            }
        )
    return found


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


def price_of(campaign: Campaign) -> dict[str, Any] | None:
    """Return what the panel of a campaign costs, known before the start; None where there is none.

    It has ``panelists`` people, each asked ``questions`` about a pair, ``asked`` times at most. At best, if nobody
    cares, ``best_percent`` of the steps are accepted. The objects make so many ``pairs``, or at most so many; None
    where chains make their objects; so ``again_percent`` of the questions may be about a pair that the person knows, if
    all pairs came up alike.
    """
    config = campaign.config
    if not config.panelists:
        return None
    answers = sum(isinstance(judge.source, sampler.PanelistSource) for judge in config.judges)
    pairs, asked = None if config.generates else _pairs(campaign, config), config.chains * config.steps
    new = pairs * (1 - (1 - 1 / pairs) ** asked) if pairs else asked
    return {
        "panelists": len(config.panelists),
        "questions": answers // len(config.panelists),
        "asked": asked,
        "best_percent": 100 * sampler.best_acceptance(answers),
        "pairs": pairs,
        "again_percent": 100 * (1 - new / asked),
    }


def _pairs(campaign: Campaign, config: sampler.ChainConfig) -> int | None:
    objects = campaign.states.count()
    every = objects * (objects - 1) // 2
    if config.kernel.kind != "neighbours" or not isinstance(config.space, sampler.CatalogConfig):
        return every or None
    # Each is a neighbour of as many, and of those that have it for one.
    return min(every, objects * config.space.neighbours) or None
