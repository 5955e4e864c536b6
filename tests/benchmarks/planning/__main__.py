"""Whether the planner's intervals hold, and how wide they are, over simulated campaigns that it has not seen.

    python -m tests.benchmarks.planning [--seed 20261124] [--campaigns 20] [--usual-chains] [--json FILE]

For each campaign: what was planned from the researcher's guesses, what was planned after a pilot of five people, and
what came when it was played through the real engine. A figure holds if it lies in its 90 % interval. The width is how
many times its lower end the upper one is. With `--usual-chains` the same campaigns have the chains that the form
suggests, more of which open for whoever would wait; without it, as few as were drawn. The default seed is that of the
reported figures; develop with others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tests.benchmarks.own_site import own_site, researcher
from tests.benchmarks.planning.population import CAMPAIGNS, SEED, SimulatedCampaign, population

# What the form suggests: `console/forms/campaign.py`, which is not to be imported before there are settings.
USUAL_CHAINS, USUAL_MOST_CHAINS = 4, 100

if TYPE_CHECKING:
    from tests.benchmarks.planning.campaigns import Compared


def line(found: Compared, figure: str) -> str:
    """Return a figure of a campaign as it is printed."""
    parts = [f"{getattr(found.true, figure):>9.1f}"]
    for is_after in (False, True):
        interval = found.interval(figure, is_after=is_after)
        held = " " if found.held(figure, is_after=is_after) else "!"
        parts.append(f"{interval.low:>8.1f} –{interval.high:>8.1f}{held}{interval.width:>6.2f}")
    return f"{found.number:>3} {found.space:<13}{figure:<6}" + "  ".join(parts)


def with_usual_chains(drawn: SimulatedCampaign) -> SimulatedCampaign:
    """Return a campaign with as many chains as the form suggests; all else is as it was drawn."""
    return replace(drawn, recipe=drawn.recipe | {"chains": USUAL_CHAINS, "most_chains": USUAL_MOST_CHAINS})


def summary(all_found: Sequence[Compared]) -> dict[str, dict[str, float]]:
    """Return for each figure, before and after the pilot, how many held, how many are narrow, and the middle width."""
    from tests.benchmarks.planning.campaigns import FIGURES

    told = {}
    for figure in FIGURES:
        for is_after in (False, True):
            widths = [each.interval(figure, is_after=is_after).width for each in all_found]
            told[f"{figure} {'after' if is_after else 'before'}"] = {
                "held": sum(each.held(figure, is_after=is_after) for each in all_found),
                "at most twice": sum(width <= 2 for width in widths),
                "middle width": float(np.median(widths)),
            }
    return told


def main() -> None:
    """Print a table, and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--campaigns", type=int, default=CAMPAIGNS)
    parser.add_argument("--usual-chains", action="store_true", help="as the form suggests them: nobody has to wait")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    found: list[Compared] = []
    with own_site():
        from django.test.utils import setup_test_environment

        from tests.benchmarks.planning.campaigns import FIGURES, compared

        setup_test_environment()
        owner = researcher()
        print(f"{'':<23}{'came':>9}  {'before the pilot':>19}{'width':>6}  {'after it':>19}{'width':>6}   ! missed")
        for drawn in population(options.seed, options.campaigns):
            simulated = with_usual_chains(drawn) if options.usual_chains else drawn
            found.append(compared(owner, simulated))
            print(*(line(found[-1], figure) for figure in FIGURES), sep="\n", flush=True)
    told = summary(found)
    for name, figures in told.items():
        print(f"{name:<14}" + ", ".join(f"{what} {value:g}" for what, value in figures.items()) + f" of {len(found)}")
    if options.json:
        rows = [asdict(each) for each in found]
        options.json.write_text(json.dumps({"seed": options.seed, "summary": told, "campaigns": rows}, indent=1))


if __name__ == "__main__":
    main()
