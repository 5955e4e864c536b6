"""Repeats that are the same for everybody: decided pairs of the campaign in one order, so that people can be compared.

The order grows by one pair at a time, drawn by the seed among the pairs that are decided then and open in no chain.
Nobody is asked a pair that they were shown for a vote. An answer is a `Check`, and never a vote (rule E3 of
`docs/exactness.md`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from prefmh_web.campaigns.models import Annotator, Campaign, Comparison, Lease, Side
from prefmh_web.campaigns.started import started_campaign
from prefmh_web.participants.models import Check, CommonPair
from prefmh_web.participants.repeats import Pair, open_pairs
from sampler.judges import common_pair

_CONTENTS = ("comparison__current__content", "comparison__proposal__content")


def choose(annotator: Annotator) -> int | None:
    """Return the row of the next pair for somebody: the first in the order that they can be asked. If there is none,
    the order grows by one, which is perhaps for others; None if there is none then.
    """
    undecided, seen = open_pairs(annotator.campaign_id), _seen_by(annotator)
    order = _order(annotator.campaign)
    for found, pair in order:
        if pair not in seen and pair not in undecided:
            return found
    drawn = _draw(annotator.campaign, len(order), {pair for _, pair in order} | undecided)
    return None if drawn is None or drawn[1] in seen else drawn[0]


def _order(campaign: Campaign) -> Sequence[tuple[int, Pair]]:
    rows = CommonPair.objects.filter(campaign=campaign).order_by("number").values_list("pk", *_CONTENTS)
    return [(pk, frozenset(pair)) for pk, *pair in rows]


def _seen_by(annotator: Annotator) -> set[Pair]:
    leased = Lease.objects.filter(annotator=annotator).values_list(*_CONTENTS)
    given = Check.objects.filter(participation__annotator=annotator, common__isnull=False)
    asked = given.values_list(*(f"common__{name}" for name in _CONTENTS))
    return {frozenset(pair) for pair in (*leased, *asked)}


def _draw(campaign: Campaign, number: int, taken: set[Pair]) -> tuple[int, Pair] | None:
    started = started_campaign(campaign)
    decided = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=False)
    rows = decided.order_by("chain__place", "step").values_list("pk", "current__content", "proposal__content")
    found = [(pk, frozenset(pair)) for pk, *pair in rows if frozenset(pair) not in taken and len(set(pair)) == 2]
    if not found or not started.people:
        return None
    which, judge = common_pair(started.recipe.seed, number)
    comparison, pair = found[int(which * len(found))]
    fields = {"comparison_id": comparison, "judge_id": started.people[int(judge * len(started.people))].pk}
    # Of two people at once, the second is asked what was drawn for the first.
    drawn, is_new = CommonPair.objects.get_or_create(campaign=campaign, number=number, defaults=fields)
    return drawn.pk, pair if is_new else _contents(drawn)


def _contents(pair: CommonPair) -> Pair:
    return frozenset((pair.comparison.current.content, pair.comparison.proposal.content))


@dataclass(frozen=True)
class Agreement:
    """What people answered to one pair that everybody is asked.

    Args:
        pair: which.
        first: how many chose the step's current object.
        second: how many chose its proposal.
    """

    pair: CommonPair
    first: int
    second: int

    @property
    def answers(self) -> int:
        """How many people answered."""
        return self.first + self.second

    @property
    def alike(self) -> int:
        """How many chose what most chose."""
        return max(self.first, self.second)


def agreements_in(campaign: Campaign) -> list[Agreement]:
    """Return what people answered to each pair of the order."""
    rows = CommonPair.objects.filter(campaign=campaign).order_by("number")
    chosen: defaultdict[int, list[bool]] = defaultdict(list)
    answered = Check.objects.filter(common__campaign=campaign).exclude(chosen_side="")
    for pair, side, is_swapped in answered.values_list("common", "chosen_side", "is_swapped"):
        chosen[pair].append((side == Side.LEFT) != is_swapped)
    return [
        Agreement(pair, sum(chosen[pair.pk]), len(chosen[pair.pk]) - sum(chosen[pair.pk]))
        for pair in rows.select_related("comparison__current", "comparison__proposal", "comparison__chain", "judge")
    ]


def share_alike(agreements: Iterable[Agreement]) -> float | None:
    """Return how often two people who answered the same pair chose the same object; None if no two did. People who flip
    coins do so half of the time.
    """
    found = list(agreements)
    alike = sum(each.first * (each.first - 1) + each.second * (each.second - 1) for each in found)
    pairs = sum(each.answers * (each.answers - 1) for each in found)
    return alike / pairs if pairs else None
