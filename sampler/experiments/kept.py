"""Which states of a chain are evaluated: the last ones, or evenly spaced ones, after the burn-in."""

from __future__ import annotations

from sampler.experiments.options import ExperimentOptions
from sampler.experiments.settings import ExperimentMethod

SHOWN_EVERY = 300
"""Steps between two rows of the images' full figure; the main text's has steps 300, 1200, 1800 and 2700 of them."""
MOST_SHOWN = 10


def kept_steps(options: ExperimentOptions, method: ExperimentMethod) -> tuple[int, ...]:
    """Return the steps whose states are kept, ascending, shape (keep,); the start is step 0 and never kept.

    Stories 251 ... 300, translation 38, 44, ..., 128 (L1183, L1686), images all, molecules the last one. Of a method
    that only draws, all draws. Where evenly spaced steps do not divide the states after the burn-in, each is rounded
    down; the last step is always kept.
    """
    steps, keep = options.steps_of(method), options.keep
    if method.draws_only:
        return tuple(range(1, keep + 1))
    if options.of_experiment.spacing == "last":
        return tuple(range(steps - keep + 1, steps + 1))
    room = steps - options.burn_in
    return tuple(options.burn_in + room * k // keep for k in range(1, keep + 1))


def evenly_spaced(many: int, few: int) -> tuple[int, ...]:
    """Return `few` places among 0 ... many - 1, ascending and evenly spaced, the last one always among them.

    Raises:
        ValueError: there are not so many places.
    """
    if not 0 <= few <= many:
        raise ValueError(f"few must be between 0 and {many}, not {few}")
    return tuple(many * k // few - 1 for k in range(1, few + 1))


def shown_steps(options: ExperimentOptions) -> tuple[int, ...]:
    """Return the steps whose pictures figures show: every 300th, and of shorter chains ten evenly spaced ones at most.

    A method that only draws shows its draws of the same numbers, as far as it has them.
    """
    if options.steps >= SHOWN_EVERY:
        return tuple(range(SHOWN_EVERY, options.steps + 1, SHOWN_EVERY))
    return tuple(place + 1 for place in evenly_spaced(options.steps, min(options.steps, MOST_SHOWN)))
