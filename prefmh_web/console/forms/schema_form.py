"""A Django form from a declaration: a field for each field, a group for each part, a choice for each union, rows for
each list of parts, a table for each value by names.

Each part adds its fields to the form when it is made, and says what was sent of it. All variants of a choice are in the
page, each in a block of its own, so that it works without a script; only the fields of the one that is chosen count.
Names are paths: `judges.0.source.model.votes` is the field `votes` of the variant `model` of the first judge's source.

What nobody has changed keeps its value to the last digit, whatever the browser made of it; what a form does not show
keeps its value, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args, get_origin

from annotated_types import MaxLen
from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.forms.utils import ErrorDict
from django.http import QueryDict
from pydantic import BaseModel
from pydantic import ValidationError as Refused
from pydantic.fields import FieldInfo

from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import CampaignConfig, validation_errors
from prefmh_web.config_files import of_owner
from prefmh_web.console.forms.fields import (
    MISSING,
    OVERTAKEN,
    Choices,
    Variants,
    as_sent,
    bare,
    bounds_of,
    chosen_of,
    field_of,
    plain,
    row_of,
    title_of,
    variants_of,
    version_of,
)
from sampler import ConfigProblem, problems_in
from sampler.declared import ui, ui_of


class Part:
    """What a page shows of a form: a field, or several of them.

    Args:
        form: the whole.
        name: with dots, as the browser sends it; of the whole, empty.
        path: where its value stands in the configuration.
        info: its declaration.
        was: its value now, as plain data; `MISSING` where there is none.
        why_fixed: why it cannot change any more; empty where it can.
    """

    template: ClassVar[str]

    def __init__(self, form: SchemaForm, name: str, path: str, info: FieldInfo, was: Any, why_fixed: str):
        self.form, self.name, self.path, self.info, self.was = form, name, path, info, was
        self.before: Mapping[str, Any] = was if isinstance(was, Mapping) else {}
        self.annotation, self.is_optional, _ = bare(info.annotation)
        self.shown = ui_of(info)
        # Templates would call what can be called.
        self.is_carded, self.button, self.widget = self.shown.cards, self.shown.rows, self.shown.widget
        own = self.shown.fixed if self.form.is_fixed else ""
        self.why_fixed = own or why_fixed
        self.title, self.help = title_of(info, name), info.description or ""
        self.fixed_here = f"“{self.title}” cannot change after the start: {own}." if own else ""
        self.errors: list[str] = []
        self.form.parts[self.path] = self

    @property
    def inside(self) -> Iterable[Part]:
        """The parts that it is made of, without those that were not chosen."""
        return ()

    @property
    def id(self) -> str:
        """Of its element."""
        return f"part_{self.name}"

    @property
    def target(self) -> str:
        """The id of the element to which the list of errors links."""
        return self.id

    @property
    def when(self) -> dict[str, str]:
        """For which choices it means something."""
        return {name: " ".join(values) for name, values in self.shown.when.items()}

    @property
    def messages(self) -> Sequence[str]:
        """What is wrong with it, beside what is wrong inside."""
        return self.errors

    def in_use(self) -> Iterator[Leaf]:
        """Yield its fields that count."""
        for part in self.inside:
            yield from part.in_use()

    def needs_a_look(self) -> bool:
        """Return whether something in it is wrong, or not the usual."""
        return bool(self.errors) or any(part.needs_a_look() for part in self.inside)

    def value(self) -> Any:
        """Return what was sent of it, as plain data; `MISSING` where the declaration's default holds."""
        raise NotImplementedError


class Leaf(Part):
    """One field."""

    template = "console/form/leaf.html"

    def __init__(self, *at: Any, field: forms.Field):
        super().__init__(*at)
        default = _default_of(self.info)
        start = self.shown.start if self.shown.start is not None else default
        self.usual = None if start is MISSING else start
        field.initial = self.usual if self.was is MISSING else self.was
        if self.fixed_here:
            field.help_text = self.fixed_here
        if self.why_fixed:
            field.widget.attrs["disabled"] = True
        form, self.field = self.form, field
        form.fields[self.name], form.leaves[self.name] = field, self
        # Browsers send nothing of what is disabled. What is sent of it all the same is refused by its name.
        is_left_out = bool(self.why_fixed) and form.sent is not None and self.name not in form.sent
        if form.sent is not None and (form.is_filling or is_left_out):
            form.sent.setlist(self.name, as_sent(field, field.initial))

    @property
    def bound(self) -> Any:
        """The field as templates take it."""
        return self.form[self.name]

    @property
    def cards(self) -> Iterator[dict[str, Any]]:
        """Its choices as cards, with the objects in the picture: each is named by what it is, and says more after a
        colon.
        """
        for radio in self.bound:
            title, _, about = str(radio.data["label"]).partition(": ")
            samples = self.form.samples_of(self.path, str(radio.data["value"]))
            yield {"radio": radio, "title": title, "about": f"{about[:1].upper()}{about[1:]}", "samples": samples}

    def needs_a_look(self) -> bool:
        return bool(self.bound.errors) or as_sent(self.field, self.bound.value()) != as_sent(self.field, self.usual)

    def value(self) -> Any:
        sent = self.field.widget.value_from_datadict(self.form.data, self.form.files, self.name)
        if self.was is not MISSING and as_sent(self.field, sent) == as_sent(self.field, self.was):
            return self.was
        found = self.form.cleaned_data.get(self.name, MISSING)
        is_blank = found is None or (found == "" and self.info.is_required())
        return MISSING if is_blank and not self.is_optional else found

    def in_use(self) -> Iterator[Leaf]:
        yield self

    @property
    def messages(self) -> Sequence[str]:
        return list(self.bound.errors)

    @property
    def target(self) -> str:
        return self.bound.id_for_label or f"id_{self.name}_0"


class Fold:
    """Parts behind a title."""

    template = "console/form/fold.html"

    def __init__(self, title: str):
        self.title, self.parts = title, list[Part]()

    @property
    def when(self) -> dict[str, str]:
        """For which choices it means something, where that is so of all its parts."""
        found = self.parts[0].when
        return found if all(part.when == found for part in self.parts) else {}

    def needs_a_look(self) -> bool:
        """Return whether something in it is wrong, or not the usual."""
        return any(part.needs_a_look() for part in self.parts)


class Group(Part):
    """The fields of a part: those that stand open, and the folds."""

    template = "console/form/group.html"

    def __init__(self, *at: Any):
        super().__init__(*at)
        self.model: type[BaseModel] = self.annotation
        self.inner: dict[str, Part] = {}
        for each, declared in self.form.fields_of(self):
            name, path = (f"{start}.{each}" if start else each for start in (self.name, self.path))
            known = self.was.get(each, _default_of(declared)) if isinstance(self.was, Mapping) else MISSING
            if part := self.form.part_of(name, path, declared, known, self.why_fixed):
                self.inner[each] = part

    @property
    def inside(self) -> Iterable[Part]:
        return self.inner.values()

    @property
    def outer(self) -> list[Part | Fold]:
        """Its parts as a page shows them."""
        return self.arranged(self.inner)

    def arranged(self, names: Iterable[str]) -> list[Part | Fold]:
        """Return some of its parts: those that stand open, then the folds."""
        folds: dict[str, Fold] = {}
        opened: list[Part | Fold] = []
        for part in (self.inner[name] for name in names if name in self.inner):
            if title := part.shown.fold:
                folds.setdefault(title, Fold(title)).parts.append(part)
            else:
                opened.append(part)
        return [*opened, *folds.values()]

    def value(self) -> Any:
        sent = {name: part.value() for name, part in self.inner.items() if name in self.model.model_fields}
        if self.is_optional and not any(part.needs_a_look() for part in self.inner.values()):
            return None
        kept = {name: each for name, each in self.before.items() if name not in sent}
        return kept | {name: each for name, each in sent.items() if each is not MISSING}


class Choice(Part):
    """One of several variants, each with its fields."""

    template = "console/form/choice.html"

    def __init__(self, *at: Any, variants: Mapping[str, Any]):
        super().__init__(*at)
        form, name, path = self.form, self.name, self.path
        default = _default_of(self.info)
        begin = self.shown.start or (default if isinstance(default, Mapping) else {"kind": next(iter(variants))})
        kinds = [(kind, model.model_config.get("title") or kind) for kind, model in variants.items()]
        radio = FieldInfo(annotation=str, default=begin["kind"], title=self.title, description=self.info.description)
        field = forms.ChoiceField(choices=kinds, label=self.title, help_text=self.help, widget=forms.RadioSelect)
        was = self.before.get("kind", MISSING)
        self.radio = Leaf(form, f"{name}.kind", f"{path}.kind", radio, was, self.why_fixed, field=field)
        self.chosen = str(self.radio.bound.value() or field.initial)
        self.variants: dict[str, Group] = {}
        # The one that is chosen last: of several parts of one path, it is the one that problems are shown at.
        for kind in sorted(variants, key=lambda each: each == self.chosen):
            inner = FieldInfo(annotation=variants[kind], title=variants[kind].model_config.get("title"))
            known = self.before if self.before.get("kind") == kind else MISSING
            self.variants[kind] = Group(form, f"{name}.{kind}", path, inner, known, self.why_fixed)
        form.parts[path] = self

    @property
    def inside(self) -> Iterable[Part]:
        return self.radio, *([self.variants[self.chosen]] if self.chosen in self.variants else ())

    @property
    def target(self) -> str:
        return f"{self.radio.bound.auto_id}_0"

    @property
    def options(self) -> Iterator[dict[str, Any]]:
        """Each variant with its fields; on a card with the objects in its picture; and the kinds of space in which it
        means something, or none for all.
        """
        for radio in self.radio.bound:
            group = self.variants[str(radio.data["value"])]
            samples = self.form.samples_of(self.path, str(radio.data["value"])) if self.shown.cards else ()
            about = getattr(group.model.model_config.get("json_schema_extra"), "help", "")
            spaces = " ".join(getattr(group.model, "moves_in", ()))
            yield {"radio": radio, "group": group, "about": about, "samples": samples, "spaces": spaces}

    def value(self) -> Any:
        group = self.variants.get(self.chosen)
        return {"kind": self.chosen} | (group.value() if group else {})


class Rows(Part):
    """A list of parts, one more than were sent where somebody has pressed the button for one."""

    template = "console/form/rows.html"

    def __init__(self, *at: Any):
        super().__init__(*at)
        form, name = self.form, self.name
        self.most: int = bounds_of(self.info)[MaxLen].max_length
        begins_with_one = bool(self.info.is_required() or self.shown.start)
        known = list(self.was) if isinstance(self.was, list | tuple) else [MISSING] * begins_with_one
        count = max(self._sent(), len(known) if self.why_fixed else 0) if form.is_bound else len(known)
        self.adds = form.is_bound and form.data.get("add") == name and count < self.most
        self.rows: list[Group] = []
        for each in range(count + self.adds):
            form.is_filling = self.adds and each == count
            was = known[each] if each < len(known) else MISSING
            info = FieldInfo(annotation=row_of(self.annotation))
            self.rows.append(Group(form, f"{name}.{each}", f"{self.path}.{each}", info, was, self.why_fixed))
        form.is_filling = False
        if self.adds:
            first = next(part for part in self.rows[-1].inside if isinstance(part, Leaf))
            form.fields[first.name].widget.attrs["autofocus"] = True

    def _sent(self) -> int:
        """Return how many rows were sent, up to more than there may be: what is too much is told."""
        start = f"{self.name}."
        numbers = {key.removeprefix(start).partition(".")[0] for key in self.form.data if key.startswith(start)}
        found = max((int(each) + 1 for each in numbers if each.isdecimal() and len(each) <= 4), default=0)
        return min(found, 2 * self.most)

    @property
    def inside(self) -> Iterable[Part]:
        return self.rows

    @property
    def can_add(self) -> bool:
        """True while there may be one more."""
        return len(self.rows) < self.most and not self.why_fixed

    def is_meant(self, row: Group) -> bool:
        """True unless every text of a row is empty: then it stands for nothing, and goes."""
        texts = [
            name
            for name, field in self.form.fields.items()
            if name.startswith(f"{row.name}.") and isinstance(field, forms.CharField)
        ]
        return any(self.form.data.get(name, "").strip() for name in texts) or not texts

    def in_use(self) -> Iterator[Leaf]:
        for row in filter(self.is_meant, self.rows):
            yield from row.in_use()

    def value(self) -> Any:
        meant = [row for row in self.rows if self.is_meant(row)]
        for number, row in enumerate(meant):
            self.form.moved[f"{self.path}.{number}"] = row.path
        return [row.value() for row in meant]


class Table(Part):
    """A value for each of some names."""

    template = "console/form/table.html"

    def __init__(self, *at: Any):
        super().__init__(*at)
        keys, value_type = get_args(self.annotation)
        shown = ui(labels={"": self.shown.labels.get("", "")})
        self.leaves: dict[str, Leaf] = {}
        for key in keys:
            label = str(self.shown.labels.get(key, key.label))
            one = FieldInfo(annotation=value_type | None, default=None, title=label, json_schema_extra=shown)
            name, path = f"{self.name}.{key.value}", f"{self.path}.{key.value}"
            was, field = self.before.get(key.value), field_of(label, one)
            self.leaves[key.value] = Leaf(self.form, name, path, one, was, self.why_fixed, field=field)

    @property
    def inside(self) -> Iterable[Part]:
        return self.leaves.values()

    def value(self) -> Any:
        sent = {key: leaf.value() for key, leaf in self.leaves.items()}
        return {key: each for key, each in sent.items() if each not in (None, "", MISSING)}


def _default_of(info: FieldInfo) -> Any:
    return MISSING if info.is_required() else plain(info.get_default(call_default_factory=True))


class SchemaForm(forms.Form):
    """The form of a campaign's configuration, or of a part of it.

    Args:
        model: the declaration.
        campaign: nothing for a new one. Of one that has started, what is fixed then cannot be typed in.
        owner: whose it will be.
        was: what the declaration holds now, as plain data; nothing for a new one.
        sent, files: what the browser sent; nothing where it is only shown.
    """

    at: ClassVar[str] = ""
    """How paths in the configuration begin that are of this form."""
    elsewhere: ClassVar[tuple[str, ...]] = ()
    """How those of them begin that another form has."""
    use_required_attribute = False
    value: dict[str, Any]
    """What was sent of the whole, right or wrong, once it is looked at."""
    config: CampaignConfig | None = None
    """The whole configuration with what was sent, once it is checked."""
    is_overtaken = False
    """True where what was sent would replace what the sender has never seen."""
    is_filling = False
    """True while the fields of one more row are made, of which nobody has sent anything."""

    def __init__(
        self,
        model: type[BaseModel],
        campaign: Campaign | None,
        owner: User,
        was: Mapping[str, Any] | None,
        sent: QueryDict | None = None,
        files: Any = None,
    ):
        self.model, self.campaign, self.owner = model, campaign, owner
        self.before = campaign.typed_config if campaign else None
        self.is_fixed = bool(campaign and not campaign.is_draft)
        self.sent = None if sent is None else sent.copy()
        super().__init__(self.sent, files)
        self.parts: dict[str, Part] = {}
        self.leaves: dict[str, Leaf] = {}
        self.moved: dict[str, str] = {}
        self.root = Group(self, "", "", FieldInfo(annotation=self.model), MISSING if was is None else was, "")
        shown = {name: each for name, each in (was or {}).items() if not f"{self.at}{name}.".startswith(self.elsewhere)}
        self.version = version_of(shown)

    @property
    def made_from(self) -> str:
        """Of what was stored when the page was opened: the version that it sends back."""
        return self.version if self.is_overtaken else self.data.get("made_from", self.version)

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
        self.show([*self.problems_in(self.described(self.value))])
        # The same once more, as two clicks send it, replaces nothing.
        if self.made_from != self.version and self.config not in (None, self.before):
            self.is_overtaken = True
            self.add_error(None, ValidationError(OVERTAKEN))
        return self.cleaned_data

    def described(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return the whole configuration that the fields stand for, as plain data."""
        raise NotImplementedError

    def problems_in(self, described: dict[str, Any]) -> Iterator[ConfigProblem]:
        """Yield what a configuration is refused for, and keep one that is not: all that is wrong with the fields of
        this form, and of others what they would bring about.
        """
        try:
            config = CampaignConfig.model_validate(described)
        except Refused as error:
            yield from problems_in(error, described)
            return
        known, found = (
            [*validation_errors(each), *of_owner(each, self.owner, self.before)] if each else []
            for each in (self.before, config)
        )
        # All that is wrong here; of what is wrong elsewhere, what this would bring about.
        here = [each for each in found if each[0].startswith(self.at) and not each[0].startswith(self.elsewhere)]
        told = [each for each in found if each in here or each not in known] + [*self.further(config)]
        if not told:
            self.config = config
        yield from (ConfigProblem(*each) for each in told)

    def further(self, config: CampaignConfig) -> Iterator[tuple[str, str]]:
        """Yield what only this form refuses: the path, and what is wrong."""
        yield from ()

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
            if (found := self.declared_at(_numberless(path), info)) is not None and ui_of(found).widget != "none":
                yield name, found

    def part_of(self, name: str, path: str, info: FieldInfo, was: Any, why_fixed: str) -> Part | None:
        """Return the part of a field, and add its fields to the form; None where there is nothing to choose."""
        annotation, _, _ = bare(info.annotation)
        at = (self, name, path, info, was, why_fixed)
        if (hand := self.by_hand(_numberless(path), info, was)) is not None:
            return Leaf(*at, field=hand)
        if named := ui_of(info).choices:
            return Leaf(*at, field=chosen_of(name, info, self.choices_of(named), was))
        if len(variants := variants_of(annotation)) > 1:
            offered = self.variants_at(_numberless(path), variants, was)
            return Choice(*at, variants=offered) if len(offered) > 1 else None
        if _is_model(annotation):
            return Group(*at)
        if _is_model(row_of(annotation)):
            return Rows(*at)
        args = get_args(annotation)
        if len(args) == 2 and hasattr(args[0], "choices"):
            return Table(*at)
        return Leaf(*at, field=field_of(name, info))

    def show(self, problems: Collection[ConfigProblem]) -> None:
        """Show each problem at the field that its path names; what has no field here, above all."""
        for problem in problems:
            path = problem.path.removeprefix(self.at)
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
        if not self.is_bound or self.is_adding:
            return []
        general = [("", "", str(message)) for message in self.non_field_errors()]
        return general + [
            (part.target, part.title, str(message)) for part in self.parts.values() for message in part.messages
        ]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _numberless(path: str) -> str:
    return ".".join("*" if step.isdecimal() else step for step in path.split("."))
