"""A scenario: a prompt, and the words that fit it into the sentences of every style."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

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
    smells: tuple[str, ...]
    sounds: tuple[str, ...]
    details: tuple[str, ...]
    lines: tuple[str, ...]

    def slots(self) -> dict[str, tuple[str, ...]]:
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
        return {**{name: (words,) for name, words in one.items()}, **several}
