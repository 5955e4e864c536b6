"""The evaluation tournament: which kept states meet, settled before any vote.

For each prompt and each pair of methods there are M matches: the k-th of M evenly spaced kept states of one method
against the k-th of the other, each property in both orders (section 3.3 of the notes; the paper states no more than
"head-to-head", L1189-1192). A voter never learns which method wrote what.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from sampler.experiments.kept import evenly_spaced, kept_steps
from sampler.experiments.options import ExperimentOptions
from sampler.experiments.settings import Direction, ExperimentMethod

_TOURNAMENT = 18
"""Sets the tournament's random numbers apart from others of the same seed."""


@dataclass(frozen=True)
class KeptState:
    """A state of a record: which chain, after which step."""

    chain: int
    step: int


@dataclass(frozen=True)
class TournamentMatch:
    """Two states that meet: of two methods, one prompt, one seed.

    Args:
        direction: empty where the experiment has one only.
        seed: of both runs.
        prompt: its number in the direction.
        number: k, from 0.
        one, other: the methods, in the table's order.
        one_state, other_state: where their states stand in their records.
    """

    direction: str
    seed: int
    prompt: int
    number: int
    one: str
    other: str
    one_state: KeptState
    other_state: KeptState

    @property
    def key(self) -> str:
        """What names the match, in pairs.csv and in votes.csv; the same in every run of the same options."""
        where = f"{self.direction}:" if self.direction else ""
        return f"{where}s{self.seed}:p{self.prompt}:{self.one}:{self.other}:k{self.number}"


@dataclass(frozen=True)
class TournamentSlot:
    """One thing to vote on: a match, about one property, with one of the two shown first."""

    match: TournamentMatch
    about: str
    one_first: bool

    @property
    def key(self) -> tuple[str, str, bool]:
        """The match's key, the property, whether `one` stands first: a vote belongs to the slot with its key."""
        return self.match.key, self.about, self.one_first


def tournament_matches(options: ExperimentOptions) -> Iterator[TournamentMatch]:
    """Yield every match once: by direction, seed, prompt, pair of methods and number."""
    for direction in options.directions:
        for seed in options.seeds:
            for prompt in range(min(direction.inputs, options.chains_of(direction))):
                for one, other in combinations(options.chosen, 2):
                    ends = (_met(options, direction, prompt, method) for method in (one, other))
                    for number, (first, second) in enumerate(zip(*ends, strict=True)):
                        yield TournamentMatch(direction.name, seed, prompt, number, one.name, other.name, first, second)


def tournament_schedule(options: ExperimentOptions) -> list[TournamentSlot]:
    """Return every slot once, in the order in which they are asked, a function of the options alone.

    The order is drawn from the first seed, so that a tournament that ends early has met every method alike. The two
    orders of a match follow each other: what was asked is balanced at all times but for one vote.
    """
    properties = [asked.name for asked in options.of_experiment.compared]
    pairs = [(match, name) for match in tournament_matches(options) for name in properties]
    seeded = np.random.SeedSequence(options.seeds[0], spawn_key=(_TOURNAMENT,))
    drawn = np.random.Generator(np.random.PCG64(seeded))
    # `random` is what NumPy keeps stable; ties are broken by place.
    order = np.argsort(drawn.random(len(pairs)), kind="stable").tolist()
    chosen = [pairs[place] for place in order]
    return [TournamentSlot(match, about, one_first) for match, about in chosen for one_first in (True, False)]


def _met(options: ExperimentOptions, direction: Direction, prompt: int, method: ExperimentMethod) -> list[KeptState]:
    """Return the M kept states of a method that meet others under a prompt: its chains', one after the other."""
    chains = range(prompt, options.chains_of(direction), direction.inputs)
    kept = [KeptState(chain, step) for chain in chains for step in kept_steps(options, method)]
    return [kept[place] for place in evenly_spaced(len(kept), options.matches)]
