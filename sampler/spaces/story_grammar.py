"""A probabilistic grammar as a language model: tokens are choices, probabilities are exact.

Rules give each name its alternatives. An alternative is text in which

    {name}      stands for what the rule `name` gives
    {^name}     the same, its first letter a capital
    [a|b|c]     is one of these, each as likely; they may hold names and brackets in their turn

Writing a text is a leftmost derivation: always the first open choice is made next. A token is the number of the
alternative chosen there; where there is only one, nothing is chosen and no token spent. Rules may not lead back to
themselves, so that every derivation ends. The choices before a point fix what is chosen at it, so

    log p0(x) = sum_t log w(x_t) / sum_k w(k),      the sum in the denominator over the alternatives at that point.

A scenario is a prompt with rules of its own, put beside the common ones: what fills the slots of the story.

Story openings: a stochastic grammar written for this project, fifty scenarios in four styles.

The first token of a text is its style, the second its shape: how many sentences, of what kind, with dialogue or
without. Every later choice is made among sentences of that style. So a suffix move mostly keeps the style, and the
shape too, and changes them when the cut falls at the very beginning.

The sentences stand in `sampler/data/stories.json`. To add a scenario, copy one at the end and follow `Scenario`; to add
a style, copy the rules of one.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib import resources
from itertools import accumulate
from typing import Any, Final, Literal

import numpy as np

from sampler.chain import Tokens

# An alternative alone has weight 1.
Alternatives = Sequence[str | tuple[float, str]]
Rules = Mapping[str, Alternatives]


@dataclass(frozen=True)
class _Name:
    """The place of a rule in an alternative."""

    name: str
    capital: bool


@dataclass(frozen=True, eq=False)
class _Choice:
    """Alternatives, each a sequence of parts, and the distribution of the choice between them."""

    alternatives: tuple[tuple[_Part, ...], ...]
    cumulative: tuple[float, ...]
    log_p: tuple[float, ...]

    def draw(self, rng: np.random.Generator) -> int:
        # Rounding may leave the last sum just below 1.
        return min(bisect_right(self.cumulative, rng.random()), len(self.cumulative) - 1)


_Part = str | _Name | _Choice
_Rulebook = Mapping[str, _Choice]


class Grammar:
    """A language model that writes by rules.

    Args:
        rules: the alternatives of each name, those of `start` among them.
        scenarios: for each prompt the rules that hold for it alone, and go before common ones of the same name. Without
            any, the grammar takes every prompt and heeds none.
        start: the name that a text is derived from.
        temperature: a weight w becomes w ** (1 / temperature), so p0 stays exact. Above 1 evens out, below 1 sharpens.

    Raises:
        ValueError: a rule cannot be read, has no alternative or a weight that is not positive, names a rule that is
            missing or leads back to itself, or the temperature is not positive.
    """

    def __init__(
        self,
        rules: Rules,
        scenarios: Mapping[str, Rules] | None = None,
        start: str = "story",
        temperature: float = 1.0,
    ) -> None:
        if not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(f"temperature must be a positive number, not {temperature}")
        self._start = start
        self._common = _compile(rules, temperature)
        self._own = {
            prompt: {**self._common, **_compile(slots, temperature)} for prompt, slots in (scenarios or {}).items()
        }
        rulebooks = list(self._own.values()) or [self._common]
        self._limit = max(_longest(rulebook, start) for rulebook in rulebooks)

    @property
    def limit(self) -> int:
        """T, the length of the longest derivation under any prompt."""
        return self._limit

    @property
    def prompts(self) -> tuple[str, ...]:
        """The scenarios' prompts in their order; empty if the grammar takes any."""
        return tuple(self._own)

    def continue_batch(
        self, rngs: Sequence[np.random.Generator], prompts: Sequence[str], prefixes: Sequence[Tokens]
    ) -> list[Tokens]:
        """Return whole sequences that begin with the prefixes; see `texts.LanguageModel.continue_batch`.

        Raises:
            ValueError: the lengths differ, a prompt is unknown, or a prefix is not the beginning of any derivation.
        """
        rows = zip(rngs, prompts, prefixes, strict=True)
        return [self._continue(rng, prompt, prefix) for rng, prompt, prefix in rows]

    def text(self, prompt: str, tokens: Tokens) -> str:
        """Return what a whole derivation says. Raises ValueError if it is none."""
        derivation = self._derive(prompt, tokens)
        if derivation.choice is not None:
            raise ValueError(f"tokens must be a whole derivation; after these {len(tokens)} a choice is still open")
        return "".join(derivation.written)

    def _continue(self, rng: np.random.Generator, prompt: str, prefix: Tokens) -> Tokens:
        derivation, tokens = self._derive(prompt, prefix), list(prefix)
        while (choice := derivation.choice) is not None:
            tokens.append(choice.draw(rng))
            derivation.choose(tokens[-1])
        return tuple(tokens)

    def _derive(self, prompt: str, tokens: Tokens) -> _Derivation:
        derivation = _Derivation(self._rulebook(prompt), self._start)
        for token in tokens:
            derivation.choose(token)
        return derivation

    def _rulebook(self, prompt: str) -> _Rulebook:
        if not self._own:
            return self._common
        if prompt not in self._own:
            raise ValueError(f"prompt must be one of the grammar's {len(self._own)} scenarios, not {prompt!r}")
        return self._own[prompt]


class _Derivation:
    """A leftmost derivation under way: what is written, the choice that is open, and what waits behind it."""

    def __init__(self, rulebook: _Rulebook, start: str) -> None:
        self._rulebook = rulebook
        self._waiting: list[_Part] = [_Name(start, capital=False)]
        self._capital = False
        self.written: list[str] = []
        self.log_p: list[float] = []
        self.choice: _Choice | None = None
        self._advance()

    def choose(self, token: int) -> None:
        """Make the open choice.

        Raises:
            ValueError: none is open, or it has no such alternative.
        """
        if self.choice is None:
            raise ValueError(f"tokens must end with the derivation, after {len(self.log_p)}; there are more")
        if not 0 <= token < len(self.choice.alternatives):
            raise ValueError(
                f"token {len(self.log_p)} must be 0 to {len(self.choice.alternatives) - 1} here, not {token}"
            )
        self.log_p.append(self.choice.log_p[token])
        self._waiting.extend(reversed(self.choice.alternatives[token]))
        self._advance()

    def _advance(self) -> None:
        """Write up to the next choice between two alternatives or more."""
        while self._waiting:
            part = self._waiting.pop()
            if isinstance(part, str):
                self.written.append(_written(part, self._capital))
                self._capital = False
                continue
            if isinstance(part, _Name):
                self._capital = self._capital or part.capital
                part = self._rulebook[part.name]
            if len(part.alternatives) > 1:
                self.choice = part
                return
            self._waiting.extend(reversed(part.alternatives[0]))
        self.choice = None


def _written(literal: str, capital: bool) -> str:
    return literal[:1].upper() + literal[1:] if capital else literal


def _compile(rules: Rules, temperature: float) -> dict[str, _Choice]:
    return {name: _Reader(name, temperature).rule(alternatives) for name, alternatives in rules.items()}


class _Reader:
    """Reads the alternatives of one rule."""

    def __init__(self, name: str, temperature: float) -> None:
        self._name, self._temperature = name, temperature
        self._source, self._position = "", 0

    def rule(self, alternatives: Alternatives) -> _Choice:
        weighted = [(1.0, each) if isinstance(each, str) else each for each in alternatives]
        return self._choice([weight for weight, _ in weighted], [self._whole(text) for _, text in weighted])

    def _choice(self, weights: list[float], alternatives: list[tuple[_Part, ...]]) -> _Choice:
        if not alternatives:
            raise ValueError(f"rule {self._name!r} must have an alternative")
        if not all(math.isfinite(weight) and weight > 0 for weight in weights):
            raise ValueError(f"rule {self._name!r}: weights must be positive numbers")
        log_w = [math.log(weight) / self._temperature for weight in weights]
        log_total = max(log_w) + math.log(math.fsum(math.exp(each - max(log_w)) for each in log_w))
        log_p = tuple(each - log_total for each in log_w)
        return _Choice(tuple(alternatives), tuple(accumulate(map(math.exp, log_p))), log_p)

    def _whole(self, text: str) -> tuple[_Part, ...]:
        self._source, self._position = text, 0
        parts = self._parts(inside=False)
        if self._position < len(text):
            raise self._unreadable("a bracket is closed that was not opened")
        return parts

    def _parts(self, *, inside: bool) -> tuple[_Part, ...]:
        """Read up to the end, or inside brackets up to the next | or ]."""
        parts: list[_Part] = []
        literal = self._position
        while self._position < len(self._source):
            sign = self._source[self._position]
            if sign in "]}" or (sign == "|" and inside):
                break
            if sign in "{[":
                parts.append(self._source[literal : self._position])
                parts.append(self._named() if sign == "{" else self._bracketed())
                literal = self._position
            else:
                self._position += 1
        parts.append(self._source[literal : self._position])
        return tuple(part for part in parts if part != "")

    def _named(self) -> _Name:
        end = self._source.find("}", self._position)
        name = self._source[self._position + 1 : end]
        if end < 0 or not name.removeprefix("^").isidentifier():
            raise self._unreadable("{ must be followed by the name of a rule and }")
        self._position = end + 1
        return _Name(name.removeprefix("^"), name.startswith("^"))

    def _bracketed(self) -> _Choice:
        alternatives = []
        while self._source[self._position : self._position + 1] in ("[", "|"):
            self._position += 1
            alternatives.append(self._parts(inside=True))
        if self._source[self._position : self._position + 1] != "]":
            raise self._unreadable("[ must be closed by ]")
        self._position += 1
        return self._choice([1.0] * len(alternatives), alternatives)

    def _unreadable(self, reason: str) -> ValueError:
        return ValueError(f"rule {self._name!r}: {reason}, in {self._source!r} at character {self._position}")


def _longest(rulebook: _Rulebook, start: str) -> int:
    """Return the most tokens of a derivation: one for each choice between two alternatives or more.

    Raises:
        ValueError: a rule that `start` leads to is missing or leads back to itself.
    """
    found: dict[str, int] = {}

    def of_rule(name: str, above: tuple[str, ...]) -> int:
        if name not in rulebook:
            raise ValueError(f"rule {name!r} is missing" + (f"; {above[-1]!r} names it" if above else ""))
        if name in above:
            raise ValueError(f"rule {name!r} must not lead back to itself: {' → '.join((*above, name))}")
        if name not in found:
            found[name] = of_choice(rulebook[name], (*above, name))
        return found[name]

    def of_choice(choice: _Choice, above: tuple[str, ...]) -> int:
        longest = max(sum(of_part(part, above) for part in parts) for parts in choice.alternatives)
        return longest + (len(choice.alternatives) > 1)

    def of_part(part: _Part, above: tuple[str, ...]) -> int:
        if isinstance(part, str):
            return 0
        return of_rule(part.name, above) if isinstance(part, _Name) else of_choice(part, above)

    return of_rule(start, ())


Person = Literal["man", "woman", "boy", "girl"]

_PRONOUNS = {
    "man": ("he", "him", "his", "himself"),
    "woman": ("she", "her", "her", "herself"),
}
_PRONOUNS["boy"], _PRONOUNS["girl"] = _PRONOUNS["man"], _PRONOUNS["woman"]


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What fills the slots. Every combination must read well, so each part keeps to its form.

    prompt: what a writer would be asked for.
    who, person: the one it happens to, with "the"; and what pronouns follow.
    role: the same in fewer words, with "the".
    when: the time, at the beginning or the end of a sentence ("just before dawn").
    hour: the same after "It was" and before "when" ("nearly dawn").
    event: what happens, in the past tense, without the time ("found a boat with no one aboard").
    thing: what it is about; something solid, one of it, with "the".
    setting: where; one place, with "the".
    other: somebody to talk to, with "a" or "an", of the other sex so that pronouns stay clear.
    oth: the same in fewer words, with "the".
    smells: what stands after "smelled of".
    sounds: what stands after "nothing but"; one thing to be heard ("the ticking of a clock").
    details: whole sentences that may follow any other.
    lines: what `other` says; a statement without its last mark.
    """

    prompt: str
    who: str
    person: Person
    role: str
    when: str
    hour: str
    event: str
    thing: str
    setting: str
    other: str
    oth: str
    smells: list[str]
    sounds: list[str]
    details: list[str]
    lines: list[str]

    def slots(self) -> dict[str, list[str]]:
        """Return the rules that hold for this scenario alone."""
        own = {name: [words] for name, words in asdict(self).items() if isinstance(words, str) and name != "prompt"}
        pronouns, of_other = _PRONOUNS[self.person], _PRONOUNS["man" if self.person in ("woman", "girl") else "woman"]
        own |= {name: [word] for name, word in zip(_PRONOUNS["man"], pronouns, strict=True)}
        own |= {f"other_{name}": [word] for name, word in zip(_PRONOUNS["man"], of_other, strict=True)}
        return own | {"smell": self.smells, "sound": self.sounds, "detail": self.details, "line": self.lines}


_STORIES: Final[dict[str, Any]] = json.loads(
    resources.files("sampler").joinpath("data", "stories.json").read_text(encoding="utf-8")
)
STYLES: Final = tuple(_STORIES["styles"])
STORY_SCENARIOS: Final = tuple(Scenario(**each) for each in _STORIES["scenarios"])
"""Configs name scenarios by their index here: add at the end, never reorder."""


@lru_cache(maxsize=8)
def story_openings(temperature: float = 1.0) -> Grammar:
    """Return the grammar under all scenarios. Raises ValueError if the temperature is not positive."""
    rules = {"story": [f"{{{style}}}" for style in STYLES]}
    for of_style in _STORIES["styles"].values():
        rules |= of_style
    return Grammar(rules, {scenario.prompt: scenario.slots() for scenario in STORY_SCENARIOS}, temperature=temperature)
