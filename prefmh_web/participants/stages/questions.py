"""Questions about the person, before the votes or after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from prefmh_web.config import GREATEST_NUMBER, LONGEST_ANSWER, Outcome, Protocol, Question
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.participants.stages.stage import PREFIX, Result

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise as StrPromise


@dataclass(frozen=True)
class Questions:
    """Questions that the researcher has declared; by the answers to those before the votes, some cannot take part."""

    name: Stage
    title: StrPromise
    is_last: bool
    button = _("Continue")

    def is_asked(self, protocol: Protocol) -> bool:
        """True if there is one."""
        return bool(self._questions(protocol))

    def text(self, protocol: Protocol) -> SafeString:
        """Return nothing."""
        return SafeString()

    def form(self, protocol: Protocol, part: Participation, posted: Mapping[str, str] | None = None) -> forms.Form:
        """Return a field for each question, by its name."""
        form = forms.Form(posted, prefix=PREFIX)
        form.fields.update({question.name: _field(question) for question in self._questions(protocol)})
        return form

    def result(self, part: Participation, protocol: Protocol, form: forms.Form) -> Result:
        """Store the answers; whoever is not eligible by one of them cannot take part."""
        given = {name: str(answer) for name, answer in form.cleaned_data.items() if answer not in (None, "")}
        at = timezone.now().isoformat()
        # Repeated after a page was lost, the first answers hold.
        part.answers = {name: {"answer": answer, "at": at} for name, answer in given.items()} | part.answers
        part.save(update_fields=["answers"])
        gates = [question for question in self._questions(protocol) if question.is_gate]
        is_eligible = all(question.admits(given[question.name]) for question in gates)
        return Result() if is_eligible else Result(Outcome.NOT_ELIGIBLE)

    def _questions(self, protocol: Protocol) -> Sequence[Question]:
        return protocol.asked(last=self.is_last)


def _field(question: Question) -> forms.Field:
    shown: Any = {"label": question.text, "required": question.is_required}
    if question.kind == "choice":
        options = [(each, each) for each in question.options]
        return forms.ChoiceField(choices=options, widget=forms.RadioSelect, **shown)
    if question.kind == "number":
        least = -GREATEST_NUMBER if question.least is None else question.least
        most = GREATEST_NUMBER if question.most is None else question.most
        return forms.IntegerField(min_value=least, max_value=most, **shown)
    if question.kind == "scale":
        return forms.ChoiceField(choices=_points(question), widget=forms.RadioSelect, **shown)
    return forms.CharField(max_length=LONGEST_ANSWER, widget=forms.Textarea(attrs={"rows": 4}), **shown)


def _points(question: Question) -> list[tuple[str, str]]:
    least, most = question.least or 0, question.most or 0
    ends = dict(zip((least, most), question.options, strict=False))
    return [
        (str(point), f"{point} · {ends[point]}" if point in ends else str(point)) for point in range(least, most + 1)
    ]
