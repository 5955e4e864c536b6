"""Whether pairs come back without a vote, and whether that depends on the answer: skips by side and judge, leases that
run out, late votes by what they were for. Reads only.

A skip returns the question, and a vote that comes too late is not counted. Neither shifts the law if it does not depend
on the answer; what can be seen of that is the side where the proposal stood, and what the late votes were for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING

from django.db.models import Count, F, Q

from prefmh_web.campaigns.models import Judge, Lease, Side, Vote
from prefmh_web.campaigns.monitoring.models import Share

if TYPE_CHECKING:
    from prefmh_web.campaigns.monitoring.progress import ChainProgress

MOST_EXPIRED = 0.02
"""A larger share of leases that run out is warned about (rule E11 of `docs/exactness.md`)."""
# Of fewer leases, the share says little.
_FEWEST_LEASES = 50
# So many standard errors from one half would be rare by luck.
_CLEARLY = 3


@dataclass(frozen=True)
class SkipsOfJudge:
    """How often one judge's question was skipped, by where the proposal stood."""

    judge: Judge
    first: int
    second: int

    @property
    def total(self) -> int:
        """In either place."""
        return self.first + self.second

    @property
    def is_uneven(self) -> bool:
        """True where the sides are drawn at random and differ by more than luck explains."""
        is_random = self.judge.order == Judge.Order.RANDOM
        return is_random and abs(self.first - self.second) > _CLEARLY * sqrt(self.total)


@dataclass(frozen=True)
class Unanswered:
    """What came back without a vote that counts.

    Args:
        skips: by judge, of those that people answer; without skips too.
        expired: leases whose time ran out, and after which no vote came.
        leases: all that have ended.
        late_for: votes for the proposal that came too late.
        late_against: the same, for the current object.
        won: the votes for the proposal among all that counted, which late ones should be like; None without any.
    """

    skips: Sequence[SkipsOfJudge]
    expired: int
    leases: int
    late_for: int
    late_against: int
    won: Share | None

    @property
    def skipped(self) -> int:
        """Skips of all judges."""
        return sum(each.total for each in self.skips)

    @property
    def late(self) -> int:
        """Votes that came too late."""
        return self.late_for + self.late_against

    @property
    def expired_percent(self) -> float:
        """The share of leases that ran out."""
        return 100 * self.expired / self.leases if self.leases else 0.0

    @property
    def expires_too_often(self) -> bool:
        """True where so many leases run out that fast answers may replace slow ones."""
        return self.leases >= _FEWEST_LEASES and self.expired > MOST_EXPIRED * self.leases

    @property
    def is_worth_telling(self) -> bool:
        """True where there is anything."""
        return bool(self.skipped or self.expired or self.late)


def unanswered_in(judges: Sequence[Judge], chains: Sequence[ChainProgress], voted: int) -> Unanswered | None:
    """Return what came back without a vote that counts; None where no people judge.

    Args:
        judges: of a campaign, all of them.
        chains: of the same campaign.
        voted: how many votes its people have given; each ended a lease.
    """
    people = [judge for judge in judges if judge.is_of_people]
    if not people:
        return None
    counts = _ended_without_a_vote(people)
    expired = sum(count for (_, ending, _), count in counts.items() if ending == Lease.Ending.EXPIRED)
    skipped = sum(counts.values()) - expired
    late_for, late_against = _late(people)
    votes = sum(each.votes for each in chains)
    return Unanswered(
        skips=[_skips(counts, judge) for judge in people],
        expired=expired,
        leases=skipped + expired + voted,
        late_for=late_for,
        late_against=late_against,
        won=Share(sum(each.votes_for for each in chains), votes) if votes else None,
    )


def _ended_without_a_vote(people: Sequence[Judge]) -> Counter[tuple[int, str, str]]:
    # A pair that was taken back from somebody who may vote no more is no skip of theirs.
    theirs = Q(annotator__removed_at=None) | Q(ended_at__lt=F("annotator__removed_at"))
    endings = (Lease.Ending.SKIPPED, Lease.Ending.EXPIRED)
    found = Lease.objects.filter(theirs, judge__in=people, ending__in=endings).order_by()
    rows = found.values_list("judge", "ending", "proposal_side").annotate(count=Count("pk"))
    return Counter({(judge, ending, side): count for judge, ending, side, count in rows})


def _skips(counts: Counter[tuple[int, str, str]], judge: Judge) -> SkipsOfJudge:
    first, second = (counts[judge.pk, Lease.Ending.SKIPPED, side] for side in (Side.FIRST, Side.SECOND))
    return SkipsOfJudge(judge, first, second)


def _late(people: Sequence[Judge]) -> tuple[int, int]:
    is_for = Q(chosen_side=F("proposal_side"))
    late = Vote.objects.filter(judge__in=people, annotator__isnull=False, number__isnull=True)
    found = late.aggregate(for_proposal=Count("pk", filter=is_for), against=Count("pk", filter=~is_for))
    return found["for_proposal"], found["against"]
