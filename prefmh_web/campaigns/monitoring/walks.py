"""What a researcher watches of a campaign's walks: its warm-up, what that has chosen, and how many votes are won."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

import sampler
from prefmh_web.campaigns.models import OF_THE_START, Campaign, Chain, Comparison
from prefmh_web.campaigns.monitoring.judging import Share

if TYPE_CHECKING:
    from prefmh_web.campaigns.monitoring.progress import ChainProgress

# Of fewer votes, the share that is won says little.
_FEWEST_VOTES = 50
_LEAST_PERCENT_WON = 10


@dataclass(frozen=True)
class TriedLength:
    """What one length of the grid did in the warm-up, in the page's words.

    Args:
        won_percent: votes for the proposal; None without votes.
        distance_percent: how far a vote moved the chains, compared with the length that moved them furthest.
        reach_percent: how far its proposals lay, compared with the length whose proposals lay furthest.
    """

    length: int
    steps: int
    votes: int
    won_percent: int | None
    distance_percent: int | None
    reach_percent: int | None
    is_chosen: bool


@dataclass(frozen=True)
class Shorter:
    """A shorter walk, and how many votes it costs for the same distance, compared with the chosen one."""

    length: int
    cost: float | None


@dataclass(frozen=True)
class WalkStanding:
    """How the walks of a campaign are getting on."""

    is_warming_up: bool
    warm_up: int
    length: int | None
    """How far steps walk after the warm-up; None while that is not chosen, or where there are several lengths."""
    waited_for: list[int]
    """The chains that have not come to the end of the warm-up, by place."""
    steps_left: int
    """The most steps of the warm-up that one of them has left."""
    late: list[int]
    """Chains without a decision for longer than the config's patience."""
    own_length: int
    """How far steps walk if the warm-up is ended."""
    patience_minutes: int
    was_ended: bool
    is_the_middle: bool
    tried: list[TriedLength]
    rule: str
    """By which the length was chosen from these."""
    won: Share | None
    """Counted votes for the proposal since the warm-up, of the chains of the start; None of too few."""
    shorter: Shorter | None

    @property
    def wins_too_little(self) -> bool:
        """True where so few votes are for the proposal that careless ones count for much."""
        return self.won is not None and self.won.percent < _LEAST_PERCENT_WON


def walks_of(campaign: Campaign, there: Sequence[ChainProgress]) -> WalkStanding | None:
    """Return how a started campaign's walks are getting on; None where it makes one move between two pairs."""
    config = campaign.config
    kernel: Any = config.kernel
    if kernel.kind != "walk":
        return None
    # Chains that open later have no part in what the warm-up finds.
    of_start = [each for each in there if each.chain.place < config.chains]
    behind = [each.chain for each in of_start if each.chain.step < campaign.warm_up]
    own = kernel.length[0].length
    length = campaign.walk_length if campaign.warm_up else (own if len(kernel.length) == 1 else None)
    found: dict[str, Any] = campaign.tuning or {}
    trials: list[dict[str, Any]] = found.get("trials", [])
    return WalkStanding(
        is_warming_up=campaign.is_warming_up,
        warm_up=campaign.warm_up,
        length=length,
        waited_for=[chain.place for chain in behind] if campaign.is_warming_up else [],
        steps_left=max((campaign.warm_up - chain.step for chain in behind), default=0),
        late=[chain.place for chain in late_chains(campaign)],
        own_length=own,
        patience_minutes=config.warm_up.patience_minutes if config.warm_up else 0,
        was_ended="ended_at" in found,
        is_the_middle=found.get("because") == sampler.MIDDLE,
        tried=_tried(trials, length),
        rule=found.get("rule", ""),
        won=_won(campaign, of_start, trials),
        shorter=_shorter(trials, length),
    )


def late_chains(campaign: Campaign) -> QuerySet[Chain]:
    """Chains that have not decided a step for longer than the config's patience while a running campaign warms up."""
    warm_up = campaign.config.warm_up
    if warm_up is None or not (campaign.is_warming_up and campaign.is_running) or campaign.started_at is None:
        return Chain.objects.none()
    since = timezone.now() - timedelta(minutes=warm_up.patience_minutes)
    return _still_since(campaign, since) if campaign.started_at < since else Chain.objects.none()


def _still_since(campaign: Campaign, since: datetime) -> QuerySet[Chain]:
    decided = Comparison.objects.filter(chain=OuterRef("pk"), step=OuterRef("step"), decided_at__gte=since)
    first = campaign.chains.filter(OF_THE_START)
    behind = first.filter(step__lt=campaign.warm_up)
    # Should the choice itself fail, all of them are late.
    return (behind if behind.exists() else first).filter(~Exists(decided)).order_by("place")


def _tried(trials: Sequence[dict[str, Any]], length: int | None) -> list[TriedLength]:
    furthest = max((trial["jump_per_vote"] for trial in trials), default=0)
    return [
        TriedLength(
            length=trial["length"],
            steps=trial["steps"],
            votes=trial["votes"],
            won_percent=None if trial["share_won"] is None else round(100 * trial["share_won"]),
            distance_percent=round(100 * trial["jump_per_vote"] / furthest) if furthest else None,
            reach_percent=None if trial["reach"] is None else round(100 * trial["reach"]),
            is_chosen=trial["length"] == length,
        )
        for trial in trials
    ]


def _won(campaign: Campaign, chains: Sequence[ChainProgress], trials: Sequence[dict[str, Any]]) -> Share | None:
    if campaign.is_warming_up or (campaign.warm_up and not trials):
        return None
    votes = sum(each.votes for each in chains) - sum(int(trial["votes"]) for trial in trials)
    votes_for = sum(each.votes_for for each in chains) - sum(int(trial["votes_for"]) for trial in trials)
    return Share(votes_for, votes) if votes >= _FEWEST_VOTES else None


def _shorter(trials: Sequence[dict[str, Any]], length: int | None) -> Shorter | None:
    """Return the next shorter length of the grid, with what it costs by what the warm-up has found."""
    chosen = next((trial for trial in trials if trial["length"] == length), None)
    shorter = [trial for trial in trials if length is not None and trial["length"] < length]
    if chosen is None or not shorter:
        return None
    jump = shorter[-1]["jump_per_vote"]
    return Shorter(shorter[-1]["length"], chosen["jump_per_vote"] / jump if jump else None)
