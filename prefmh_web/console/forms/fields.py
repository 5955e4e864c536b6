"""Form fields for the values of a declaration: numbers within bounds, choices, lists as lines, shares; and kept files.

Files of a form that could not be saved stand in it again, without being chosen once more.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import suppress
from decimal import Decimal
from hashlib import sha256
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types as at
from django import forms
from django.core.exceptions import ValidationError
from django.core.files.base import File
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from prefmh_web.campaigns import catalogs
from prefmh_web.campaigns.catalogs import RetainedUpload
from sampler.declared import ui, ui_of

MISSING: Any = object()
"""In the place of a value that is not there."""
OVERTAKEN = (
    "Since you opened this page, its fields were saved from another tab or window. What you typed is still here. Open "
    "the page in a new tab to see what was saved; or press Save again to replace it."
)
Choices = Sequence[tuple[Any, str]]
Variants = Mapping[str, type[BaseModel]]
"""The models of a union, by their kinds."""
_HUNDRED = Decimal(100)
_ROWS = {"text": 4, "template": 8, "object": 3, "list": 6}
_NUMBERS = {int: forms.IntegerField, float: forms.FloatField, Decimal: forms.DecimalField}


def version_of(stored: Mapping[str, Any]) -> str:
    """Return what tells a stored value, as plain data, from every other one."""
    return sha256(json.dumps(stored, sort_keys=True).encode()).hexdigest()[:16]


def title_of(info: FieldInfo, name: str) -> str:
    """Return what a field is called."""
    return info.title or name.rpartition(".")[2].replace("_", " ").capitalize()


def bare(annotation: Any) -> tuple[Any, bool, list[Any]]:
    """Return a type without Annotated and None, whether None is allowed, and what is noted on the way."""
    noted: list[Any] = []
    is_optional = False
    while True:
        origin, args = get_origin(annotation), get_args(annotation)
        if origin is Annotated:
            annotation, *more = args
            noted += more
        elif origin in (Union, types.UnionType) and type(None) in args:
            rest = tuple(each for each in args if each is not type(None))
            annotation, is_optional = Union[rest], True  # noqa: UP007 - made at run time
        else:
            return annotation, is_optional, noted


def variants_of(annotation: Any) -> Variants:
    """Return the models of a union by their kinds; nothing for what is no such union."""
    inner, _, _ = bare(annotation)
    if get_origin(inner) in (Union, types.UnionType):
        return {kind: model for each in get_args(inner) for kind, model in variants_of(each).items()}
    if isinstance(inner, type) and issubclass(inner, BaseModel) and "kind" in inner.model_fields:
        return {str(inner.model_fields["kind"].default): inner}
    return {}


def row_of(annotation: Any) -> Any:
    """Return what a list is of; None for what is no list."""
    return bare(get_args(annotation)[0])[0] if get_origin(annotation) is tuple else None


def plain(value: Any) -> Any:
    """Return a value as plain data."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    return list(value) if isinstance(value, tuple) else value


def as_sent(field: forms.Field, value: Any) -> list[str]:
    """Return the texts that a browser sends for a value, which can be compared with those that it has sent."""
    if isinstance(field, forms.BooleanField):
        return ["on"] * bool(value)
    prepared = field.prepare_value(value)
    if isinstance(field, forms.MultipleChoiceField):
        return sorted(map(str, prepared or ()))
    return ["" if prepared is None else _with_plain_ends(str(prepared))]


def _with_plain_ends(text: str) -> str:
    # Browsers make CR LF of each of the three.
    return text.replace("\r\n", "\n").replace("\r", "\n")


def bounds_of(info: FieldInfo) -> dict[type, Any]:
    """Return the constraints of a value by their types."""
    _, _, noted = bare(info.annotation)
    return {type(each): each for each in _each_of([*info.metadata, *noted])}


def _each_of(noted: Sequence[Any]) -> Iterator[Any]:
    for each in noted:
        if isinstance(each, FieldInfo):
            yield from _each_of(each.metadata)
        elif isinstance(each, at.GroupedMetadata):
            yield from each
        else:
            yield each


def field_of(name: str, info: FieldInfo) -> forms.Field:
    """Return the field of a value, with the title, help and bounds of its declaration."""
    annotation, is_optional, _ = bare(info.annotation)
    shown, bounds, common = ui_of(info), bounds_of(info), _common(name, info)
    inner = row_of(annotation)
    if get_origin(annotation) is Literal or _is_names(annotation):
        values = get_args(annotation) or tuple(each.value for each in annotation)
        return one_of([(each, _label(shown, annotation, each)) for each in values], shown, is_optional, **common)
    if get_origin(inner) is Literal:
        return Several([(each, _label(shown, inner, each)) for each in get_args(inner)], **common)
    if inner is not None:
        return Lines(of=inner, are_words=shown.widget == "words", **common)
    if annotation is bool:
        return forms.BooleanField(**common)
    if annotation in _NUMBERS:
        return _number(annotation, shown, bounds, common)
    if get_args(annotation) and get_args(annotation)[0] is str:
        return Counts(**common)
    rows = _ROWS.get(shown.widget)
    look = {"rows": rows} | ({"class": "template"} if shown.widget == "template" else {})
    length = bounds.get(at.MaxLen)
    return Text(
        max_length=length.max_length if length else None,
        widget=forms.Textarea(attrs=look) if rows else forms.TextInput(),
        **common,
    )


def chosen_of(name: str, info: FieldInfo, choices: Choices, was: Any) -> forms.Field:
    """Return the field of a value that is one, or some, of choices that are known only at run time. What is not offered
    any more stays as long as it is chosen.
    """
    annotation, is_optional, _ = bare(info.annotation)
    before = was if isinstance(was, list) else [] if was in (MISSING, None, "") else [was]
    known = [value for value, _ in choices]
    choices = [*choices, *((each, f"{each} (not here any more)") for each in before if each not in known)]
    if row_of(annotation) is not None:
        return Several(choices, before, **_common(name, info))
    return one_of(choices, ui_of(info), is_optional or info.default == "", **_common(name, info))


def _common(name: str, info: FieldInfo) -> dict[str, Any]:
    # The declaration says what is required: a field of a variant that is not chosen is not.
    return {"required": False, "label": title_of(info, name), "help_text": info.description or ""}


def one_of(choices: Choices, shown: ui, is_optional: bool, **common: Any) -> forms.Field:
    """Return the choice of one value; of none, too, where none is allowed."""
    values = {str(each): each for each, _ in choices}
    offered = [(str(each), label) for each, label in choices]
    if is_optional:
        offered.insert(0, ("", shown.labels.get("", "–")))
    widget = forms.RadioSelect() if shown.cards else forms.Select()
    return forms.TypedChoiceField(
        choices=offered, coerce=lambda sent: values.get(sent, sent), empty_value=None, widget=widget, **common
    )


def _is_names(annotation: Any) -> bool:
    return isinstance(annotation, type) and hasattr(annotation, "choices")


def _label(shown: ui, annotation: Any, value: Any) -> str:
    usual = annotation(value).label if _is_names(annotation) else str(value)
    return str(shown.labels.get(str(value), usual))


def _number(kind: Any, shown: ui, bounds: Mapping[type, Any], common: dict[str, Any]) -> forms.Field:
    least, most = bounds.get(at.Ge), bounds.get(at.Le)
    ends: dict[str, Any] = {"min_value": least and least.ge, "max_value": most and most.le}
    if shown.unit == "percent":
        return Percent(**{name: end and end * 100 for name, end in ends.items()} | common)
    field = _NUMBERS[kind](**ends | common)
    # A browser would count the steps from the least number on.
    field.widget.attrs["step"] = 1 if kind is int else "any"
    return field


class Text(forms.CharField):
    """A text as it was typed, with plain line ends: the declaration says what is cut off."""

    def __init__(self, **kwargs: Any):
        super().__init__(strip=False, **kwargs)

    def to_python(self, value: Any) -> str:
        return _with_plain_ends(str(super().to_python(value)))


class Lines(Text):
    """A list, an item in each line; of short words or numbers, with spaces between them."""

    def __init__(self, *, of: type, are_words: bool = False, **kwargs: Any):
        widget = forms.TextInput() if are_words else forms.Textarea(attrs={"rows": 3})
        super().__init__(widget=widget, **kwargs)
        self.of, self.are_words = of, are_words

    def prepare_value(self, value: Any) -> Any:
        return (" " if self.are_words else "\n").join(map(str, value)) if isinstance(value, list | tuple) else value

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        items = text.replace(",", " ").split() if self.are_words else map(str.strip, text.splitlines())
        return [self._read(each) for each in items if each] or None

    def _read(self, text: str) -> Any:
        if self.of is not int:
            return text
        try:
            return int(text)
        except ValueError as error:
            raise ValidationError(f"“{text}” is no whole number.") from error


class Counts(Text):
    """A number for each of some names: a name, a colon and a number in each line."""

    widget = forms.Textarea(attrs={"rows": 3})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name}: {count}" for name, count in value.items()) if isinstance(value, Mapping) else value

    def clean(self, value: Any) -> Any:
        found = {}
        for line in filter(str.strip, super().clean(value).splitlines()):
            name, _, count = (part.strip() for part in line.rpartition(":"))
            if not (name and count.isascii() and count.isdecimal() and len(count) <= 9):
                raise ValidationError(f"“{line}” is not a name and a number, such as “student: 20”.")
            if name in found:
                raise ValidationError(f"“{name}” stands there twice.")
            found[name] = int(count)
        return found or None


class Percent(forms.DecimalField):
    """A share, shown in hundredths."""

    def __init__(self, **kwargs: Any):
        super().__init__(**kwargs)
        self.widget.attrs["step"] = "any"

    def prepare_value(self, value: Any) -> Any:
        return f"{(Decimal(repr(value)) * _HUNDRED).normalize():f}" if isinstance(value, int | float) else value

    def clean(self, value: Any) -> Any:
        share = super().clean(value)
        return None if share is None else float(share / _HUNDRED)


class Several(forms.MultipleChoiceField):
    """Some of several values, in the order that they had.

    Args:
        choices: the values and what they are called.
        was: those that are chosen now.
    """

    widget = forms.CheckboxSelectMultiple

    def __init__(self, choices: Choices, was: Sequence[Any] = (), **kwargs: Any):
        self._was = list(was)
        self._values = {self._key(each): each for each, _ in choices}
        super().__init__(choices=[(self._key(each), label) for each, label in choices], **kwargs)
        if len(self._values) > 12:
            self.widget.attrs["class"] = "many"

    @staticmethod
    def _key(value: Any) -> str:
        return str(value["number"] if isinstance(value, Mapping) else value)

    def prepare_value(self, value: Any) -> Any:
        return [self._key(each) for each in value] if isinstance(value, list | tuple) else value

    def clean(self, value: Any) -> Any:
        chosen = [self._values[each] for each in super().clean(value)]
        return sorted(chosen, key=lambda each: self._was.index(each) if each in self._was else len(self._was)) or None


_PREFIX, _SOURCE = "kept-", "source-"


def kept_note(kept: RetainedUpload | None, name: str) -> SafeString:
    """Return what a form says of a file that is kept for the field of this name, with its ticket."""
    return render_to_string("console/form/kept.html", {"kept": kept, "name": f"{_PREFIX}{name}"})


class KeptFileInput(forms.FileInput):
    """A file to choose; of one that is kept, its name and its ticket stand below."""

    kept: RetainedUpload | None = None

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """Return the field."""
        return super().render(name, value, attrs, renderer) + self.below(name)

    def below(self, name: str) -> SafeString:
        """Return what stands below the field of this name."""
        return kept_note(self.kept, name)


class ListInput(KeptFileInput):
    """A list in a file, or several pictures or recordings. What a list comes to is shown below, and what is kept of it.

    Args:
        fields: that the list depends on, by their names.
    """

    allow_multiple_selected = True

    def __init__(self, fields: Sequence[str]):
        super().__init__(attrs={"accept": ".txt,.csv,.smi,.sdf,.mol,.xlsx,.zip,image/*,audio/*"})
        self._fields = fields

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        """Return the one file that was made of what was sent."""
        return files.get(name)

    def below(self, name: str) -> SafeString:
        """Return where the answer to a list comes; until there is one, what is kept."""
        depends = {"fields": [name, *self._fields], "kept": super().below(name)}
        return render_to_string("console/form/list_reply.html", depends)


class KeptFiles:
    """The files of a form, with those that are kept of an earlier try.

    Args:
        researcher_id: who sends the form.
        posted: its fields.
        files: what was chosen now, by the names of the fields. What was kept is added: with its request, it is closed.
    """

    def __init__(self, researcher_id: int, posted: Mapping[str, str], files: MutableMapping[str, Any]):
        self._researcher_id = researcher_id
        self._kept: dict[str, RetainedUpload] = {}
        self.files = files
        for field, ticket in posted.items():
            name = field.removeprefix(_PREFIX)
            is_kept = field.startswith(_PREFIX) and name not in self.files
            if is_kept and (found := catalogs.by_ticket(researcher_id, ticket)):
                # Swept in this very moment: the form asks for the file, as if there had been none.
                with suppress(FileNotFoundError):
                    self.files[name] = found.open()
                    self._kept[name] = found

    def forget(self, name: str) -> None:
        """Remove what is kept for a field, if that is what the field has: something else was sent."""
        if kept := self._kept.pop(name, None):
            del self.files[name]
            kept.remove()

    def put(self, name: str, made: File[Any], source: File[Any]) -> None:
        """Give a field a file that was made of what was sent, which is kept in its place: it may be made anew."""
        self.files[name], self.files[_SOURCE + name] = made, source

    def show_in(self, form: forms.Form) -> None:
        """Keep the files of a form that is shown again, but for those that are refused; the form says which."""
        for bound in form:
            name, widget = bound.html_name, bound.field.widget
            if isinstance(widget, KeptFileInput) and name in self.files and not bound.errors:
                if name not in self._kept:
                    file = self.files.get(_SOURCE + name, self.files[name])
                    self._kept[name] = catalogs.keep(self._researcher_id, file)
                widget.kept = self._kept[name]
                # The browser has it no more, and need not insist on it.
                bound.field.required = False

    def remove(self) -> None:
        """Remove what is kept: it is stored elsewhere now."""
        for each in self._kept.values():
            each.remove()
