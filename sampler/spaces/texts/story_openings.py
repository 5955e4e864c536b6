"""Story openings: a stochastic grammar written for this project, fifty scenarios in four styles.

The first token of a text is its style, the second its shape: how many sentences, of what kind, with dialogue or
without. Every later choice is made among sentences of that style. So a suffix move mostly keeps the style, and the
shape too, and changes them when the cut falls at the very beginning.

The sentences stand in `sampler/data/stories.json`. To add a scenario, copy one at the end and follow `Scenario`; to add
a style, copy the rules of one.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final, Literal

from sampler.spaces.texts.grammar import Grammar

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
        he, him, his, himself = _PRONOUNS[self.person]
        other_he, other_him, other_his, _ = _PRONOUNS["woman" if he == "he" else "man"]
        one = {
            "who": self.who,
            "person": self.person,
            "role": self.role,
            "when": self.when,
            "hour": self.hour,
            "event": self.event,
            "thing": self.thing,
            "setting": self.setting,
            "other": self.other,
            "oth": self.oth,
            "he": he,
            "him": him,
            "his": his,
            "himself": himself,
            "other_he": other_he,
            "other_him": other_him,
            "other_his": other_his,
        }
        several = {"smell": self.smells, "sound": self.sounds, "detail": self.details, "line": self.lines}
        return {**{name: [words] for name, words in one.items()}, **several}


_STORIES: Final[dict[str, Any]] = json.loads(
    resources.files("sampler").joinpath("data", "stories.json").read_text(encoding="utf-8")
)
STYLES: Final = tuple(_STORIES["styles"])
STORY_SCENARIOS: Final = tuple(Scenario(**each) for each in _STORIES["scenarios"])
"""Configs name scenarios by their place here: add at the end, never reorder."""


@lru_cache(maxsize=8)
def story_openings(temperature: float = 1.0) -> Grammar:
    """Return the grammar under all scenarios. Raises ValueError if the temperature is not positive."""
    rules = {"story": [f"{{{style}}}" for style in STYLES]}
    for of_style in _STORIES["styles"].values():
        rules |= of_style
    return Grammar(rules, {scenario.prompt: scenario.slots() for scenario in STORY_SCENARIOS}, temperature=temperature)
