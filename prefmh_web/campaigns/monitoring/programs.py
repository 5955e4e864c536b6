"""The programs that judge a campaign: whether they have a token, what they hold, and answers that never differ. Reads
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Count, F, Q

from prefmh_web.campaigns.models import Judge, JudgeToken, ProgramLease, Vote
from prefmh_web.campaigns.monitoring.judging import MOST_PAIRS, Share

# Of fewer pairs, answers that are alike say little: a clear preference gives them too.
_FEWEST_PAIRS = 10


@dataclass(frozen=True)
class ProgramStanding:
    """One judge that is a program.

    Args:
        token: the one that lets it in; None where there is none.
        held: questions that it holds now.
        votes: those that count.
        alike: decided pairs on which all its answers were for the same object, of those with two or more; None where
            there are none.
    """

    judge: Judge
    token: JudgeToken | None
    held: int
    votes: int
    skipped: int
    expired: int
    alike: Share | None

    @property
    def never_differs(self) -> bool:
        """True where its answers on a pair were the same each time, on so many pairs that it is worth a warning."""
        return self.alike is not None and self.alike.count == self.alike.of >= _FEWEST_PAIRS


def programs_of(judges: Sequence[Judge]) -> list[ProgramStanding]:
    """Return how the programs among a campaign's judges stand; empty where there are none."""
    found = [judge for judge in judges if judge.is_program]
    if not found:
        return []
    tokens = {token.judge_id: token for token in JudgeToken.objects.filter(judge__in=found, withdrawn_at__isnull=True)}
    return [_standing(judge, tokens.get(judge.pk)) for judge in found]


def _standing(judge: Judge, token: JudgeToken | None) -> ProgramStanding:
    endings = ProgramLease.Ending
    lost = ProgramLease.objects.filter(judge=judge).aggregate(
        skipped=Count("pk", filter=Q(ending=endings.SKIPPED)), expired=Count("pk", filter=Q(ending=endings.EXPIRED))
    )
    votes = Vote.objects.filter(judge=judge, number__isnull=False).count()
    return ProgramStanding(judge, token, ProgramLease.held_by(judge.pk).count(), votes, **lost, alike=_alike(judge))


def _alike(judge: Judge) -> Share | None:
    if judge.budget == 1:
        return None
    votes = Vote.objects.filter(judge=judge, number__isnull=False, comparison__verdict__isnull=False)
    pairs = (
        votes.order_by("-comparison")
        .values("comparison")
        .annotate(n=Count("pk"), agreed=Count("pk", filter=Q(chosen_side=F("proposal_side"))))
    )
    several = pairs.filter(n__gt=1)[:MOST_PAIRS]
    alike = [row["agreed"] in (0, row["n"]) for row in several]
    return Share(sum(alike), len(alike)) if alike else None
