"""How long a whole run takes at a measured rate of requests, and what other options would save."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import sampler
from prefmh_web.experiments.progress import duration


def requests_in_all(options: sampler.ExperimentOptions) -> int:
    """Return how many requests are planned for a run: its writer's, its judges' and its evaluation's."""
    sums = sampler.planned_sums(options)
    written = sums["proposals"]["all"] if is_written(options) else 0
    return written + sums["judge_requests"]["all"] + sums["evaluation_requests"]["all"]


def is_written(options: sampler.ExperimentOptions) -> bool:
    """Say whether a proposal takes a request: texts are written by a model; noise and molecules are drawn here."""
    return options.of_experiment.objects == "texts"


def saved_by_probabilities(options: sampler.ExperimentOptions) -> int:
    """Return how many requests votes drawn from log-probabilities would save at most; 0 where they are."""
    return requests_in_all(options) - requests_in_all(replace(options, votes="log-probabilities"))


def saved_by_half_the_votes(options: sampler.ExperimentOptions) -> int:
    """Return how many requests half as many votes a judge, rounded down, would save; at least one is left."""
    if options.votes != "sampled":
        return 0
    sums = sampler.planned_sums(options)["judge_requests"]
    voted = [method for method in options.chosen if method.rule == "n-vote"]
    # What a method asks is a multiple of its N.
    return sum(sums[method.name] // method.asks * (method.asks - fewer(method.asks)) for method in voted)


def fewer(votes: int) -> int:
    """Return half of N, rounded down, and 1 at least."""
    return max(1, votes // 2)


def lines(options: sampler.ExperimentOptions, rate: float) -> Iterator[str]:
    """Yield what to expect of a run; nothing where no model is asked.

    Args:
        rate: planned requests that are done a second, above 0. What a text takes beside the request that writes it,
            and what early stopping saves, is in the measured rate.
    """
    every = requests_in_all(options)
    if not every:
        return
    yield (
        f"at {rate:,.1f} planned requests a second, as measured, the whole run's {every:,} take about "
        f"{duration(every / rate)}"
    )
    if saved := saved_by_probabilities(options):
        yield f"  --votes log-probabilities: {_less(saved, rate)}"
    if saved := saved_by_half_the_votes(options):
        asked = sorted({method.asks for method in options.chosen if method.rule == "n-vote" and method.asks > 1})
        halves = ", ".join(f"{fewer(votes)} in place of {votes}" for votes in asked)
        yield f"  half the votes of each judge (N = {halves}): {_less(saved, rate)}"


def _less(saved: int, rate: float) -> str:
    return f"{saved:,} requests and about {duration(saved / rate)} less"
