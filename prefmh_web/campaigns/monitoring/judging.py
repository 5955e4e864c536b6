"""How people, models, panelists and scorers answer in a campaign, and what asking models has come to. Reads only.

Of people: whether pairs come back without a vote, and whether that depends on the answer: skips by side and judge,
leases that run out, late votes by what they were for. A skip returns the question, and a vote that comes too late is
not counted. Neither shifts the distribution if it does not depend on the answer; what can be seen of that is the side
where the proposal stood, and what the late votes were for.

Of models: mean p, bias to what stands first, and agreement with people. That is of votes that stand in the record
anyway, on pairs that are decided, where the model and people have answered the same question. Nobody is asked for it,
so no step can depend on it.

Of a panel: who has joined, who holds up which chains; before the start, what it costs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import sqrt
from typing import TYPE_CHECKING, Any

from django.db.models import Avg, Count, F, Max, Q
from django.utils import timezone

import sampler
from prefmh_web.campaigns.engine import open_comparisons
from prefmh_web.campaigns.frozen import started_campaign
from prefmh_web.campaigns.models import Campaign, Comparison, Event, Judge, Lease, ModelUsage, Score, Side, Vote

if TYPE_CHECKING:
    from prefmh_web.campaigns.monitoring.progress import ShownChain


def costs_of(campaign: Campaign) -> dict[str, Any] | None:
    """Return what the models of a campaign have taken, each judge for itself and the writing of proposals, beside its
    caps; None where none has been asked since that is counted.
    """
    usage = list(campaign.model_usage.all())
    if not usage:
        return None
    # Read anew: the caps of a running campaign change.
    cost_cap, request_cap = Campaign.objects.values_list("cost_cap", "request_cap").get(pk=campaign.pk)
    questions = {index: judge.question for index, judge in enumerate(campaign.config.judges)}
    wasted = _wasted(campaign, started_campaign(campaign).asked_at_once)
    return {
        # Those as well that a process may have sent before it died: the cap counts them.
        "requests": sum(each.requests + each.repeated for each in usage),
        "request_cap": request_cap,
        "price": price_of(sum(each.cost for each in usage), sum(each.unpriced for each in usage)),
        "cost_cap": cost_cap,
        "rows": [
            {
                "usage": each,
                # Of the writing of proposals there is none.
                "question": questions.get(each.judge_index, ""),
                "wasted": wasted.get(each.judge_index),
                "mean_seconds": each.seconds / each.answered if each.answered else None,
                "price": price_of(each.cost, each.unpriced),
                "share_percent": _share_percent(each, cost_cap, request_cap),
            }
            for each in usage
        ],
    }


def _share_percent(usage: ModelUsage, cost_cap: Decimal | None, request_cap: int | None) -> int | None:
    """Return how much of the cap has been taken: of the one in money, if there are both. None where there is none."""
    if cost_cap is not None:
        return round(100 * usage.cost / float(cost_cap)) if cost_cap else None
    return round(100 * (usage.requests + usage.repeated) / request_cap) if request_cap else None


def _wasted(campaign: Campaign, indices: Collection[int]) -> dict[int, Share]:
    """Return of some judges the votes that came after the outcome of their step was settled, of all their votes. Only
    these judges' votes are counted: others have next to none.
    """
    votes = Vote.objects.filter(judge__campaign=campaign, judge__index__in=indices).values("judge__index").order_by()
    counts = votes.annotate(of=Count("pk"), wasted=Count("pk", filter=Q(number__isnull=True)))
    return {row["judge__index"]: Share(row["wasted"], row["of"]) for row in counts}


def price_of(cost: float, unpriced: int) -> str:
    """Return a cost in words: it is not known where requests had no price."""
    if not unpriced:
        return money(cost)
    return f"at least {money(cost)}" if cost else "price unknown"


def money(cost: float) -> str:
    """Return an amount without a currency; small ones to a hundredth of a cent."""
    return f"{cost:,.2f}" if cost >= 1 or not cost else f"{cost:.4f}"


# Of more pairs, the last ones are enough to see whether people agree.
MAX_PAIRS = 2_000


@dataclass(frozen=True)
class Share:
    """How many of some, with Wilson's score interval at 95 % (JASA 22, 1927)."""

    count: int
    of: int

    @property
    def percent(self) -> float:
        return 100 * self.count / self.of

    @property
    def interval_percent(self) -> tuple[float, float]:
        # Imported here: it takes long, and most pages tell no share.
        from scipy.stats import binomtest

        found = binomtest(self.count, self.of).proportion_ci(0.95, method="wilson")
        return 100 * found.low, 100 * found.high

    def __str__(self) -> str:
        low, high = self.interval_percent
        share = sampler.percent(self.count / self.of, 0)
        return f"{self.count} of {self.of} ({share}, 95 % interval {low:.0f} to {high:.0f} %)"


def judging_of(judges: Sequence[Judge]) -> list[dict[str, Any]]:
    """Return how the models among a campaign's judges vote; empty where none has voted.

    Each has the ``mean_p`` of a vote for the proposal, over the ``drawn`` votes that were drawn from p; the share that
    went to the object ``first_shown``; and the share of pairs on which the majority of its votes is that
    ``with_people``, None where there are no such pairs.
    """
    models = [judge for judge in judges if judge.is_model]
    counted = Vote.objects.filter(judge__in=models, number__isnull=False)
    first = Count("pk", filter=Q(chosen_side=Side.FIRST))
    sums = (
        counted.order_by()
        .values_list("judge")
        .annotate(votes=Count("pk"), first=first, mean_p=Avg("preference"), drawn=Count("preference"))
    )
    found = {judge: row for judge, *row in sums}
    return [
        {
            "judge": judge,
            "mean_p": mean_p,
            "drawn": drawn,
            "first_shown": Share(first_shown, votes),
            "with_people": _with_people(judge, judges),
        }
        for judge in models
        if judge.pk in found
        for votes, first_shown, mean_p, drawn in [found[judge.pk]]
    ]


def _with_people(one: Judge, judges: Sequence[Judge]) -> Share | None:
    people = [judge for judge in judges if not judge.is_model and judge.question == one.question]
    if not people:
        return None
    theirs = _majorities(people)
    mine = _majorities([one], among=list(theirs))
    both = [theirs[pair] == choice for pair, choice in mine.items()]
    return Share(sum(both), len(both)) if both else None


def _majorities(judges: Sequence[Judge], among: Sequence[int] | None = None) -> dict[int, bool]:
    """Return of decided pairs whether most votes are for the proposal; pairs with as many for each are left out."""
    votes = Vote.objects.filter(judge__in=judges, number__isnull=False, comparison__verdict__isnull=False)
    if among is not None:
        votes = votes.filter(comparison__in=among)
    counted = votes.order_by("-comparison").values("comparison")
    tallies = counted.annotate(n=Count("pk"), agreed=Count("pk", filter=Q(chosen_side=F("proposal_side"))))
    margins: defaultdict[int, int] = defaultdict(int)
    for row in tallies[:MAX_PAIRS]:
        margins[row["comparison"]] += 2 * row["agreed"] - row["n"]
    return {pair: margin > 0 for pair, margin in margins.items() if margin}


_REASONS_SHOWN = 3


def scorers_of(campaign: Campaign) -> list[dict[str, Any]]:
    """Return how each scorer of a campaign is getting on: how many objects it has scored, and how many have no number;
    the mean of its numbers for the objects where the chains stand now, one of each chain, and over how many chains; and
    why objects have no number, the most frequent reason first, each with how many they are.
    """
    found: list[dict[str, Any]] = []
    # Most have none, and the page asks the database little.
    for scorer in campaign.scorers.select_related("campaign") if campaign.config.all_scorers else ():
        counts = scorer.scores.aggregate(
            scored=Count("pk", filter=Q(value__isnull=False)), without=Count("pk", filter=Q(value__isnull=True))
        )
        # Each chain once, though several may stand at one object.
        heads = campaign.chains.filter(head__scores__scorer=scorer, head__scores__value__isnull=False)
        now = heads.aggregate(mean_now=Avg("head__scores__value"), chains_counted=Count("pk"))
        failed = Score.objects.filter(scorer=scorer, value__isnull=True).values_list("reason")
        reasons = failed.annotate(count=Count("pk")).order_by("-count", "reason")[:_REASONS_SHOWN]
        found.append({"scorer": scorer, "reasons": list(reasons), **counts, **now})
    return found


MAX_EXPIRED = 0.02
"""A larger share of leases that run out is warned about (rule E11 of `docs/exactness.md`)."""
# Of fewer leases, the share says little.
_MIN_LEASES = 50
# So many standard errors from one half would be rare by luck.
_CLEARLY = 3


def unanswered_in(judges: Sequence[Judge], chains: Sequence[ShownChain], voted: int) -> dict[str, Any] | None:
    """Return what came back without a vote that counts; None where no people judge, or nothing did.

    ``expired`` are leases whose time ran out, and after which no vote came, of all ``leases`` that have ended; too many
    of them where fast answers may replace slow ones. ``late_for`` and ``late_against`` are votes for the proposal and
    for the current object that came too late; ``won`` are the votes for the proposal among all that counted, which late
    ones should be like.

    Args:
        judges: of a campaign, all of them.
        chains: of the same campaign.
        voted: how many votes its people have given; each ended a lease.
    """
    people = [judge for judge in judges if not judge.is_model]
    counts = _ended_without_a_vote(people)
    expired = sum(count for (_, ending, _), count in counts.items() if ending == Lease.Ending.EXPIRED)
    skipped = sum(counts.values()) - expired
    late = Vote.objects.filter(judge__in=people, voter__isnull=False, number__isnull=True)
    is_for = Q(chosen_side=F("proposal_side"))
    late_for, late_against = late.aggregate(one=Count("pk", filter=is_for), other=Count("pk", filter=~is_for)).values()
    votes, leases = sum(chain.all_votes for chain in chains), skipped + expired + voted
    if not (skipped or expired or late_for or late_against):
        return None
    return {
        "skips": [_skips(counts, judge) for judge in people],
        "skipped": skipped,
        "expired": expired,
        "leases": leases,
        "expired_percent": 100 * expired / leases if leases else 0.0,
        "expires_too_often": leases >= _MIN_LEASES and expired > MAX_EXPIRED * leases,
        "late": late_for + late_against,
        "late_for": late_for,
        "late_against": late_against,
        "won": Share(sum(chain.all_votes_for for chain in chains), votes) if votes else None,
    }


def _ended_without_a_vote(people: Sequence[Judge]) -> Counter[tuple[int, str, str]]:
    # A pair that was taken back from somebody who may vote no more is no skip of theirs.
    theirs = Q(voter__removed_at=None) | Q(ended_at__lt=F("voter__removed_at"))
    endings = (Lease.Ending.SKIPPED, Lease.Ending.EXPIRED)
    found = Lease.objects.filter(theirs, judge__in=people, ending__in=endings).order_by()
    rows = found.values_list("judge", "ending", "proposal_side").annotate(count=Count("pk"))
    return Counter({(judge, ending, side): count for judge, ending, side, count in rows})


def _skips(counts: Counter[tuple[int, str, str]], judge: Judge) -> dict[str, Any]:
    """Return how often one judge's question was skipped, by where the proposal stood; it is uneven where the sides are
    drawn at random and differ by more than luck explains.
    """
    first, second = (counts[judge.pk, Lease.Ending.SKIPPED, side] for side in (Side.FIRST, Side.SECOND))
    is_uneven = judge.order == Judge.Order.RANDOM and abs(first - second) > _CLEARLY * sqrt(first + second)
    return {"judge": judge, "first": first, "second": second, "is_uneven": is_uneven}


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
    counts = {"answers": Count("votes"), "last_answer_at": Max("votes__cast_at")}
    joined = campaign.voters.filter(panelist__isnull=False).annotate(**counts)
    people = {person.panelist: person for person in joined}
    waits, reminded, now = waits_in(campaign), _reminders(campaign), timezone.now()
    found = []
    for number, name in enumerate(campaign.config.panelists, start=1):
        person: Any = people.get(number)
        found.append(
            {
                "number": number,
                "name": name,
                "link": links[number],
                "person": person,
                "is_online": bool(person and person.online_until and person.online_until > now),
                "answers": person.answers if person else 0,
                "last_answer_at": person and person.last_answer_at,
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
    waiting = {opened.pk: (opened.index, judges) for opened, judges in open_comparisons.waiting_for(campaign)}
    found = Comparison.objects.filter(pk__in=waiting)
    found = found.annotate(voted=Max("votes__cast_at"), ended=Max("leases__ended_at"))
    waits: defaultdict[int, list[Wait]] = defaultdict(list)
    for pk, *moments in found.values_list("pk", "opened_at", "voted", "ended"):
        index, judges = waiting[pk]
        since = max(moment for moment in moments if moment is not None)
        if timezone.now() - since > longer_than:
            for panelist in {judge.panelist for judge in judges if judge.panelist is not None}:
                waits[panelist].append(Wait(index, since))
    return {panelist: sorted(each, key=lambda wait: (wait.since, wait.chain)) for panelist, each in waits.items()}


def panel_price_of(campaign: Campaign) -> dict[str, Any] | None:
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
