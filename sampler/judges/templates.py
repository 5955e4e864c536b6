"""A prompt of the researcher's own: a system message and a text with places for what is asked and what is judged.

A place is a name between double braces, as {{question}}. Nothing else is read in a template: no attribute, no format
and no expression. What is put in is never read for places again: an object whose text says {{second}} stays that text.

    {{question}}                 the judge's question; must be there
    {{first}}, {{second}}        the two objects, in the order of A and B; each once, in this order
    {{object}}                   the one object, where the rule rates
    {{context}}                  all columns that are shown with the objects, each under its label
    {{first: Source}}            what stands in one of these columns, or what is measured, of one object
    {{lowest}}, {{highest}}      the ends of the scale, where the rule rates

The reply is read as ever: A or B, or one whole number of the scale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import ClassVar, Final

from pydantic import Field, field_validator

from sampler.declared import Sparse, ui

LONGEST_TEMPLATE: Final = 20_000
_PLACE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_OBJECTS: Final = {1: ("object",), 2: ("first", "second")}
_SCALE: Final = ("lowest", "highest")
# What no text of a request should hold; line breaks and tabs are fine.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True)
class Place:
    """One place of a template: what is named, and of which column or measure."""

    name: str
    of: str = ""

    def __str__(self) -> str:
        return f"{{{{{self.name}: {self.of}}}}}" if self.of else f"{{{{{self.name}}}}}"


@dataclass(frozen=True)
class Fitting:
    """What a template has to fit.

    Args:
        objects: how many stand in one prompt, 1 or 2.
        columns: labels of the columns that are shown with them.
        measures: what is measured of them, by name.
    """

    objects: int
    columns: Sequence[str] = ()
    measures: Collection[str] = ()


class PromptTemplate(Sparse):
    """The words of a model judge, as its researcher wrote them.

    Args:
        system: the system message; empty for none.
        user: the user's message.
    """

    unwritten: ClassVar[tuple[str, ...]] = ("system",)
    system: str = Field(
        default="", max_length=LONGEST_TEMPLATE, title="System message", json_schema_extra=ui(widget="template")
    )
    user: str = Field(
        max_length=LONGEST_TEMPLATE,
        title="User template",
        description="Write {{question}} for the question, {{first}} and {{second}} for the two objects ({{object}} "
        "where one is rated) and {{context}} for the columns that are shown. Objects are put between quotation marks.",
        json_schema_extra=ui(widget="template"),
    )

    @property
    def version(self) -> str:
        """A short name for exactly these words: eight digits of the SHA-256 of them as sorted JSON without spaces."""
        written = json.dumps(self.model_dump(mode="json"), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return sha256(written.encode("utf-8")).hexdigest()[:8]

    @field_validator("system", "user")
    @classmethod
    def _with_plain_line_breaks(cls, text: str) -> str:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        if found := _CONTROL.search(text):
            raise ValueError(f"must hold no control character such as U+{ord(found.group()):04X}; remove it")
        return text


def pieces(text: str) -> Iterator[str | Place]:
    """Yield the words of a template and its places, in their order."""
    end = 0
    for found in _PLACE.finditer(text):
        if found.start() > end:
            yield text[end : found.start()]
        name, _, of = found.group(1).partition(":")
        yield Place(name.strip(), of.strip())
        end = found.end()
    if end < len(text):
        yield text[end:]


def places(text: str) -> list[Place]:
    """Return the places of a template."""
    return [piece for piece in pieces(text) if isinstance(piece, Place)]


def template_problems(template: PromptTemplate, fitting: Fitting) -> Iterator[tuple[str, str]]:
    """Yield the field and the reason of everything in a template that cannot be filled, or is missing."""
    for field in ("system", "user"):
        for place in dict.fromkeys(places(getattr(template, field))):
            if reason := _why_unknown(place, field, fitting):
                yield field, reason
    named = [place.name for place in places(template.user) if not place.of]
    if "question" not in named and Place("question") not in places(template.system):
        yield "user", "must hold {{question}}, which is what the record says that this judge answers"
    yield from (("user", reason) for reason in _objects_missing(named, fitting))
    if fitting.columns and "context" not in named and not _shows_columns(template.user, fitting):
        yield "user", "must hold {{context}}, or name each of the columns that people see for each object"
    if fitting.objects == 2 and not re.search(r"\bB\b", template.system + template.user):
        yield "user", "must say which object is A and which is B: a reply is one of these two letters"


def template_of(source: object) -> PromptTemplate | None:
    """Return the prompt of its own that a judge's source has; None of one that has none, and of people."""
    found = getattr(source, "prompt", None)
    return found if isinstance(found, PromptTemplate) else None


def template_misfits(sources: Sequence[object], fitting: Fitting) -> Iterator[tuple[str, str]]:
    """Yield the path in a config and the reason of all such problems.

    Args:
        sources: of the config's judges, in order.
    """
    for judge, source in enumerate(sources):
        if template := template_of(source):
            for field, reason in template_problems(template, fitting):
                yield f"judges.{judge}.source.prompt.{field}", reason


def known_places(fitting: Fitting) -> list[str]:
    """Return all that may stand between double braces in the user's template."""
    of = [*fitting.columns, *fitting.measures]
    whole = [Place("question"), *map(Place, _OBJECTS[fitting.objects])]
    whole += [Place("context")] if fitting.columns else []
    whole += [Place(name, each) for each in of for name in _OBJECTS[fitting.objects]]
    return list(map(str, [*whole, *(map(Place, _SCALE) if fitting.objects == 1 else ())]))


def _why_unknown(place: Place, field: str, fitting: Fitting) -> str:
    """Return why a place cannot be filled; empty if it can."""
    known = known_places(fitting)
    if str(place) not in known:
        return f"knows no {place}; it may hold {', '.join(known)}"
    if field == "system" and place.name not in ("question", *_SCALE):
        return f"must not hold {place}: objects and their columns stand in the user template"
    return ""


def _objects_missing(named: Sequence[str], fitting: Fitting) -> Iterator[str]:
    shown = _OBJECTS[fitting.objects]
    for name in shown:
        if (count := named.count(name)) != 1:
            times = "does not" if not count else f"does {count} times"
            yield f"must hold {Place(name)} exactly once, and {times}"
    in_order = [name for name in named if name in shown]
    if sorted(in_order) == sorted(shown) and in_order != list(shown):
        yield "must hold {{first}} before {{second}}: A is the object that stands first"


def _shows_columns(text: str, fitting: Fitting) -> bool:
    shown = set(places(text))
    return all(Place(name, label) in shown for name in _OBJECTS[fitting.objects] for label in fitting.columns)
