"""What a study asks of people beside their votes: the forms of a `Protocol`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.forms.utils import ErrorDict
from pydantic import BaseModel
from pydantic import ValidationError as Refused

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import GREATEST_NUMBER, LONGEST_CONTENT, Check, OwnPair, PracticePair, Protocol, Question
from prefmh_web.config.misfits import questions_of
from prefmh_web.console.forms import study_texts
from prefmh_web.console.forms.choices import offer
from prefmh_web.console.forms.fixed import as_posted, fix
from prefmh_web.console.forms.protocol_texts import TextsForm
from prefmh_web.console.forms.rows import formset_of
from prefmh_web.console.forms.study_texts import PERCENTS
from prefmh_web.console.forms.usual import Fold, fold_of, needs_a_look
from prefmh_web.recruiters import OPEN

NEEDS_IDS = (
    f"A protocol is for people who each have a part of their own. On the page “Participants”, choose “{OPEN.title}”, a "
    "platform, or links of your own."
)
_OF_CHECKS = ("check_percent", "gold_percent", "repeat_percent", "checks_may_fail", "checks_end")
# Where none is set up: one pair shows little.
_PAIRS_TO_BEGIN = 2
_KINDS = {"choice": "Choice", "number": "Number", "scale": "Scale", "text": "Text"}
_SIDES = {"first": "object 1", "second": "object 2"}
_WHEN = {"": "before the votes", "last": "after the votes"}


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 9


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())


class _Lines(forms.CharField):
    widget = forms.Textarea(attrs={"rows": 3})

    def __init__(self, **kwargs):
        super().__init__(max_length=5000, **kwargs)


class _PartForm(forms.Form):
    """One row of a formset; one whose texts are all empty stands for nothing."""

    def described(self) -> dict[str, Any]:
        """Return the fields of the part that the row stands for."""
        raise NotImplementedError

    @property
    def part(self) -> type[BaseModel]:
        """What the row stands for."""
        raise NotImplementedError

    def is_blank(self) -> bool:
        """True if every text of the row has been emptied: then it stands for nothing."""
        texts = [self.add_prefix(name) for name, field in self.fields.items() if isinstance(field, forms.CharField)]
        return not any((self.data.get(name) or "").strip() for name in texts)

    @property
    def is_meant(self) -> bool:
        """True if the row stands for something."""
        return bool(self.cleaned_data) and not self.is_blank()

    def full_clean(self):
        super().full_clean()
        if self.is_bound and self.is_blank():
            # A row that is emptied is taken out, whichever of its boxes still stand.
            self._errors, self.cleaned_data = ErrorDict(), {}

    def clean(self):
        super().clean()
        if self.has_changed() and not self.errors:
            try:
                self.part.model_validate(self.described())
            except Refused as refused:
                for error in refused.errors():
                    field = str(error["loc"][0]) if error["loc"] else None
                    message = error["msg"].removeprefix("Value error, ")
                    self.add_error(field if field in self.fields else None, ValidationError(message))
        return self.cleaned_data


class AboutPersonForm(_PartForm):
    """A question about the person."""

    part = Question

    text = forms.CharField(max_length=300, label="Question")
    name = forms.RegexField(
        r"^[a-z][a-z0-9_]{0,39}$",
        label="Name in answers.csv",
        error_messages={"invalid": "Enter small letters, digits and “_”, such as age."},
    )
    kind = forms.ChoiceField(choices=_KINDS, label="Answered by")
    when = forms.ChoiceField(choices=_WHEN, required=False, label="Asked")
    options = _Lines(required=False, label="Options, one per line", help_text="Of a scale: the words at its two ends.")
    least = forms.IntegerField(
        min_value=-GREATEST_NUMBER, max_value=GREATEST_NUMBER, required=False, label="Least number, or first point"
    )
    most = forms.IntegerField(
        min_value=-GREATEST_NUMBER, max_value=GREATEST_NUMBER, required=False, label="Greatest number, or last point"
    )
    is_optional = forms.BooleanField(required=False, label="May be left out")
    eligible = _Lines(
        required=False,
        label="Who can take part",
        help_text="Options, one per line, or a range of numbers such as 18-65. Leave empty for everybody.",
    )
    places = _Lines(
        required=False,
        label="Places for an option",
        help_text="One per line, such as “student: 20”. Other options have no limit.",
    )

    def clean_places(self) -> dict[str, int]:
        found = {}
        for line in _lines(self.cleaned_data["places"]):
            option, _, count = line.rpartition(":")
            if not (option.strip() and _is_count(count.strip())):
                raise ValidationError(f"“{line}” is not an option and a number, such as “student: 20”.")
            found[option.strip()] = int(count)
        return found

    def clean_eligible(self) -> dict[str, Any]:
        lines = _lines(self.cleaned_data["eligible"])
        if self.cleaned_data.get("kind") != "number" or not lines:
            return {"eligible": lines}
        low, dash, high = (part.strip() for part in lines[0].partition("-"))
        ends = [end for end in (low, high) if end]
        if len(lines) > 1 or not dash or not ends or not all(map(_is_count, ends)):
            raise ValidationError("Enter a range of numbers, such as 18-65, 18- or -65.")
        return {"eligible_from": int(low) if low else None, "eligible_to": int(high) if high else None}

    def described(self) -> dict[str, Any]:
        data = self.cleaned_data
        return {
            **{name: data[name] for name in ("text", "name", "kind", "least", "most", "places")},
            **data["eligible"],
            "options": _lines(data["options"]),
            "is_required": not data["is_optional"],
            "is_last": data["when"] == "last",
        }


class CheckForm(_PartForm):
    """A question about the instructions."""

    part = Check

    text = forms.CharField(max_length=300, label="Question")
    options = _Lines(label="Options, one per line")
    right = forms.CharField(max_length=300, label="The right one")

    def described(self) -> dict[str, Any]:
        return {**self.cleaned_data, "options": _lines(self.cleaned_data["options"])}


class OwnPairForm(_PartForm):
    """A pair of the researcher's own.

    Args:
        campaign: whose kind of object and questions it has.
    """

    part: type[BaseModel] = OwnPair

    first = forms.CharField(max_length=LONGEST_CONTENT, widget=forms.Textarea(attrs={"rows": 3}), label="Object 1")
    second = forms.CharField(max_length=LONGEST_CONTENT, widget=forms.Textarea(attrs={"rows": 3}), label="Object 2")
    answer = forms.ChoiceField(choices=_SIDES, label="Right answer")
    question = forms.TypedChoiceField(coerce=int, label="Question above it")

    def __init__(self, *args: Any, campaign: Campaign, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        config = campaign.config
        self._kind = sampler.OBJECT_KINDS[config.space.objects]
        offer(self, "question", [(str(number), text) for number, text in enumerate(questions_of(config), start=1)])

    def clean_first(self) -> str:
        return self._object("first")

    def clean_second(self) -> str:
        return self._object("second")

    def _object(self, field: str) -> str:
        # A browser ends lines in its own way.
        written: str = self.cleaned_data[field].replace("\r\n", "\n")
        try:
            return self._kind.written(written)
        except ValueError as reason:
            raise ValidationError(f"This is not possible: {reason}.") from reason

    def described(self) -> dict[str, Any]:
        return dict(self.cleaned_data)


class PracticePairForm(OwnPairForm):
    """A pair to practise on."""

    part = PracticePair

    if_wrong = forms.CharField(
        max_length=300, label="After a wrong answer", help_text="One line that says why the other one is right."
    )
    if_right = forms.CharField(
        max_length=300, required=False, label="After a right answer", help_text="Left empty: “That is right.”"
    )


_Questions = formset_of(AboutPersonForm, 40, extra=1)
_Checks = formset_of(CheckForm, 20, extra=1)
_Practice = formset_of(PracticePairForm, 40, extra=1)
_Gold = formset_of(OwnPairForm, 40, extra=1)


class ProtocolForms:
    """All forms of a protocol together.

    Args:
        protocol: fills them.
        campaign: whose protocol it is.
        posted: fills them instead, if it is given.
        knows_people: each person has a part of their own, under which what they answer can be stored.
    """

    def __init__(
        self,
        protocol: Protocol,
        campaign: Campaign,
        posted: Mapping[str, Any] | None = None,
        *,
        knows_people: bool = True,
    ) -> None:
        self._knows_people, self._is_started, self._before = knows_people, not campaign.is_draft, protocol
        if posted is not None and self._is_started:
            # Browsers post nothing for what is fixed; whatever else is posted is refused by name.
            posted = self._whole(protocol, campaign, posted, knows_people)
        texts = protocol.model_dump(include=set(TextsForm.base_fields))
        texts |= {percent: round(100 * getattr(protocol, share)) for percent, share in PERCENTS.items()}
        self.texts = TextsForm(posted, initial=texts)
        questions = [_row(each) for each in protocol.questions]
        checks = [each.model_dump() | {"options": "\n".join(each.options)} for each in protocol.comprehension]
        # What is sent stands for itself: a row that is as it was is not an empty one.
        self.questions = _Questions(posted, prefix="questions", initial=None if posted else questions)
        self.checks = _Checks(posted, prefix="checks", initial=None if posted else checks)
        self.takes_pairs = campaign.object_kind.medium == "words"
        own = {"campaign": campaign}
        practice, gold = ([each.model_dump() for each in pairs] for pairs in (protocol.practice, protocol.gold))
        self.practice = _Practice(posted, prefix="practice", initial=None if posted else practice, form_kwargs=own)
        if not practice:
            self.practice.extra = _PAIRS_TO_BEGIN
        self.gold = _Gold(posted, prefix="gold", initial=None if posted else gold, form_kwargs=own)

    @property
    def asks_about_person(self) -> bool:
        """True where there are questions about the person, or something was sent for them."""
        return _is_used(self.questions)

    @property
    def asks_about_instructions(self) -> bool:
        """True where there are questions about the instructions, or something was sent for them."""
        return _is_used(self.checks) or needs_a_look(self.texts["tries"])

    @property
    def has_checks(self) -> bool:
        """True where some of the checks between votes are chosen, or something is wrong with them."""
        return _is_used(self.gold) or any(needs_a_look(self.texts[name]) for name in _OF_CHECKS)

    @property
    def waiting(self) -> Fold:
        """What happens to those for whom there is no pair."""
        return fold_of("When no pair is free", [self.texts["wait_minutes"], self.texts["wait_is_paid"]])

    @classmethod
    def _whole(
        cls, protocol: Protocol, campaign: Campaign, posted: Mapping[str, Any], knows_people: bool
    ) -> dict[str, Any]:
        as_it_is = cls(protocol, campaign, knows_people=knows_people)
        held: dict[str, Any] = {}
        for form in (*as_it_is._forms, *(formset.management_form for formset in as_it_is._formsets)):
            held |= as_posted(form)
        return held | {name: posted[name] for name in posted}

    def freeze(self) -> None:
        """Let nothing be changed but the debriefing."""
        for form in self._forms:
            fix(form, form.fields.keys() - ({"debriefing"} if form is self.texts else set()))

    @property
    def _forms(self) -> tuple[forms.BaseForm, ...]:
        return (self.texts, *(form for formset in self._formsets for form in formset.forms))

    @property
    def has_errors(self) -> bool:
        """True once something was refused."""
        return self.texts.is_bound and bool(
            self.texts.errors or any(each.total_error_count() for each in self._formsets)
        )

    @property
    def _formsets(self) -> tuple[forms.BaseFormSet[Any], ...]:
        return self.questions, self.practice, self.checks, self.gold

    def checked(self) -> Protocol | None:
        """Return the protocol; None after adding every reason to the forms where something is refused."""
        # Each one is looked at, so that all errors are shown at once.
        valid = [self.texts.is_valid(), *(formset.is_valid() for formset in self._formsets)]
        if not all(valid):
            return None
        described = study_texts.described(self.texts, self._before)
        for name, formset in zip(("questions", "practice", "comprehension", "gold"), self._formsets, strict=True):
            described[name] = [form.described() for form in formset.forms if form.is_meant]
        try:
            protocol = Protocol.model_validate(described)
        except Refused as refused:
            for error in refused.errors():
                self.texts.add_error(None, ValidationError(error["msg"].removeprefix("Value error, ")))
            return None
        if not (protocol.is_empty or self._knows_people):
            self.texts.add_error(None, ValidationError(NEEDS_IDS))
            return None
        return protocol


def _is_used(formset: forms.BaseFormSet[Any]) -> bool:
    return any(form.initial or form.errors or (form.is_bound and not form.is_blank()) for form in formset.forms)


def _row(question: Question) -> dict[str, Any]:
    low, high = question.eligible_from, question.eligible_to
    numbers = "" if low is None and high is None else f"{'' if low is None else low}-{'' if high is None else high}"
    return question.model_dump(include={"text", "name", "kind", "least", "most"}) | {
        "when": "last" if question.is_last else "",
        "options": "\n".join(question.options),
        "is_optional": not question.is_required,
        "eligible": numbers or "\n".join(question.eligible),
        "places": "\n".join(f"{option}: {count}" for option, count in question.places.items()),
    }
