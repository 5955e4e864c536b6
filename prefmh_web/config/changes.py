"""What differs between two configurations, and what of it is fixed once a campaign has started."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

_LONGEST_TOLD = 200

JUDGED_BY = "it is part of what people judge by, so the votes before and after would be of two judges"
TARGET = "the chains would sample another distribution from there on"
VOTERS = "it decides who votes and how much each gives, so the votes before and after would be of two crowds"
TRIALS = "the record declares beforehand how often trials come, and their answers are compared with each other"


@dataclass(frozen=True)
class Fixed:
    """A field that does not change any more.

    Args:
        label: what it is called on the pages.
        why: what would go wrong.
    """

    label: str
    why: str

    @property
    def sentence(self) -> str:
        """What somebody reads who tries to change it."""
        return f"“{self.label}” cannot change after the start: {self.why}."


@dataclass(frozen=True)
class Change:
    """One field that has another value.

    Args:
        path: from the whole configuration.
        old, new: its values, as plain data.
        is_hidden: others may not see them.
    """

    path: tuple[str, ...]
    old: Any
    new: Any
    is_hidden: bool

    def told(self) -> dict[str, Any]:
        """Return what the event of the change says: of a long text its hash, of what is hidden nothing."""
        values = (None, None) if self.is_hidden else (_short(self.old), _short(self.new))
        return {"path": ".".join(self.path), "old": values[0], "new": values[1]}


def changes_between(before: BaseModel, after: BaseModel, path: tuple[str, ...] = ()) -> Iterator[Change]:
    """Yield each field whose value differs; of a part of another kind, and of a list, the whole."""
    for name, info in type(before).model_fields.items():
        old, new = getattr(before, name), getattr(after, name)
        if isinstance(old, BaseModel) and type(old) is type(new):
            yield from changes_between(old, new, (*path, name))
        elif old != new:
            was, now = (each.model_dump(mode="json", include={name}).get(name) for each in (before, after))
            yield Change((*path, name), was, now, is_hidden=bool(extra_of(info).get("hidden")))


def extra_of(info: FieldInfo) -> dict[str, Any]:
    """Return what a declaration says of a field beside its type and its bounds."""
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def fixed_at(model: type[BaseModel], path: tuple[str, ...]) -> Fixed | None:
    """Return why a field is fixed; None where it may change."""
    return _FIXED.get(".".join(path)) or _FIXED.get(path[0])


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > _LONGEST_TOLD:
        return f"sha256 {hashlib.sha256(value.encode()).hexdigest()[:16]}"
    return value


_FIXED = {
    "judges": Fixed("Questions", JUDGED_BY),
    "instructions": Fixed("Instructions for voters", JUDGED_BY),
    "answering.seconds": Fixed("Time to answer, in seconds", JUDGED_BY),
    "answering": Fixed("When a step is set aside", TARGET),
    "language": Fixed("Language of the voters' pages", JUDGED_BY),
    "layout": Fixed("How the two objects stand", JUDGED_BY),
    "space": Fixed("What is compared?", TARGET),
    "file": Fixed("File", TARGET),
    "kernel": Fixed("How the next object is proposed", TARGET),
    "rule": Fixed("Rule", TARGET),
    "chains": Fixed("Chains at the start", TARGET),
    "max_chains": Fixed("Chains at most", TARGET),
    "steps": Fixed("Steps per chain", f"{TARGET}; “Extend” on the campaign's page adds steps to all chains"),
    "burn_in": Fixed("First steps that are left out", "the record declares it beforehand"),
    "seed": Fixed("Seed of all random numbers", TARGET),
    "scorers": Fixed("Scorers", "the objects before and after would be measured otherwise"),
    "study.recruiter": Fixed("Where do people come from?", VOTERS),
    "study.parameter": Fixed("Parameter with the person's id", VOTERS),
    "study.checks_ids": Fixed("Check the form of ids", VOTERS),
    "study.votes_each": Fixed("Votes per person", VOTERS),
    "study.most_minutes": Fixed("The platform's maximum time, in minutes", VOTERS),
    "study.most_active_minutes": Fixed("Active minutes per person", VOTERS),
    "study.absent_minutes": Fixed("Minutes until an absent person loses their place", VOTERS),
    "study.most_a_minute": Fixed("Most votes a minute", "the record flags everybody by the same number"),
    "study.refused": Fixed("Do not take people who took part in", VOTERS),
    "study.protocol.questions": Fixed("Questions about the person", VOTERS),
    "study.protocol.instructions": Fixed("Instructions", JUDGED_BY),
    "study.protocol.practice": Fixed("Practice", JUDGED_BY),
    "study.protocol.comprehension": Fixed("Check that people understood", VOTERS),
    "study.protocol.tries": Fixed("Tries", VOTERS),
    "study.protocol.check_share": Fixed("Attention checks, per 100 votes", TRIALS),
    "study.protocol.gold": Fixed("Gold pairs", TRIALS),
    "study.protocol.gold_share": Fixed("Gold checks, per 100 votes", TRIALS),
    "study.protocol.repeat_share": Fixed("Repeats, per 100 votes", TRIALS),
    "study.protocol.wait_minutes": Fixed("Longest wait, in minutes", VOTERS),
    "study.protocol.wait_is_paid": Fixed("The time that people wait is paid", VOTERS),
    "study.protocol.checks_may_fail": Fixed("So many may fail", VOTERS),
    "study.protocol.checks_end": Fixed("One more ends the part", VOTERS),
}
