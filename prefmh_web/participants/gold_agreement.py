"""What people answered to the gold pairs, which everybody of a campaign meets in one order: how far they agree.

These answers are no votes. Of somebody who has met a pair several times, the first answer counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prefmh_web.campaigns.models import Campaign, Side
from prefmh_web.config import OwnPair
from prefmh_web.participants import own_pairs
from prefmh_web.participants.models import Check
from prefmh_web.participants.recruiting import terms_of


@dataclass(frozen=True)
class GoldAnswers:
    """What was answered to one gold pair.

    Args:
        number: of the pair in the protocol, from 0.
        question: that stands above it.
        first, second: how many people chose each object, by its order in the protocol.
    """

    number: int
    question: str
    pair: OwnPair
    first: int
    second: int

    @property
    def people(self) -> int:
        """How many people answered."""
        return self.first + self.second

    @property
    def first_percent(self) -> float | None:
        """How often the first object was chosen; None without an answer."""
        return 100 * self.first / self.people if self.people else None

    @property
    def second_percent(self) -> float | None:
        """How often the second object was chosen; None without an answer."""
        return 100 * self.second / self.people if self.people else None


def answers_in(campaign: Campaign) -> list[GoldAnswers]:
    """Return what was answered to each gold pair of a campaign, in the protocol's order."""
    pairs, config = terms_of(campaign).gold, campaign.config
    chose_first: dict[tuple[int, int], bool] = {}
    answered = Check.objects.filter(participation__campaign=campaign, kind=Check.Kind.GOLD).exclude(chosen_side="")
    columns = ("participation", "gold", "chosen_side", "is_swapped")
    for part, gold, side, is_swapped in answered.order_by("after_votes").values_list(*columns):
        chose_first.setdefault((part, gold), (side == Side.FIRST) != is_swapped)
    found = []
    for number, pair in enumerate(pairs):
        said = [is_first for (_, gold), is_first in chose_first.items() if gold == number]
        question = own_pairs.question_of(pair, config)
        found.append(GoldAnswers(number, question, pair, sum(said), len(said) - sum(said)))
    return found


def share_alike(answers: Iterable[GoldAnswers]) -> float | None:
    """Return how often two people who answered the same pair chose the same object; None if no two did. People who flip
    coins do so half of the time.
    """
    found = list(answers)
    alike = sum(each.first * (each.first - 1) + each.second * (each.second - 1) for each in found)
    pairs = sum(each.people * (each.people - 1) for each in found)
    return alike / pairs if pairs else None
