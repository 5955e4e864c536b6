"""The moment that an export speaks of.

All files of one export speak of one moment: how many steps each chain had decided, and how many votes its open
comparison had, each taken in one query. Whatever is older never changes, so the files can be written while people go
on voting. Ratings never change either; those an open comparison has are no part of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Max, Q, QuerySet

import sampler
from prefmh_web.campaigns.models import Campaign, Comparison, Rating, Vote


@dataclass(frozen=True)
class Stretch:
    """Some steps of one chain, in a row.

    Args:
        chain: its place.
        after: the step before the first one.
        last: the last one.
    """

    chain: int
    after: int
    last: int

    def of(self, chain: str, step: str) -> Q:
        """Return the condition on rows, by the names of these columns."""
        return Q(**{chain: self.chain, f"{step}__gt": self.after, f"{step}__lte": self.last})


@dataclass(frozen=True)
class Snapshot:
    """A campaign as it stood at one moment."""

    campaign: Campaign
    config: sampler.ChainConfig
    steps: dict[int, int]
    """Decided steps by each chain's place; chains that are not in it opened afterwards."""
    open_votes: dict[tuple[int, int], int]
    """Counted votes of each open comparison, by its chain's place and its step."""
    last_opened: dict[int, int]
    """The last step opened by each chain's place."""
    ended: frozenset[tuple[int, int]]
    """The open comparisons at which a chain was ended, by its place and their step: they never get a verdict."""
    last_vote: int
    """Late votes with a greater id came afterwards."""
    last_rating: int
    """Ratings with a greater id came afterwards."""
    tuning: dict[str, Any] | None
    """What the warm-up has chosen, if it had by then."""
    stretch: Stretch | None = None
    """The steps that the tables of steps, votes and samples have; None for all."""

    @classmethod
    def now(cls, campaign: Campaign) -> Snapshot:
        # Open comparisons first. One decided before the second query is exported as decided, with all its votes,
        # because its chain's step says so.
        found = Comparison.objects.filter(chain__campaign=campaign, verdict__isnull=True)
        columns = ("chain__place", "step", "cast")
        opened = list(found.annotate(cast=Max("votes__number")).values_list(*columns))
        last_vote = Vote.objects.filter(judge__campaign=campaign).aggregate(last=Max("pk"))["last"] or 0
        steps = dict(campaign.chains.values_list("place", "step"))
        at_ends = found.filter(chain__ended_at__isnull=False, suspended_at__isnull=False)
        ended = frozenset(at_ends.values_list("chain__place", "step")) & {(place, step) for place, step, _ in opened}
        # Last, so that it has all ratings of the steps that are decided.
        last_rating = Rating.objects.filter(judge__campaign=campaign).aggregate(last=Max("pk"))["last"] or 0
        # Also the config: somebody may have extended the campaign, and the steps may be those of longer chains.
        campaign.refresh_from_db(fields=["config_data", "steps_added", "tuning"])
        tuning = campaign.tuning
        # A choice that came after the steps were counted is no part of the record; one that no step led to is.
        config = campaign.config
        first = [step for place, step in steps.items() if place < config.chains]
        is_made = tuning and ("ended_at" in tuning or min(first, default=0) >= campaign.warm_up)
        last_opened = dict(steps)
        for place, step, *_ in opened:
            last_opened[place] = max(step, last_opened[place])
        return cls(
            campaign=campaign,
            config=config,
            steps=steps,
            open_votes={(place, step): cast or 0 for place, step, cast in opened},
            last_opened=last_opened,
            ended=ended,
            last_vote=last_vote,
            last_rating=last_rating,
            tuning=tuning if is_made else None,
        )

    def of(self, stretch: Stretch) -> Snapshot:
        """Return the same moment, with some decided steps of one chain."""
        last = min(stretch.last, self.steps.get(stretch.chain, -1))
        return replace(self, open_votes={}, stretch=replace(stretch, last=last))

    def has_start(self, chain: int) -> bool:
        """True when where the chain at this place started is among the samples."""
        if chain not in self.steps:
            return False
        return self.stretch is None or (self.stretch.chain == chain and self.stretch.after < 0)

    def comparisons(self) -> QuerySet[Comparison]:
        """Return the comparisons in the order of the steps."""
        found = Comparison.objects.filter(chain__campaign=self.campaign).order_by("chain__place", "step")
        return found.filter(self.stretch.of("chain__place", "step")) if self.stretch else found

    def votes(self) -> QuerySet[Vote]:
        """Return the votes; `has_vote` says which were there."""
        # By way of the chains: SQLite then finds the votes in the order of the steps, and sorts none.
        found = Vote.objects.filter(comparison__chain__campaign=self.campaign)
        return found.filter(self.stretch.of("comparison__chain__place", "comparison__step")) if self.stretch else found

    def has_state(self, place: int) -> bool:
        """False for the number of an object that a chain made afterwards."""
        if not self.config.generates:
            return True
        step, chain = divmod(place, self.config.chains_at_most)
        return step <= self.last_opened.get(chain, -1)

    def is_decided(self, chain: int, step: int) -> bool:
        """True when the step of the chain at this place had its verdict."""
        return step <= self.steps.get(chain, -1)

    def has_step(self, chain: int, step: int) -> bool:
        """True when the step of the chain at this place was there, open or decided."""
        return self.is_decided(chain, step) or (chain, step) in self.open_votes

    def has_vote(self, chain: int, step: int, number: int | None) -> bool:
        """True when a vote of this number was there, counted or late."""
        if self.is_decided(chain, step):
            return True
        counted_by_then = self.open_votes.get((chain, step))
        return counted_by_then is not None and (number is None or number <= counted_by_then)
