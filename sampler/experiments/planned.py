"""What a run will ask for at most, counted before it starts: no vote saved by stopping early, no proposal void.

These are the sums of `--dry-run`. Each is a formula of the options; at the paper's size they are 62,500, 9,000,
4,000,000 and 1,132,544 proposals.
"""

from __future__ import annotations

from collections.abc import Callable
from math import comb

from sampler.experiments.options import ExperimentOptions
from sampler.experiments.settings import ExperimentMethod

Sums = dict[str, dict[str, int]]

_BOTH_ORDERS = 2


def planned_sums(options: ExperimentOptions) -> Sums:
    """Return proposals, judge requests and evaluation requests, each for "all" and for every method by its name.

    A tournament's request counts for the method that is shown first; in both orders, each has as many. So the numbers
    of the methods add up to that of all.
    """
    return {
        "proposals": _by_method(options, lambda method: proposals(options, method)),
        "judge_requests": _by_method(options, lambda method: judge_requests(options, method)),
        "evaluation_requests": _by_method(
            options, lambda method: rating_requests(options, method) + tournament_requests(options, method)
        ),
    }


def proposals(options: ExperimentOptions, method: ExperimentMethod) -> int:
    """Return chains x steps over all directions and seeds."""
    return _chains(options) * options.steps_of(method)


def judge_requests(options: ExperimentOptions, method: ExperimentMethod) -> int:
    """Return what deciding the steps takes, starts that are rated included."""
    asked = len(method.judges) * _asked_of_each(options, method)
    return proposals(options, method) * asked + method.rates_states * _chains(options) * asked


def rating_requests(options: ExperimentOptions, method: ExperimentMethod) -> int:
    """Return what the evaluation asks about the kept states one by one."""
    return kept_states(options) * len(options.of_experiment.rated)


def tournament_requests(options: ExperimentOptions, method: ExperimentMethod) -> int:
    """Return the tournament's votes in which this method is shown first: once in each match and property."""
    others = len(options.methods) - 1
    return others * len(options.seeds) * _prompts(options) * options.matches * len(options.of_experiment.compared)


def tournament_votes(options: ExperimentOptions) -> int:
    """Return the tournament's votes in all: pairs of methods x prompts x matches x properties x 2 orders."""
    pairs = comb(len(options.methods), 2) * len(options.seeds) * _prompts(options)
    return pairs * options.matches * len(options.of_experiment.compared) * _BOTH_ORDERS


def kept_states(options: ExperimentOptions) -> int:
    """Return how many states of one method are evaluated."""
    return _chains(options) * options.keep


def scorer_passes(options: ExperimentOptions) -> dict[str, int]:
    """Return how many objects each scorer gets, by role; they are no requests. Quality estimates each proposal."""
    return {role: planned_scores(options, role)["all"] for role in options.of_experiment.scorers}


def planned_scores(options: ExperimentOptions, role: str) -> dict[str, int]:
    """Return how many objects the scorer of a role gets, for "all" and for every method by its name."""

    def count(method: ExperimentMethod) -> int:
        return _chains(options) * (options.steps_of(method) + 1) if role == "quality" else kept_states(options)

    return _by_method(options, count)


def _asked_of_each(options: ExperimentOptions, method: ExperimentMethod) -> int:
    if method.rule != "n-vote" or options.votes == "sampled":
        return method.asks
    # The model's probabilities are asked for once in each order in which a judge is shown the two.
    orders = 1 if method.parameters["order"] == "two-judge" else _BOTH_ORDERS
    return min(method.asks, orders)


def _by_method(options: ExperimentOptions, count: Callable[[ExperimentMethod], int]) -> dict[str, int]:
    counts = {method.name: count(method) for method in options.chosen}
    return {"all": sum(counts.values()), **counts}


def _chains(options: ExperimentOptions) -> int:
    return len(options.seeds) * sum(options.chains_of(direction) for direction in options.directions)


def _prompts(options: ExperimentOptions) -> int:
    """Count the prompts that have a chain, over all directions."""
    return sum(min(direction.inputs, options.chains_of(direction)) for direction in options.directions)
