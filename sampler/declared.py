"""Parts of a configuration: what each field is called, and what else is to be known of it, stands in its declaration.

    Declared    the base of every part: what it does not know is refused, and nothing changes it
    Sparse      the base of parts that do not write what is not given
    ui          what pages, files and the API need to know of a field beside its type, title and description

A title is what a field is called; a description is the help below it. Both are published in the JSON Schema, with
`x-fixed`; the rest of `ui` is for pages alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer
from pydantic.fields import FieldInfo

JUDGED_BY = "it is part of what people judge by, so the votes before and after would answer two questions"
TARGET = "the chains would sample another distribution from there on"


class Declared(BaseModel):
    """A part of a configuration: what it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Sparse(Declared):
    """A part in which some fields are not written where nothing stands in them.

    So a configuration that does not use a field is the same, byte for byte, as if there were no such field.
    """

    unwritten: ClassVar[tuple[str, ...]]
    """The names of these fields."""

    @model_serializer(mode="wrap")
    def _without_what_is_not_given(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = handler(self)
        return {name: value for name, value in fields.items() if value or name not in self.unwritten}


def _each_once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(set(values)) < len(values):
        raise ValueError("must name each once")
    return values


EACH_ONCE = AfterValidator(_each_once)
"""Of a tuple in which nothing may stand twice."""


def _on_one_line(text: str) -> str:
    if len(text.splitlines()) > 1:
        raise ValueError("must be one line; take the line breaks out")
    return text


ONE_LINE = AfterValidator(_on_one_line)
"""Of a text that pages take and send back in one line: no browser keeps a line break there as it is."""


@dataclass(frozen=True, kw_only=True)
class ui:  # noqa: N801 - it reads as a function in each declaration
    """What is to be known of a field, or of a variant of a union, beside what JSON Schema says.

    Args:
        section: the title of the section of a page that begins with this field.
        fold: the title of the fold in which a page puts it; empty where it stands open.
        fixed: why it cannot change after the start, as the end of a sentence; empty where it can, or its parent says.
        hidden: from whom but the owner it is hidden.
        unit: "percent" where pages show 5 for .05.
        widget: how a page lets somebody type it, where its type does not say; "none" where no page does.
        labels: what the values of a `Literal` are called.
        choices: by which name a page finds the choices that are known only at run time.
        cards: the variants are shown as cards with pictures.
        rows: what the button says that adds one more.
        when: the kinds of space, or of rule, for which it means something: {"space": ("texts",)}.
        start: what a new form holds, where that is not the default.
        help: of a variant, the sentence below its title.
    """

    section: str = ""
    fold: str = ""
    fixed: str = ""
    hidden: Literal["", "always", "until the end"] = ""
    unit: str = ""
    widget: str = ""
    labels: Mapping[Any, str] = field(default_factory=dict)
    choices: str = ""
    cards: bool = False
    rows: str = ""
    when: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    start: Any = None
    help: str = ""

    def __call__(self, schema: dict[str, Any]) -> None:
        """Add to a JSON Schema what is published."""
        if self.fixed:
            schema["x-fixed"] = self.fixed


def ui_of(info: FieldInfo) -> ui:
    """Return what a declaration says of a field beside JSON Schema."""
    found = info.json_schema_extra
    return found if isinstance(found, ui) else ui()
