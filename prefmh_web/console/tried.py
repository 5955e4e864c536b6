"""What a trial of a judge has shown, for its page."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import mean

from prefmh_web.campaigns.lifecycle.judge_trials import rows_of
from prefmh_web.campaigns.model_judges.tried import Reply, read
from prefmh_web.campaigns.models import Campaign, JudgeTrial, State, TrialPair
from prefmh_web.campaigns.monitoring.models import Share, price_of


@dataclass(frozen=True)
class TriedPair:
    """One pair with the model's replies, and which object the researcher prefers."""

    preferred: int | None
    states: list[State]
    replies: list[Reply]

    @property
    def shows_one(self) -> bool:
        """True where the model rates one object at a time."""
        return any(reply.rating is not None for reply in self.replies)

    @property
    def orders(self) -> list[tuple[int, str, list[Reply]]]:
        """Of each order, or of each rated object: its number from 1, what it comes to, and its replies."""
        by_first = [[reply for reply in self.replies if reply.first == first] for first in (0, 1)]
        return [(number, _words(replies), replies) for number, replies in enumerate(by_first, start=1) if replies]

    @property
    def choice(self) -> int | None:
        """Which object the model is for, 0 or 1, both orders weighing the same; None where it is for neither."""
        by_first = [[reply for reply in self.replies if reply.first == first] for first in (0, 1)]
        ratings = [[reply.rating for reply in replies if reply.rating is not None] for replies in by_first]
        shares = [[s for reply in replies if (s := reply.for_first_object) is not None] for replies in by_first]
        if all(ratings):
            gap = mean(ratings[0]) - mean(ratings[1])
        elif all(shares):
            gap = mean(map(mean, shares)) - 0.5
        else:
            return None
        return None if gap == 0 else int(gap < 0)

    @property
    def chosen_number(self) -> int | None:
        """The number of the chosen object, as the page shows it."""
        return None if self.choice is None else self.choice + 1


@dataclass(frozen=True)
class Tried:
    """A trial with all its pairs."""

    trial: JudgeTrial
    pairs: list[TriedPair]

    @property
    def replies(self) -> list[Reply]:
        return [reply for pair in self.pairs for reply in pair.replies]

    @property
    def done(self) -> int:
        """Pairs with replies."""
        return sum(bool(pair.replies) for pair in self.pairs)

    @property
    def unreadable(self) -> int:
        return sum(bool(reply.problem) for reply in self.replies)

    @property
    def mean_seconds(self) -> float | None:
        return mean(reply.seconds for reply in self.replies) if self.replies else None

    @property
    def mean_p_first(self) -> float | None:
        """Mean probability of a vote for what stands first, where it was told."""
        told = [reply.preference for reply in self.replies if reply.preference is not None]
        return mean(told) if told else None

    @property
    def first_shown(self) -> Share | None:
        """Votes for what stood first, where replies are votes."""
        votes = [reply.chosen == reply.first for reply in self.replies if reply.chosen is not None]
        return Share(sum(votes), len(votes)) if votes else None

    @property
    def agreement(self) -> Share | None:
        """Pairs on which the model is for what the researcher prefers, of those on which it is for one."""
        both = [
            pair.choice == pair.preferred
            for pair in self.pairs
            if pair.preferred is not None and pair.choice is not None
        ]
        return Share(sum(both), len(both)) if both else None

    @property
    def price(self) -> str:
        return price_of(self.trial.cost, self.trial.unpriced)


def tried_of(campaign: Campaign, trial: JudgeTrial) -> Tried:
    """Return what to show of a trial."""
    pairs: list[TrialPair] = trial.pairs
    return Tried(
        trial, [TriedPair(pair["preferred"], rows_of(campaign, pair), read(pair["replies"])) for pair in pairs]
    )


def _words(replies: list[Reply]) -> str:
    if told := [reply.preference for reply in replies if reply.preference is not None]:
        return f"p = {mean(told):.3f} for what stands first"
    if rated := [reply.rating for reply in replies if reply.rating is not None]:
        return f"rated {mean(rated):.3g}"
    votes = [reply.chosen for reply in replies if reply.chosen is not None]
    if not votes:
        return "no readable reply"
    return ", ".join(f"{votes.count(number)} for object {number + 1}" for number in (0, 1))
