"""The tournament's result: Bradley-Terry strengths of the methods for each property, with intervals over prompts.

Natural log-odds with mean 0, fitted together with the voters' lean to what is shown first. Votes that have no finite
fit are told as such, never smoothed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from sampler.commands.report.estimates import Estimate
from sampler.commands.report.run_files import RunFiles
from sampler.diagnostics.bradley_terry import NoFit, Scores, bradley_terry_intervals
from sampler.diagnostics.choices import Choices, Vote
from sampler.experiments import outputs
from sampler.experiments.outputs import OutputError
from sampler.record.tables import Row

RESAMPLES = 1_000
PREFIX = "bt_"
"""What the names of Bradley-Terry columns begin with."""


@dataclass(frozen=True)
class Strengths:
    """Of the methods, for one property.

    Args:
        scores: None where the votes have no finite fit.
        reason: why they have none; empty where they have one.
        votes: how many there are.
    """

    scores: Scores | None
    reason: str
    votes: int


def strengths(votes: Choices, rng: np.random.Generator, resamples: int = RESAMPLES) -> Strengths:
    """Fit the strengths of the methods that met.

    Args:
        votes: between methods, left being the one that was shown first; a cluster is a prompt.
    """
    try:
        return Strengths(bradley_terry_intervals(votes, rng, resamples), "", votes.votes)
    except NoFit as reason:
        return Strengths(None, str(reason), votes.votes)


def tournament_choices(run: RunFiles) -> dict[str, Choices]:
    """Return the votes of each property.

    A cluster is a prompt, whatever the seed; where all chains have the same prompt or none, it is a chain of a seed.

    Raises:
        OutputError: a vote belongs to no pair, or stands there twice.
    """
    names = [asked.name for asked in run.options.of_experiment.compared]
    cast = cast_votes(run, names, lambda pair: _cluster(run, pair))
    return {name: Choices.of(votes) for name, votes in cast.items()}


def cast_votes(run: RunFiles, properties: Iterable[str], cluster: Callable[[Row], Hashable]) -> dict[str, list[Vote]]:
    """Return the votes of each property, left being what was shown first.

    Args:
        cluster: of a row of pairs.csv.

    Raises:
        OutputError: a vote belongs to no pair, or stands there twice.
    """
    pairs = {row["pair"]: row for row in run.rows(outputs.PAIRS)}
    found: dict[str, list[Vote]] = {name: [] for name in properties}
    seen = set()
    for row in run.rows(outputs.VOTES):
        key = tuple(row[column] for column in outputs.VOTE_KEY)
        if key in seen:
            raise OutputError(f"{outputs.VOTES.file} has the vote {key} twice")
        seen.add(key)
        if row["pair"] not in pairs or row["property"] not in found:
            raise OutputError(f"{outputs.VOTES.file} has a vote on {key[:2]}, which {outputs.PAIRS.file} lacks")
        pair = pairs[row["pair"]]
        one_first, chose_one = row["one_first"] == "1", row["chose_one"] == "1"
        first, second = (pair["one"], pair["other"]) if one_first else (pair["other"], pair["one"])
        found[row["property"]].append((first, second, chose_one == one_first, cluster(pair)))
    return found


def strength_cells(run: RunFiles) -> dict[tuple[str, str], Estimate]:
    """Return the table's cells of the tournament, by method and property, each property behind `PREFIX`.

    Raises:
        OutputError: as `tournament_choices`.
    """
    found = {}
    for name, votes in tournament_choices(run).items():
        fitted = strengths(votes, np.random.default_rng(0))
        for method in run.options.methods:
            if fitted.scores is None or method not in fitted.scores.items:
                found[method, PREFIX + name] = Estimate(None, note=fitted.reason or "no votes")
                continue
            place = fitted.scores.items.index(method)
            ends = (float(end[place]) for end in (fitted.scores.low, fitted.scores.high))
            low, high = (None if np.isnan(end) else end for end in ends)
            found[method, PREFIX + name] = Estimate(float(fitted.scores.estimate[place]), None, low, high, fitted.votes)
    return found


def _cluster(run: RunFiles, pair: Row) -> Hashable:
    prompts = {direction.name: direction.inputs for direction in run.options.directions}
    if prompts.get(pair["direction"], 1) > 1:
        return pair["direction"], pair["prompt"]
    return pair["seed"], pair["one_chain"]
