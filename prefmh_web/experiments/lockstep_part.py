"""Parts of a run that are no campaigns: chains in step with one another, whose shared proposal learns between steps.

A campaign's chains go on each by itself, as judges answer; these are computed here, in one go. What a run has to know
of such a part is in the three functions below; records, replay and report are those of any part.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sampler
from prefmh_web.experiments.configs import Part


def takes(part: Part) -> bool:
    """Say whether a part is one of these: its method learns its proposals."""
    return part.method.parameters.get("proposal") == "learned"


def check(part: Part) -> None:
    """Check that a part can be run here.

    Raises:
        MissingExtra: PyTorch is not installed.
    """
    try:
        sampler.check_lockstep()
    except sampler.MissingExtra as error:
        name = part.method.name
        raise sampler.MissingExtra(f"{name} learns its proposals: {error}; or leave {name} out of --methods") from error


def write_record(part: Part, show: Callable[[int], None], path: Path) -> None:
    """Run a part from its beginning to its end, and write its record, whole or not at all.

    Args:
        show: called with how many steps its chains have taken together.

    Raises:
        MissingExtra: PyTorch is not installed.
        OSError: the record cannot be written.
    """
    [direction] = part.options.directions
    chains, steps = part.options.chains_of(direction), part.options.steps_of(part.method)
    path.parent.mkdir(parents=True, exist_ok=True)
    sampler.record_lockstep(
        path,
        seed=part.seed,
        chains=chains,
        steps=steps,
        vocabulary=part.vocabulary,
        convention="exact" if part.method.parameters["convention"] == "exact" else "paper",
        progress=lambda step: show(step * chains),
    )
