"""How each model of a campaign votes: mean p, lean to what stands first, whether people agree. Reads only.

Agreement is of votes that stand in the record anyway, on pairs that are decided, where it and people have answered
the same question. Nobody is asked for it, so no step can depend on it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Avg, Count, F, Q

from prefmh_web.campaigns.models import Judge, Side, Vote

# Of more pairs, the last ones are enough to see whether people agree.
MOST_PAIRS = 2_000
# Of the standard normal distribution: 95 % lie between minus and plus this.
_Z = 1.959963984540054


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
        share, n = self.count / self.of, self.of
        middle = share + _Z**2 / (2 * n)
        half = _Z * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
        low, high = (middle - half) / (1 + _Z**2 / n), (middle + half) / (1 + _Z**2 / n)
        return 100 * max(low, 0.0), 100 * min(high, 1.0)

    def __str__(self) -> str:
        low, high = self.interval_percent
        return f"{self.count} of {self.of} ({self.percent:.0f} %, 95 % interval {low:.0f} to {high:.0f} %)"


@dataclass(frozen=True)
class Judging:
    """One judge that is a model.

    Args:
        mean_p: of a vote for the proposal, over the votes that were drawn from p; None where none was.
        drawn: how many these are.
        first_shown: votes for the object that stood first.
        with_people: pairs on which the majority of its votes is that of people's; None where there are no such pairs.
    """

    judge: Judge
    mean_p: float | None
    drawn: int
    first_shown: Share
    with_people: Share | None


def judging_of(judges: Sequence[Judge]) -> list[Judging]:
    """Return how the models among a campaign's judges vote; empty where none has voted."""
    models = [judge for judge in judges if judge.is_model]
    counted = Vote.objects.filter(judge__in=models, number__isnull=False).order_by().values("judge")
    sums = counted.annotate(
        n=Count("pk"),
        first=Count("pk", filter=Q(chosen_side=Side.FIRST)),
        p=Avg("preference"),
        drawn=Count("preference"),
    )
    found = {row["judge"]: row for row in sums}
    return [
        Judging(judge, row["p"], row["drawn"], Share(row["first"], row["n"]), _with_people(judge, judges))
        for judge in models
        if (row := found.get(judge.pk))
    ]


def _with_people(one: Judge, judges: Sequence[Judge]) -> Share | None:
    people = [judge for judge in judges if judge.is_of_people and judge.question == one.question]
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
    for row in tallies[:MOST_PAIRS]:
        margins[row["comparison"]] += 2 * row["agreed"] - row["n"]
    return {pair: margin > 0 for pair, margin in margins.items() if margin}
