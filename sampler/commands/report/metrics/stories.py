"""Stories: the evaluator's ratings, mean ± SD over samples (L1186-1200)."""

from __future__ import annotations

import numpy as np

from sampler.commands.report.estimates import Estimate, over_samples
from sampler.commands.report.run_files import RunFiles

HIGHEST = 10
"""Of the ratings; a score is the rating divided by it."""


def measure(run: RunFiles) -> dict[tuple[str, str], Estimate]:
    """Return the table's cells but for the tournament's."""
    found = {}
    for method in run.options.chosen:
        states = [
            state for direction in run.options.directions for seed in run.options.seeds
            for state in run.kept(method, direction, seed)
        ]  # fmt: skip
        (direction,) = run.options.directions
        for asked in run.options.of_experiment.rated:
            rated = [(run.score(asked.name, state), run.prompt_of(direction, state[3])) for state in states]
            given = [(rating / HIGHEST, prompt) for rating, prompt in rated if rating is not None]
            values, prompts = [value for value, _ in given], [prompt for _, prompt in given]
            found[method.name, asked.name] = over_samples(values, prompts, np.random.default_rng(0))
    return found
