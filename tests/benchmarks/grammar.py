"""Suffix proposals of the story grammar against the random numbers they cannot do without, in one run.

    python -m tests.benchmarks.grammar [--proposals 20000]

The floor of a proposal is its draws: one for the cut and one for each token written anew, each a plain `rng.random()`
from a generator that exists already. Timed are, for both laws of the cut,

    one by one    `propose`, a chain at a time
    in batches    `propose_batch`, 64 chains at a time

with the text of each proposal written out. Proposals at a cut beyond the end, which cost next to nothing, are counted
in "all/s" only. Making the generator of a step (`stream`) is timed apart: it costs a chain more than the floor does.
Seconds are this process's own, so that a busy machine disturbs the ratio less.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from sampler import Purpose, stream
from sampler.kernels.suffix import CutLaw, Suffix
from sampler.spaces.texts.space import TextsRecipe, Writing, WrittenTexts

CHAINS = 64
ROUNDS = 3


class Counting:
    """A generator that counts its draws."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self.draws = rng, 0

    def random(self) -> float:
        self.draws += 1
        return self._rng.random()


def starts(texts: WrittenTexts, count: int) -> list[Writing]:
    """Return fresh texts over all scenarios."""
    return [texts.start(stream(1, chain, 0, Purpose.START), chain) for chain in range(count)]


def draws_needed(kernel: Suffix, states: list[Writing]) -> list[int]:
    """Return how many random numbers each proposal takes; 1 is a cut beyond the end."""
    counted = [Counting(stream(2, chain, 1, Purpose.PROPOSAL)) for chain in range(len(states))]
    for rng, state in zip(counted, states, strict=True):
        kernel.propose(rng, state)
    return [rng.draws for rng in counted]


def best(run, states: list[Writing]) -> float:
    """Return the seconds that `run` takes on fresh generators; the best of three, always with the same draws."""
    seconds = math.inf
    for _ in range(ROUNDS):
        rngs = [stream(2, chain, 1, Purpose.PROPOSAL) for chain in range(len(states))]
        begun = time.process_time()
        run(rngs, states)
        seconds = min(seconds, time.process_time() - begun)
    return seconds


def one_by_one(kernel: Suffix):
    def run(rngs, states):
        for rng, state in zip(rngs, states, strict=True):
            kernel.propose(rng, state)

    return run


def in_batches(kernel: Suffix):
    def run(rngs, states):
        for first in range(0, len(states), CHAINS):
            kernel.propose_batch(rngs[first : first + CHAINS], states[first : first + CHAINS])

    return run


def plain_draws(counts: list[int]):
    def run(rngs, _states):
        for rng, count in zip(rngs, counts, strict=True):
            for _ in range(count):
                rng.random()

    return run


def measure(texts: WrittenTexts, cut: CutLaw, count: int) -> None:
    kernel, pool = Suffix(texts, cut), starts(texts, count)
    needed = draws_needed(kernel, pool)
    # A generator belongs to a row, so that leaving rows out changes no draw of the others.
    moving = [row for row, draws in enumerate(needed) if draws > 1]
    states, draws = [pool[row] for row in moving], draws_needed(kernel, [pool[row] for row in moving])
    floor = best(plain_draws(draws), states)
    for name, make in (("one by one", one_by_one), ("in batches", in_batches)):
        seconds, everything = best(make(kernel), states), best(make(kernel), pool)
        print(
            f"{cut:<8}{name:<12}{len(states) / seconds:>12,.0f}{seconds / floor:>10.1f}{count / everything:>12,.0f}"
            f"{len(moving) / count:>10.0%}{np.mean(draws):>10.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--proposals", type=int, default=20_000)
    options = parser.parse_args()
    texts = TextsRecipe().build()
    print(f"{'cut':<8}{'':<12}{'moves/s':>12}{'/ floor':>10}{'all/s':>12}{'moving':>10}{'draws':>10}")
    for cut in ("limit", "length"):
        measure(texts, cut, options.proposals)
    begun = time.process_time()
    for step in range(options.proposals):
        stream(3, 0, step, Purpose.PROPOSAL)
    print(f"making the generator of a step: {(time.process_time() - begun) / options.proposals * 1e6:.1f} µs")


if __name__ == "__main__":
    main()
