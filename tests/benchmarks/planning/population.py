"""Campaigns that might be: what is compared, how it is set up, who comes, how fast they are and what they prefer.

All of it is drawn here from one seed, and nothing here knows how a plan is made: this file was committed before the
planner. What a researcher would say before the start (`told`) is the truth with the error that such guesses have.

A person answers after a log-normal time around a median of their own, which grows or shrinks as they go on. Some leave
before their part is complete, some take breaks, and nobody waits for ever. They prefer by a score of the object, which
all share in part, by one of their own, with a lean to the left, and now and then by a coin.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

SEED: Final = 20261124
"""Of the figures that are reported. Whoever works on the planner takes another one."""
CAMPAIGNS: Final = 20
PILOT_PEOPLE: Final = 5
SPACES: Final = ("texts", "molecules", "patterns", "listed texts", "synthetic")
BUDGETS: Final = (1, 1, 2, 3, 3, 4, 5, 7, 9)


@dataclass(frozen=True)
class Person:
    """Somebody who takes part; times in seconds."""

    arrives_s: float
    """After the start of the campaign."""
    reads_s: float
    """From joining to the first look at a pair."""
    median_s: float
    """The middle time of their first answers."""
    spread: float
    """The standard deviation of the logarithm of a single answer's time."""
    drift: float
    """By how much the logarithm of their median has changed after a hundred answers."""
    leaves_after: int | None
    """After so many votes they close the page; None for somebody who stays."""
    break_share: float
    """Before which share of their answers they are away."""
    break_s: float
    """For how long, in the middle."""
    patience_s: float
    """Who has waited for so long at a stretch goes."""
    own_taste: float
    """The standard deviation of what only they like or dislike in an object, in nats."""
    lean: float
    """To the left, in nats."""
    lapses: float
    """Which share of their answers is a coin flip."""
    seed: int


@dataclass(frozen=True)
class Told:
    """What the researcher says before the start."""

    people: int
    minutes_each: float
    """Before pairs, that they ask for or expect."""
    seconds_a_vote: float
    within_minutes: float
    """People come within so many minutes after the start."""


@dataclass(frozen=True)
class SimulatedCampaign:
    """A campaign and the truth behind it."""

    number: int
    seed: int
    space: str
    recipe: dict[str, Any]
    file: str | None
    """The list that is uploaded."""
    strength: float
    """The standard deviation of the shared score over objects, in nats."""
    votes_each: int | None
    minutes_each: int | None
    """Active ones, after which a part is complete; this or `votes_each` is given."""
    pay_hour: float | None
    pay_place: float | None
    """For a part that is complete; this or `pay_hour` is given."""
    people: tuple[Person, ...]
    pilot: tuple[Person, ...]
    told: Told

    def score(self, content: str) -> float:
        """Return what all people see in an object, in nats: a sum over its words or letters, scaled to `strength`."""
        return self.strength * _liking(content, self.seed)

    def own_score(self, person: Person, content: str) -> float:
        """Return what one person sees in it, in nats."""
        return self.score(content) + person.own_taste * _liking(content, person.seed)


def population(seed: int = SEED, campaigns: int = CAMPAIGNS) -> list[SimulatedCampaign]:
    """Return so many campaigns; the first ones are the same however many there are."""
    return [_campaign(seed, number) for number in range(campaigns)]


def _campaign(seed: int, number: int) -> SimulatedCampaign:
    rng = np.random.default_rng([seed, number])
    space = SPACES[number % len(SPACES)]
    people = round(_log_uniform(rng, 3, 40))
    votes_each = round(float(np.clip(_log_uniform(rng, 120, 1500) / people, 8, 120)))
    crowd = _Crowd.drawn(rng, space)
    is_by_votes = bool(rng.random() < 0.5)
    minutes_each = max(1, math.ceil(votes_each * crowd.median_s / 60))
    within_minutes = 0.0 if rng.random() < 0.35 else round(_log_uniform(rng, 5, 90))
    is_paid_by_hour = bool(rng.random() < 0.6)
    pay = round(float(rng.uniform(8, 18)), 2)
    minutes_paid = votes_each * crowd.median_s / 60
    guess_s = _guess(rng, crowd.median_s)
    minutes_told = max(1, math.ceil(votes_each * guess_s / 60)) if is_by_votes else minutes_each
    return SimulatedCampaign(
        number=number,
        seed=int(rng.integers(2**31)),
        space=space,
        recipe=_recipe(rng, space, people, votes_each),
        file=_list(space, rng),
        strength=float(rng.uniform(0.2, 2.0)),
        votes_each=votes_each if is_by_votes else None,
        minutes_each=None if is_by_votes else minutes_each,
        pay_hour=pay if is_paid_by_hour else None,
        pay_place=None if is_paid_by_hour else round(max(0.1, pay * minutes_paid / 60), 2),
        people=crowd.people(rng, people, 60 * within_minutes),
        # They are asked to come at once.
        pilot=crowd.people(rng, PILOT_PEOPLE, 0.0),
        told=Told(people, minutes_told, guess_s, within_minutes),
    )


@dataclass(frozen=True)
class _Crowd:
    """What the people of a campaign have in common."""

    median_s: float
    apart: float
    """The standard deviation of the logarithm of people's medians."""
    spread: float
    tires: float
    leaving: float
    """Which share of the people leaves before the end."""
    own_taste: float
    lean: float
    is_early: bool
    """Most people come soon after the start, rather than evenly."""

    @classmethod
    def drawn(cls, rng: np.random.Generator, space: str) -> _Crowd:
        longest = {"texts": 25, "molecules": 15, "patterns": 8, "listed texts": 20, "synthetic": 8}[space]
        return cls(
            median_s=_log_uniform(rng, longest / 4, longest),
            apart=float(rng.uniform(0.15, 0.45)),
            spread=float(rng.uniform(0.3, 0.7)),
            tires=float(rng.normal(0, 0.2)),
            leaving=float(rng.beta(1, 8)),
            own_taste=float(rng.uniform(0, 0.8)),
            lean=float(rng.normal(0, 0.15)),
            is_early=bool(rng.random() < 0.5),
        )

    def people(self, rng: np.random.Generator, number: int, within_s: float) -> tuple[Person, ...]:
        return tuple(self._person(rng, within_s) for _ in range(number))

    def _person(self, rng: np.random.Generator, within_s: float) -> Person:
        share = float(rng.beta(1, 3) if self.is_early else rng.random())
        return Person(
            # Nobody opens the link in the same second as somebody else.
            arrives_s=within_s * share + 20 * float(rng.random()),
            reads_s=float(rng.lognormal(math.log(40), 0.6)),
            median_s=self.median_s * float(rng.lognormal(0, self.apart)),
            spread=self.spread * float(rng.uniform(0.8, 1.2)),
            drift=self.tires + float(rng.normal(0, 0.1)),
            leaves_after=int(rng.geometric(0.06)) if rng.random() < self.leaving else None,
            break_share=0.02 if rng.random() < 0.3 else 0.0,
            break_s=float(rng.lognormal(math.log(90), 0.7)),
            patience_s=float(rng.lognormal(math.log(300), 0.7)),
            own_taste=self.own_taste,
            lean=self.lean + float(rng.normal(0, 0.2)),
            lapses=float(rng.beta(1, 19)),
            seed=int(rng.integers(2**31)),
        )


def _recipe(rng: np.random.Generator, space: str, people: int, votes_each: int) -> dict[str, Any]:
    budget = min(int(rng.choice(BUDGETS)), people)
    budgets = [budget, min(2, people)] if rng.random() < 0.2 else [budget]
    questions = ("Which is darker?", "Which is better?")
    opens = bool(rng.random() < 0.4)
    chains = int(rng.integers(1, 5)) if opens else round(_log_uniform(rng, 1, 20))
    # Enough steps for everybody, or a few too many, or too few.
    votes_wanted = _log_uniform(rng, 0.6, 4) * people * votes_each
    votes_a_step = sum(0.4 + 0.6 * each for each in budgets) * (0.15 if space == "molecules" else 0.8)
    most = max(chains + 1, people, round(_log_uniform(rng, 0.5, 3) * people)) if opens else None
    steps = max(5, round(votes_wanted / votes_a_step / (most or chains)))
    return {
        "version": 1,
        **_LAWS[space],
        "judges": [{"question": question, "budget": n} for question, n in zip(questions, budgets, strict=False)],
        "chains": chains,
        "steps": steps,
        "burn_in": round(steps * float(rng.choice([0, 0, 0.1, 0.3]))),
        "seed": int(rng.integers(2**31)),
    } | ({"most_chains": most} if most else {})


def _mixed(fresh: float, moves: dict[str, Any]) -> dict[str, Any]:
    parts = [{"weight": fresh, "kernel": {"kind": "independent"}}, {"weight": 1 - fresh, "kernel": moves}]
    return {"kind": "mixture", "parts": parts}


_LAWS: Final[dict[str, dict[str, Any]]] = {
    "texts": {
        "space": {"kind": "texts"},
        "kernel": {"kind": "walk", "kernel": _mixed(0.1, {"kind": "suffix", "cut": "limit"}), "length": 3},
    },
    "molecules": {"space": {"kind": "molecules"}, "kernel": {"kind": "fragments"}},
    "patterns": {"space": {"kind": "images"}, "kernel": _mixed(0.1, {"kind": "crank-nicolson", "beta": 0.3})},
    "listed texts": {
        "space": {"kind": "catalog", "objects": "texts", "neighbours": 4},
        "kernel": _mixed(0.3, {"kind": "neighbours"}),
    },
    "synthetic": {"space": {"kind": "catalog", "objects": "texts", "neighbours": 0}, "kernel": {"kind": "independent"}},
}
_WORDS: Final = (
    *("grey", "red", "old", "small", "lost", "far", "high", "cold", "house", "tree", "dog"),
    *("sea", "road", "night", "bird", "stone", "stood", "slept", "waited", "fell"),
)


def _list(space: str, rng: np.random.Generator) -> str | None:
    """Return the rows of an uploaded list: sentences, or numbers with the weights of a bump."""
    if space == "listed texts":
        rows = {" ".join(rng.choice(_WORDS, size=int(rng.integers(4, 9)))): int(rng.integers(1, 4)) for _ in range(120)}
        return "text,weight\n" + "".join(f"{text},{weight}\n" for text, weight in rows.items())
    if space == "synthetic":
        return "text,weight\n" + "".join(
            f"{place},{math.exp(-(((place - 25) / 20) ** 2) / 2):.6f}\n" for place in range(61)
        )
    return None


def _liking(content: str, seed: int) -> float:
    """Return a number around 0 of standard deviation 1 over objects whose parts differ."""
    words = content.split()
    parts = words if len(words) > 1 else [content[at : at + 2] for at in range(0, len(content), 2)] or [""]
    return sum(_normal(part, seed) for part in parts) / math.sqrt(len(parts))


def _normal(word: str, seed: int) -> float:
    """Return a standard normal number by a word and a seed, the same on every machine."""
    digest = hashlib.blake2b(f"{seed}:{word}".encode(), digest_size=16).digest()
    first, second = ((int.from_bytes(digest[at : at + 8], "big") + 1) / (2**64 + 1) for at in (0, 8))
    return math.sqrt(-2 * math.log(first)) * math.cos(2 * math.pi * second)


def _guess(rng: np.random.Generator, median_s: float) -> float:
    """Return what a researcher takes an answer to need: right within a factor of two, four times in five."""
    return float(median_s * rng.lognormal(0, 0.5))


def _log_uniform(rng: np.random.Generator, lowest: float, highest: float) -> float:
    return float(np.exp(rng.uniform(math.log(lowest), math.log(highest))))
