"""The people of a campaign as its researchers see them: how far each is, and how each votes.

However many there are, it takes the same number of statements.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, ExpressionWrapper, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Window
from django.db.models.functions import Coalesce, Lag, RowNumber
from django.utils import timezone

from prefmh_web.campaigns.models import Campaign, Lease, Side, Vote, Voter, numbers_in
from prefmh_web.config import Outcome
from prefmh_web.participants.models import AttentionCheck, Participation, Stage


@dataclass(frozen=True)
class Person:
    """Somebody who votes in a campaign.

    Args:
        number: what they are called in the record.
        voter: who they are in the record.
        participation: who they are to their platform, and how far; None where none has sent them.
        votes: how many they gave, those that came too late included.
        first: how many of these chose the first object.
        skips: how many pairs they skipped.
        median_ms: the median time of their votes, without the time in a hidden tab; None without one.
        checks_passed: attention checks.
        checks_failed: the same.
        fast_votes: how many votes came faster than the campaign's threshold, if it has one.
        seen_at: when they were last there.
    """

    number: int
    voter: Voter
    participation: Participation | None
    votes: int
    first: int
    skips: int
    median_ms: float | None
    checks_passed: int
    checks_failed: int
    fast_votes: int
    seen_at: datetime

    @property
    def has_id(self) -> bool:
        """True while it is known with which id a platform has sent them."""
        return bool(self.participation and self.participation.given_id)

    @property
    def stage(self) -> Stage | None:
        """Where they are; None where there are no stages."""
        return Stage(self.participation.stage) if self.participation else None

    @property
    def outcome(self) -> Outcome | None:
        """How their part has ended; None while it goes on."""
        if self.participation and self.participation.outcome:
            return Outcome(self.participation.outcome)
        return Outcome.ENDED if self.voter.removed_at else None

    @property
    def is_online(self) -> bool:
        """True while a page of theirs is open."""
        until = self.voter.online_until
        return until is not None and until > timezone.now()

    @property
    def median_seconds(self) -> float | None:
        """As `median_ms`, to be shown."""
        return None if self.median_ms is None else self.median_ms / 1000

    @property
    def first_percent(self) -> float | None:
        """How often they chose the first object; None without a vote."""
        return 100 * self.first / self.votes if self.votes else None


def people_of(campaign: Campaign) -> list[Person]:
    """Return all people of a campaign, in the order in which they joined."""
    return _people(campaign, campaign.voters.order_by("pk"))


def people_after(campaign: Campaign, number: int, most: int) -> list[Person]:
    """Return so many people of a campaign at most who have joined after somebody of this number."""
    page = list(numbers_in(campaign))[number : number + most]
    return _people(campaign, Voter.objects.filter(pk__in=page).order_by("pk"))


def person_of(voter: Voter) -> Person:
    """Return one of them, as they are now."""
    [found] = _people(voter.campaign, Voter.objects.filter(pk=voter.pk))
    return found


def _people(campaign: Campaign, voters: QuerySet[Voter]) -> list[Person]:
    whole = Participation.objects.filter(voter__in=voters).select_related("participant")
    participations, numbers = {participation.voter_id: participation for participation in whole}, numbers_in(campaign)
    medians, fast = _medians(voters), fast_votes(voters, campaign.config.study.max_votes_per_minute)
    # For all in one statement: asked for each person, it would look up each of their votes.
    votes = Vote.objects.filter(voter__in=voters).order_by().values_list("voter")
    counts = votes.annotate(Count("pk"), first=Count("pk", filter=Q(chosen_side=Side.FIRST)))
    given = {voter: (count, first) for voter, count, first in counts}
    # A pair that was taken back from somebody who may vote no more is no skip of theirs.
    theirs = Q(voter__removed_at=None) | Q(ended_at__lt=F("voter__removed_at"))
    # One that was skipped is neither passed nor failed.
    answered, passed = ~Q(expected_side="") & ~Q(chosen_side=""), Q(chosen_side=F("expected_side"))
    found = voters.select_related("invitation").annotate(
        skipped=_count(Lease.objects.filter(theirs, ending=Lease.Ending.SKIPPED), "voter"),
        passed=_count(AttentionCheck.objects.filter(answered, passed), "participation__voter"),
        failed=_count(AttentionCheck.objects.filter(answered, ~passed), "participation__voter"),
        asked_at=Subquery(Lease.objects.filter(voter=OuterRef("pk")).order_by("-issued_at").values("issued_at")[:1]),
    )
    return [
        Person(
            number=numbers[each.pk],
            voter=each,
            participation=participations.get(each.pk),
            votes=given.get(each.pk, (0, 0))[0],
            first=given.get(each.pk, (0, 0))[1],
            skips=each.skipped,
            median_ms=medians.get(each.pk),
            checks_passed=each.passed,
            checks_failed=each.failed,
            fast_votes=fast[each.pk],
            seen_at=_seen_at(each, participations.get(each.pk), each.asked_at),
        )
        for each in found
    ]


def _count(rows: QuerySet[Any], voter: str) -> Coalesce:
    """Return the expression for how many of some rows are of a voter, whom they refer to by this path."""
    theirs = rows.filter(**{voter: OuterRef("pk")}).order_by().values(voter)
    return Coalesce(Subquery(theirs.annotate(count=Count("pk")).values("count")), 0)


def _medians(voters: QuerySet[Voter]) -> dict[int, float]:
    """Return the median time of each voter's votes: the mean of the two in the middle, which may be the same. The
    time in a hidden tab is none of it, where the page has told that.
    """
    seen = ExpressionWrapper(F("elapsed_ms") - Coalesce(F("hidden_ms"), 0), IntegerField())
    timed = Vote.objects.filter(voter__in=voters, elapsed_ms__isnull=False).annotate(seen_ms=seen)
    number = Window(RowNumber(), partition_by="voter", order_by=("seen_ms", "pk"))
    many = Window(Count("pk"), partition_by="voter")
    twice = timed.annotate(twice=number * 2, many=many).filter(twice__gte=F("many"), twice__lte=F("many") + 2)
    middle: defaultdict[int, list[int]] = defaultdict(list)
    for voter, seen_ms in twice.values_list("voter_id", "seen_ms"):
        middle[voter].append(seen_ms or 0)
    return {voter: sum(times) / len(times) for voter, times in middle.items()}


def _seen_at(voter: Voter, participation: Participation | None, asked_at: datetime | None) -> datetime:
    until = voter.online_until
    # What an open page renews lies a little in the future.
    online_until = min(until, timezone.now()) if until else None
    moments = (voter.joined_at, participation and participation.seen_at, asked_at, online_until)
    return max(moment for moment in moments if moment)


def fast_votes(voters: QuerySet[Voter], most: int | None) -> Counter[int]:
    """Return how many votes of each voter were fast: in the minute that ended with one, they gave more than `most`.
    A flag for the researcher: nobody is refused or shown out for it.

    Whoever gave none that fast is not in it.
    """
    if most is None:
        return Counter()
    # The vote that came `most` votes earlier is less than a minute older.
    earlier = Window(Lag("cast_at", offset=most), partition_by="voter", order_by=("cast_at", "pk"))
    votes = Vote.objects.filter(voter__in=voters).annotate(earlier=earlier)
    fast = votes.filter(earlier__gt=F("cast_at") - timedelta(minutes=1))
    return Counter(fast.values_list("voter_id", flat=True))
