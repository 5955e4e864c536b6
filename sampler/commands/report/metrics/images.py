"""Images: the share of states in which all three objects are detected, and the mean aesthetic score (L670, L1440-1450).

States of one chain follow each other, so only runs of several seeds have an interval; independent draws have one.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from sampler.commands.report.estimates import Estimate, over_samples
from sampler.commands.report.run_files import RunFiles, StateKey
from sampler.experiments.settings import ExperimentMethod


def measure(run: RunFiles) -> dict[tuple[str, str], Estimate]:
    """Return the table's cells."""
    found = {}
    (direction,) = run.options.directions
    for method in run.options.chosen:
        states = [state for seed in run.options.seeds for state in run.kept(method, direction, seed)]
        middle = run.options.steps_of(method) / 2
        later = [state for state in states if state[4] > middle]
        found[method.name, "all_three"] = _share(run, method, states)
        found[method.name, "all_three_second_half"] = _share(run, method, later)
        found[method.name, "aesthetic"] = _mean(method, states, [run.score("aesthetic", state) for state in states])
    return found


def all_detected(run: RunFiles, state: StateKey) -> float | None:
    """Return 1 where every object is in the picture, 0 where one is not, None where one was not asked about."""
    answers = [run.score(asked.name, state) for asked in run.options.of_experiment.rated]
    return None if None in answers else float(all(answers))


def _share(run: RunFiles, method: ExperimentMethod, states: Sequence[StateKey]) -> Estimate:
    return _mean(method, states, [all_detected(run, state) for state in states])


def _mean(method: ExperimentMethod, states: Sequence[StateKey], values: Sequence[float | None]) -> Estimate:
    given = [(value, _cluster(method, state)) for value, state in zip(values, states, strict=True) if value is not None]
    numbers, clusters = [value for value, _ in given], [cluster for _, cluster in given]
    return over_samples(numbers, clusters, np.random.default_rng(0), with_spread=False)


def _cluster(method: ExperimentMethod, state: StateKey) -> Hashable:
    _, _, seed, chain, step = state
    return (seed, chain, step) if method.draws_only else (seed, chain)
