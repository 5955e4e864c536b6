"""How narrow an interval can be: that of a planner who knows a campaign's crowd and leans, and not who of it will come.

    python -m tests.benchmarks.planning.floor [--seed 20261124] [--campaigns 20] [--usual-chains] [--json FILE]

People are drawn anew from those of the campaign and of its pilot, each with their true pace, breaks, patience and early
leave; leans are those that the votes of the campaign itself have shown. No pilot can tell as much. An interval that is
narrower than this one would hold less often than it says.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sampler.planning.paces import Guest
from tests.benchmarks.own_site import own_site, researcher
from tests.benchmarks.planning.__main__ import with_usual_chains
from tests.benchmarks.planning.population import CAMPAIGNS, SEED, Person, SimulatedCampaign, population

PLAN_SEED = 1


@dataclass(frozen=True)
class KnownCrowd:
    """The true people of a campaign, in the place of what a planner believes of them.

    Args:
        people: those of the campaign and of its pilot.
        votes_each: that somebody gives who stays.
        seconds_a_vote: of somebody in the middle.
    """

    people: Sequence[Person]
    votes_each: float
    seconds_a_vote: float
    sigma: float

    def draw(self, rng: np.random.Generator) -> KnownCrowd:
        """Return the crowd: there is no other one that it might be."""
        return self

    def guests(self, rng: np.random.Generator, people: int, within_s: float, most_s: float) -> list[Guest]:
        """Draw who comes, and when; `most_s` is not needed."""
        arrivals = np.sort(rng.random(people)) * within_s
        return [self._guest(rng, float(at), self.people[int(rng.integers(len(self.people)))]) for at in arrivals]

    def _guest(self, rng: np.random.Generator, arrives_s: float, who: Person) -> Guest:
        return Guest(
            arrives_s=arrives_s,
            reads_s=who.reads_s,
            middle=math.log(who.median_s),
            drift=who.drift,
            stays=None if who.leaves_after is None else min(1.0, who.leaves_after / self.votes_each),
            patience_s=who.patience_s,
            sigma=who.spread,
            breaks=who.break_share,
            rng=rng,
        )


def crowd_of(simulated: SimulatedCampaign) -> KnownCrowd:
    """Return what there is to know of a campaign's people."""
    people = (*simulated.people, *simulated.pilot)
    seconds = float(np.median([who.median_s for who in people]))
    minutes = simulated.minutes_each or math.inf
    votes_each = simulated.votes_each or 60 * minutes / seconds
    return KnownCrowd(people, votes_each, seconds, float(np.mean([who.spread for who in people])))


def widths(owner: object, simulated: SimulatedCampaign) -> dict[str, float]:
    """Return for each figure how many times the lower end of such an interval the upper one is."""
    from prefmh_web.console import planning
    from sampler import LeanBeliefs, Pilot, forecast_study
    from tests.benchmarks.planning.campaigns import FIGURES, told_of
    from tests.benchmarks.planning.played import drafted, play

    draft = drafted(owner, simulated)
    study = planning.study_of(draft, told_of(simulated))
    play(draft, simulated, simulated.people, simulated.seed)
    shown = Pilot(tuple(planning.people_in(draft)), tuple(planning.steps_in(draft)))
    leans = LeanBeliefs(planning.ratios_in([draft]), shown)
    found = forecast_study(np.random.default_rng(PLAN_SEED), study, crowd_of(simulated), leans)
    return {figure: getattr(found, figure).width for figure in FIGURES}


def main() -> None:
    """Print a line for each campaign, and how many are at most twice as high as low."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS)
    parser.add_argument("--usual-chains", action="store_true", help="as the form suggests them: nobody has to wait")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    found: list[dict[str, float]] = []
    with own_site():
        from django.test.utils import setup_test_environment

        setup_test_environment()
        owner = researcher()
        for drawn in population(options.seed, options.campaigns):
            simulated = with_usual_chains(drawn) if options.usual_chains else drawn
            found.append(widths(owner, simulated))
            print(f"{drawn.number:>3} {drawn.space:<13}", {name: round(width, 2) for name, width in found[-1].items()})
    narrow = {figure: sum(each[figure] <= 2 for each in found) for figure in found[0]}
    print("at most twice:", narrow, "of", len(found))
    if options.json:
        options.json.write_text(json.dumps({"seed": options.seed, "at most twice": narrow, "widths": found}, indent=1))


if __name__ == "__main__":
    main()
