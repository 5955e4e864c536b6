"""A simulated campaign through everything: a plan, a pilot of five people, another plan, and the campaign itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from prefmh_web.campaigns.models import Campaign
from prefmh_web.console import planning
from prefmh_web.setup import pilot
from sampler import ForecastInterval, Pilot, StudyForecast
from tests.benchmarks.planning.played import Played, drafted, play
from tests.benchmarks.planning.population import PILOT_PEOPLE, SimulatedCampaign
from tests.support.stack import wait_until_idle

PILOT_VOTES: Final = 30
FIGURES: Final = ("votes", "hours", "money")


@dataclass(frozen=True)
class Compared:
    """What was planned before and after a pilot, and what came."""

    number: int
    space: str
    pilot_votes: int
    before: StudyForecast
    after: StudyForecast
    true: Played

    def interval(self, figure: str, *, is_after: bool) -> ForecastInterval:
        """Return what was planned of a figure."""
        found: ForecastInterval = getattr(self.after if is_after else self.before, figure)
        return found

    def held(self, figure: str, *, is_after: bool) -> bool:
        """True if what came lies in it; money is told to the penny."""
        interval = self.interval(figure, is_after=is_after)
        return round(interval.low, 2) <= round(getattr(self.true, figure), 2) <= round(interval.high, 2)


def compared(owner: Any, simulated: SimulatedCampaign) -> Compared:
    """Plan a campaign, pilot it, plan it again, and let it happen."""
    draft, told = drafted(owner, simulated), told_of(simulated)
    _, before = planning.plan_for(draft, told, None)
    seen = piloted(owner, draft, simulated)
    _, after = planning.plan_for(draft, told, seen)
    true = play(draft, simulated, simulated.people, simulated.seed)
    return Compared(simulated.number, simulated.space, seen.votes if seen else 0, before, after, true)


def told_of(simulated: SimulatedCampaign) -> planning.Told:
    """Return what the researcher says on the page of the plan."""
    return planning.Told(
        people=simulated.told.people,
        minutes_each=None,
        seconds_a_vote=simulated.told.seconds_a_vote,
        within_minutes=simulated.told.within_minutes,
        pay_hour=simulated.pay_hour,
    )


def piloted(owner: Any, draft: Campaign, simulated: SimulatedCampaign) -> Pilot | None:
    """Let five people take part in a pilot of a draft, and return what it has shown."""
    votes_each = min(PILOT_VOTES, simulated.votes_each or PILOT_VOTES)
    made = pilot.make(draft, owner, PILOT_PEOPLE, votes_each)
    wait_until_idle()
    # So that every run of this is the same; a real pilot's seed is drawn.
    Campaign.objects.filter(pk=made.pk).update(recipe=made.recipe | {"seed": simulated.seed})
    play(Campaign.objects.get(pk=made.pk), simulated, simulated.pilot, simulated.seed + 1)
    return planning.pilot_of(draft)
