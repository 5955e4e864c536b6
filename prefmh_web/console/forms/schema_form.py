"""A Django form from a declaration: a field for each field, a group for each part, a choice for each union, rows for
each list of parts.

All variants of a choice are in the page, each in a block of its own, so that it works without a script; only the fields
of the one that is chosen count. Names are paths: `judges.0.source.model.votes` is the field `votes` of the variant
`model` of the first judge's source.

What nobody has changed keeps its value to the last digit, whatever the browser made of it; what a form does not show
keeps its value, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, get_args, get_origin

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import ErrorDict
from django.http import QueryDict
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from prefmh_web.console.forms import fields
from prefmh_web.console.forms.fields import MISSING, Choices, Variants
from prefmh_web.console.forms.parts import Choice, Fold, Group, Leaf, Part, Rows, Table
from sampler import ConfigProblem
from sampler.declared import ui_of


class SchemaForm(forms.Form):
    """The form of a declaration.

    Args:
        model: the declaration.
        was: what it holds now, as plain data; nothing for a new one.
        sent, files: what the browser sent; nothing where it is only shown.
        is_fixed: the campaign has started: what is fixed then cannot be typed in.
    """

    use_required_attribute = False
    value: dict[str, Any]
    """What was sent of the whole, right or wrong, once it is looked at."""
    is_filling = False
    """True while the fields of one more row are made, of which nobody has sent anything."""

    def __init__(
        self,
        model: type[BaseModel],
        was: Mapping[str, Any] | None = None,
        sent: QueryDict | None = None,
        files: Any = None,
        *,
        is_fixed: bool = False,
    ):
        self.is_fixed, self.model = is_fixed, model
        if sent is not None and is_fixed:
            # Browsers send nothing of what is disabled. What is sent of it all the same is refused by its name.
            super().__init__()
            self._build(was)
            sent = self._with_what_is_fixed(sent)
        self.sent = None if sent is None else sent.copy()
        super().__init__(self.sent, files)
        self._build(was)

    def _build(self, was: Mapping[str, Any] | None) -> None:
        self.parts: dict[str, Part] = {}
        self.leaves: dict[str, Leaf] = {}
        self.moved: dict[str, str] = {}
        self.root = Group(self, "", "", FieldInfo(annotation=self.model), MISSING if was is None else was, "")

    def _with_what_is_fixed(self, sent: QueryDict) -> QueryDict:
        whole = sent.copy()
        for name, leaf in self.leaves.items():
            if leaf.why_fixed and name not in sent and (posted := leaf.as_posted()):
                whole.setlist(name, posted)
        return whole

    @property
    def sections(self) -> list[tuple[str, list[Part | Fold]]]:
        """The sections of the page, each with its title. A field of the whole says where one begins."""
        found: dict[str, list[str]] = {}
        title = ""
        for name, part in self.root.inner.items():
            title = part.shown.section or title
            found.setdefault(title, []).append(name)
        return [(title, self.root.arranged(names)) for title, names in found.items()]

    @property
    def is_adding(self) -> bool:
        """True where somebody has pressed the button for one more row: nothing is checked or saved."""
        return self.is_bound and "add" in self.data

    def is_valid(self) -> bool:
        return super().is_valid() and not self.is_adding and not any(part.errors for part in self.parts.values())

    def clean(self) -> dict[str, Any]:
        super().clean()
        used = {leaf.name for leaf in self.root.in_use()}
        for name in self.errors.keys() - used:
            del self.errors[name]
        self.value = self.root.value()
        self.show([*self.problems_of(self.value)])
        return self.cleaned_data

    def problems_of(self, value: dict[str, Any]) -> Iterator[ConfigProblem]:
        """Yield what is wrong with the value of the whole, and keep what it comes to."""
        raise NotImplementedError

    def full_clean(self) -> None:
        if self.is_adding:
            self._errors, self.cleaned_data = ErrorDict(), {}
        else:
            super().full_clean()

    def choices_of(self, name: str) -> Choices:
        """Return the choices of a name that are known only at run time."""
        raise NotImplementedError

    def by_hand(self, path: str, info: FieldInfo, was: Any) -> forms.Field | None:
        """Return a field that no declaration can make; None for all others."""
        return None

    def variants_at(self, path: str, variants: Variants, was: Any) -> Variants:
        """Return those of the variants at a path that are offered."""
        return variants

    def samples_of(self, path: str, kind: str) -> Sequence[Any]:
        """Return the objects in the picture of a card."""
        return ()

    def declared_at(self, path: str, info: FieldInfo) -> FieldInfo | None:
        """Return what a page takes for the declaration at a path; None where it shows nothing there."""
        return info

    def fields_of(self, group: Group) -> Iterator[tuple[str, FieldInfo]]:
        """Yield the fields of a group that are shown; some may be no part of its value."""
        for name, info in group.model.model_fields.items():
            if name == "kind" and get_origin(info.annotation) is Literal and len(get_args(info.annotation)) == 1:
                # It says which variant this is.
                continue
            path = f"{group.path}.{name}" if group.path else name
            found = self.declared_at(_numberless(path), info)
            if found is not None and ui_of(found).widget != "none":
                yield name, found

    def part_of(self, name: str, path: str, info: FieldInfo, was: Any, why_fixed: str) -> Part | None:
        """Return the part of a field, and add its fields to the form; None where there is nothing to choose."""
        annotation, _, _ = fields.bare(info.annotation)
        at = (self, name, path, info, was, why_fixed)
        if (hand := self.by_hand(_numberless(path), info, was)) is not None:
            return Leaf(*at, field=hand)
        if named := ui_of(info).choices:
            return Leaf(*at, field=fields.chosen_of(name, info, self.choices_of(named), was))
        if len(variants := fields.variants_of(annotation)) > 1:
            offered = self.variants_at(_numberless(path), variants, was)
            return Choice(*at, variants=offered) if len(offered) > 1 else None
        if _is_model(annotation):
            return Group(*at)
        if _is_model(fields.row_of(annotation)):
            return Rows(*at)
        args = get_args(annotation)
        if len(args) == 2 and hasattr(args[0], "choices"):
            return Table(*at)
        return Leaf(*at, field=fields.field_of(name, info))

    def show(self, problems: Collection[ConfigProblem]) -> None:
        """Show each problem at the field that its path names; what has no field here, above all."""
        for problem in problems:
            path = problem.path
            for start, row in self.moved.items():
                if path == start or path.startswith(f"{start}."):
                    path = row + path.removeprefix(start)
                    break
            steps = path.split(".")
            found = next((p for n in range(len(steps), 0, -1) if (p := self.parts.get(".".join(steps[:n])))), None)
            if isinstance(found, Leaf):
                if not found.bound.errors:
                    message = "This field is required." if problem.message == "Field required" else problem.message
                    self.add_error(found.name, ValidationError(message))
            elif found is not None and found is not self.root:
                found.errors.append(problem.message)
            else:
                self.add_error(None, ValidationError(str(problem)))

    @property
    def error_list(self) -> list[tuple[str, str, str]]:
        """All that is wrong: the id to go to, what is called so, and why."""
        general = [("", "", str(message)) for message in self.non_field_errors()]
        return [*general, *self.root.all_errors()] if self.is_bound and not self.is_adding else []


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _numberless(path: str) -> str:
    return ".".join("*" if step.isdecimal() else step for step in path.split("."))
