"""A setup as YAML text, and back to plain data of which each part knows its line and column.

Plain words are read as YAML 1.2 has them: yes, no and on are text, as are dates and times of day. What a setup has no
use for is refused: anchors and aliases, of which a short file can make a huge one, tags, and several documents.

Nothing of Django is needed to read it: what is wrong with a file is a `Problem`, as it is told to programs, too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

import yaml
from pydantic import BaseModel, Field

_DEEPEST: Final = 30
# Served texts may have 2,000 prompts; nothing else has as many parts. Each costs some microseconds and its place.
_MAX_VALUES: Final = 20_000
_LONGEST_KEY: Final = 300
_WIDTH: Final = 110
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: Final = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_LONGEST_NUMBER: Final = 40
# A character beyond U+FFFF, as JSON escapes it and YAML does not; after backslashes that are no part of it.
_PAIR_IN_JSON = re.compile(r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")
Event = Any  # PyYAML's events, which carry no types


class Problem(BaseModel):
    """One thing that was wrong with a request."""

    message: str = Field(description="A sentence that says what is wrong and what would be accepted")
    path: Annotated[str, Field(description="The field, such as judges.0.votes; empty for the whole")] = ""
    line: Annotated[int | None, Field(description="In campaign.yaml, from 1")] = None
    column: Annotated[int | None, Field(description="In that line, from 1")] = None

    def __str__(self) -> str:
        where = "" if self.line is None else f"line {self.line}, column {self.column}: "
        return where + (f"{self.path}: " if self.path else "") + self.message


class SetupError(ValueError):
    """A file that makes no campaign; `problems` lists every reason, in the order of the lines."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(problems, key=lambda each: (each.line or 0, each.column or 0))
        super().__init__("; ".join(map(str, self.problems)))


def refused(message: str, path: str = "", line: int | None = None, column: int | None = None) -> SetupError:
    """Return the error of a file in which one thing is wrong."""
    return SetupError([Problem(message=message, path=path, line=line, column=column)])


@dataclass
class Document:
    """What a file holds.

    Args:
        data: of dictionaries, lists, texts, numbers, truth values and None.
        places: by path, such as ("judges", "0", "votes"), where it stands: line and column, from 1. Not by its text,
            which would repeat every key above it.
    """

    data: Any = None
    places: dict[tuple[str, ...], tuple[int, int]] = field(default_factory=dict)

    def problem(self, path: str, message: str) -> Problem:
        """Return a problem with what stands at a path; what is missing has the line of what it is missing in."""
        parts = tuple(path.split(".")) if path else ()
        while parts and parts not in self.places:
            parts = parts[:-1]
        line, column = self.places.get(parts, (1, 1))
        return Problem(message=message, path=path, line=line, column=column)


def read(text: str) -> Document:
    """Return what YAML text says.

    Raises:
        SetupError: it is no YAML, has a key twice, or holds what a setup has no use for.
    """
    try:
        return _Reader(text).document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise refused(f"This is no YAML: {error.problem or error.context}.", "", line, column) from error
    except yaml.YAMLError as error:
        raise refused(f"This is no YAML: {str(error).splitlines()[0]}.") from error


def write(data: Any) -> str:
    """Return plain data as YAML text that `read` understands; the same data always as the same text."""
    written: str = yaml.dump(
        data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False
    )
    return written


class _Reader:
    """Reads a document event by event, so that nothing is built of what is refused."""

    def __init__(self, text: str) -> None:
        self.document = Document()
        self._values = 0
        self._events: Iterator[Event] = iter(yaml.parse(_as_yaml(text), Loader=yaml.CSafeLoader))
        next(self._events)
        begun = next(self._events)
        if isinstance(begun, yaml.StreamEndEvent):
            raise refused("The setup is empty.", "", 1, 1)
        self.document.data = self._value(next(self._events), (), 0)
        next(self._events)
        if not isinstance(after := next(self._events), yaml.StreamEndEvent):
            raise _at(after, "A second document begins here; a file holds one campaign. Remove it")

    def _value(self, event: Event, path: tuple[str, ...], depth: int) -> Any:
        self._values += 1
        # Of what a mapping holds, the key's place is known already.
        self.document.places.setdefault(path, (event.start_mark.line + 1, event.start_mark.column + 1))
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise _at(event, "Anchors and aliases (& and *) are not read; write the value out")
        if event.tag is not None:
            raise _at(event, f"A tag such as “{event.tag[:40]}” is not read; remove it")
        if depth > _DEEPEST or self._values > _MAX_VALUES:
            raise _at(event, "There is more here than a setup can hold, in depth or in number")
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(path, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(path, depth)
        return _scalar(event)

    def _mapping(self, path: tuple[str, ...], depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent):
                raise _at(event, "A key must be a plain word or text")
            if len(event.value) > _LONGEST_KEY:
                raise _at(event, f"A key has at most {_LONGEST_KEY} characters, not {len(event.value):,}; shorten it")
            key = self._value(event, (*path, event.value), depth + 1)
            if not isinstance(key, str):
                raise _at(event, f"The key {event.value[:40]} must be text; put it in quotes")
            if key in found:
                raise _at(event, f"The key “{key[:40]}” stands here twice; remove one of the two")
            found[key] = self._value(next(self._events), (*path, key), depth + 1)
        return found

    def _sequence(self, path: tuple[str, ...], depth: int) -> list[Any]:
        found: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            found.append(self._value(event, (*path, str(len(found))), depth + 1))
        return found


def _as_yaml(text: str) -> str:
    """Return JSON with the characters themselves where it escapes them as YAML does not; any other text as it is."""
    if not text.lstrip().startswith("{"):
        return text
    return _PAIR_IN_JSON.sub(lambda found: found[1] + json.loads(f'"{found[2]}"'), text)


def _at(event: Event, message: str) -> SetupError:
    return refused(f"{message}.", "", event.start_mark.line + 1, event.start_mark.column + 1)


def _scalar(event: Event) -> Any:
    text: str = event.value
    if "\x00" in text:
        # PostgreSQL keeps none.
        raise _at(event, "A text cannot hold the character NUL; remove it")
    if not event.implicit[0]:
        return text
    if text in _WORDS:
        return _WORDS[text]
    is_number = _INT.fullmatch(text) or _FLOAT.fullmatch(text)
    if _NO_NUMBER.fullmatch(text) or (is_number and len(text) > _LONGEST_NUMBER):
        raise _at(event, "This is no number that a setup can have; if it is text, put it in quotes")
    if not is_number:
        return text
    return int(text) if _INT.fullmatch(text) else float(text)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines are written as they are read; no part is written as an alias of another."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
        # Lists are indented below their key, as people write them.
        return super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> Any:
    # PyYAML takes these for line ends where a reader does not, unless they are escaped.
    has_other_ends = any(end in text for end in "\x85\u2028\u2029")
    style = '"' if has_other_ends else "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
# PyYAML quotes the words that YAML 1.1 reads as something else than text; these are the numbers that 1.2 has besides.
_Dumper.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(rf"(?:{_FLOAT.pattern})$"), list("-+.0123456789"))
