"""The one door through which chains become longer: rounds of further steps, where the recipe has them.

    weigh_by     an upper room says whether what is left of the budget covers a round
    open_next    opens the next one, once all chains of a locked campaign have walked their steps
    length_of    how many steps each chain of a campaign walks, as far as rounds are open

A round gives every chain that was not ended the same number of steps. It is opened in the transaction that decides the
last step, under the campaign's lock, which is the last of all locks; `transitions.finish_if_done` asks for it, and so
does the sweep. No other transaction holds a chain that has walked all its steps and waits for the campaign.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from django.db.models import F
from django.utils import timezone

from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.models import Campaign, FurtherRound
from prefmh_web.campaigns.started import started_campaign


@dataclass(frozen=True)
class Upcoming:
    """A round that may be opened.

    Args:
        number: from 1.
        chains: how many have opened.
        walking: how many of them were not ended.
    """

    number: int
    chains: int
    walking: int


@dataclass(frozen=True)
class Payment:
    """What pays for a round.

    Args:
        votes: of people that have counted.
        answers_left: of the budget.
        answers_needed: at most, if no step of the round is decided early.
    """

    votes: int
    answers_left: int
    answers_needed: int


Weigh = Callable[[Campaign, Upcoming], Payment | None]
_weigh: list[Weigh] = []


def weigh_by(weigh: Weigh) -> None:
    """Let an upper room say what pays for a round; None where what is left does not."""
    _weigh.append(weigh)


def open_next(campaign: Campaign) -> bool:
    """Open the next round of a locked campaign all of whose chains have walked their steps or were ended.

    Returns:
        False where there is none: the recipe has no rounds, or no more; no chain can walk; or it is not paid for.
    """
    started = started_campaign(campaign)
    rounds = started.recipe.rounds if started.is_readable else None
    if rounds is None:
        return False
    walking = list(campaign.chains.filter(ended_at__isnull=True).order_by("place"))
    upcoming = Upcoming(campaign.rounds.count() + 1, campaign.chains.count(), len(walking))
    if not walking or upcoming.number > rounds.most:
        return False
    for weigh in _weigh:
        if payment := weigh(campaign, upcoming):
            FurtherRound.objects.create(
                campaign=campaign, steps=rounds.steps, opened_at=timezone.now(), **vars(upcoming), **vars(payment)
            )
            campaign.chains.filter(pk__in=[chain.pk for chain in walking]).update(length=F("length") + rounds.steps)
            for chain in walking:
                chain.campaign = campaign
                dispatch.propose(chain)
            dispatch.round_opened(campaign)
            return True
    return False


def length_of(campaign: Campaign) -> int:
    """Return how many steps each chain of a locked campaign walks, as far as rounds are open."""
    recipe = started_campaign(campaign).recipe
    return recipe.steps if recipe.rounds is None else recipe.rounds.length_after(campaign.rounds.count())
