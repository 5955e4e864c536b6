"""Steps per second of the vectorised simulators against loops over the same chain, in one run.

    python -m tests.benchmarks.simulator [--chains 2000] [--budget 4]

The chain is the N-vote rule on the paper's synthetic space of 241 states. Loops, each given what makes it fast:

    plain             one Python step after another, NumPy's generator, look-ups by searchsorted
    numba, votes      the same step compiled, every vote drawn
    numba, tables     compiled, votes averaged out, one uniform and two look-ups a step (the alias tables of `Walker`)

Each figure is the best of several runs of about a second in all; ratios compare figures of this run only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numba
import numpy as np

from sampler.exact import preferences, target, transition_matrix
from sampler.rules import NVote
from sampler.vectorised import MatrixTable, VoteWalker, Walker
from sampler.vectorised.alias import alias_tables
from tests.support.synthetic import LOG_P0, PROPOSALS, SCORE, STATES

REPEATS = 5


def plain_loop(rng, state, steps, cumulative, r0, preference, budget):
    """Return visit counts of one chain, one Python step after another."""
    visits = np.zeros(STATES, dtype=np.int64)
    for _ in range(steps):
        proposal = np.searchsorted(cumulative[state], rng.random(), side="right")
        votes = np.count_nonzero(rng.random(budget) < preference[state, proposal])
        if rng.random() < r0[state, proposal] * votes / (budget - votes + 1):
            state = proposal
        visits[state] += 1
    return visits


@numba.njit(cache=False)
def numba_votes(rng, state, steps, cumulative, r0, preference, budget):
    """Return visit counts of one chain, every vote drawn."""
    visits = np.zeros(len(r0), dtype=np.int64)
    for _ in range(steps):
        proposal = np.searchsorted(cumulative[state], rng.random(), side="right")
        votes = 0
        for _ in range(budget):
            votes += rng.random() < preference[state, proposal]
        if rng.random() < r0[state, proposal] * votes / (budget - votes + 1):
            state = proposal
        visits[state] += 1
    return visits


@numba.njit(cache=False)
def numba_tables(rng, state, steps, cut, other):
    """Return visit counts of one chain, votes averaged out."""
    states = len(cut)
    visits = np.zeros(states, dtype=np.int64)
    for _ in range(steps):
        place = rng.random() * states
        column = int(place)
        state = column if place < cut[state, column] else other[state, column]
        visits[state] += 1
    return visits


def speed(run: Callable[[int], np.ndarray], steps: int, chains: int = 1) -> float:
    """Return steps per second, the best of a few runs; checks that every step was counted."""
    run(min(steps, 100))
    best = np.inf
    for _ in range(REPEATS):
        begun = time.perf_counter()
        visits = run(steps)
        best = min(best, time.perf_counter() - begun)
        if visits.sum() != steps * chains:
            raise AssertionError("a run lost steps")
    return steps * chains / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chains", type=int, default=2000)
    parser.add_argument("--budget", type=int, default=4)
    options = parser.parse_args()
    rule, scores, rng = NVote((options.budget,)), SCORE[None, :], np.random.default_rng(1)
    table = MatrixTable(LOG_P0, PROPOSALS)
    transitions = transition_matrix(LOG_P0, PROPOSALS, scores, rule)
    law = target(LOG_P0, scores)
    cut, other = alias_tables(transitions)
    # The proposal is symmetric, so r0 = p0(x') / p0(x).
    step = (
        np.cumsum(PROPOSALS, axis=1),
        np.exp(LOG_P0[None, :] - LOG_P0[:, None]),
        np.ascontiguousarray(preferences(scores)[..., 0]),
        options.budget,
    )
    walker, voter = Walker(transitions), VoteWalker(table, rule, scores)
    many = np.zeros(options.chains, dtype=np.int64)
    loops = {
        "plain": speed(lambda steps: plain_loop(rng, 0, steps, *step), 20_000),
        "numba, votes": speed(lambda steps: numba_votes(rng, 0, steps, *step), 2_000_000),
        "numba, tables": speed(lambda steps: numba_tables(rng, 0, steps, cut, other), 4_000_000),
    }
    ours = {
        "Walker, one chain of 150,000 steps": speed(lambda steps: walker.run(rng, 0, steps).visits, 150_000),
        "Walker, the same with every=500": speed(lambda s: walker.run(rng, 0, s, every=500).visits[-1], 150_000),
        "Walker, one chain of 4,000,000 steps": speed(lambda steps: walker.run(rng, 0, steps).visits, 4_000_000),
        f"Walker, {options.chains:,} chains": speed(
            lambda steps: walker.run(rng, many, steps).visits, 4_000_000 // options.chains, options.chains
        ),
        f"VoteWalker, {options.chains:,} chains": speed(
            lambda steps: voter.run(rng, many, steps).visits, 1_000_000 // options.chains, options.chains
        ),
    }
    print(f"{STATES} states, N = {options.budget}; total variation of 4,000,000 steps to the target:", end=" ")
    print(f"{np.abs(walker.run(rng, 0, 4_000_000).visits[-1] / 4e6 - law).sum() / 2:.4f}\n")
    print(f"{'':<40}{'M steps/s':>12}" + "".join(f"{'/ ' + name:>18}" for name in loops))
    for name, rate in (loops | ours).items():
        ratios = "".join(f"{rate / other_rate:>18.2f}" for other_rate in loops.values())
        print(f"{name:<40}{rate / 1e6:>12.3f}{ratios}")


if __name__ == "__main__":
    main()
