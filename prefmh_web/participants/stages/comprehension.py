"""Questions about the instructions. Whoever answers them wrongly too often cannot take part."""

from __future__ import annotations

from collections.abc import Mapping

from django import forms
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from prefmh_web.config import Outcome, Protocol
from prefmh_web.participants.markdown import rendered
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.participants.stages.stage import PREFIX, Result

_TRY = "try"


class Comprehension:
    """Questions with one right answer each, below the instructions."""

    name = Stage.COMPREHENSION
    title = _("Did you understand the task?")
    button = _("Check my answers")

    def is_asked(self, protocol: Protocol) -> bool:
        """True if there is a question."""
        return bool(protocol.comprehension)

    def text(self, protocol: Protocol) -> SafeString:
        """Return the instructions, to read again."""
        return rendered(protocol.instructions)

    def form(self, protocol: Protocol, part: Participation, posted: Mapping[str, str] | None = None) -> forms.Form:
        """Return a field for each question, by its number."""
        form = forms.Form(posted, prefix=PREFIX)
        form.fields[_TRY] = forms.IntegerField(initial=part.tries, required=False, widget=forms.HiddenInput)
        for number, check in enumerate(protocol.comprehension):
            options = [(option, option) for option in check.options]
            form.fields[f"check_{number}"] = forms.ChoiceField(
                choices=options, label=check.text, widget=forms.RadioSelect
            )
        return form

    def result(self, part: Participation, protocol: Protocol, form: forms.Form) -> Result:
        """Count the try. Which answer is wrong is not said: the rest could be guessed."""
        if form.cleaned_data.pop(_TRY) == part.tries:
            if list(form.cleaned_data.values()) == [check.right for check in protocol.comprehension]:
                return Result()
            part.tries += 1
            part.save(update_fields=["tries"])
        # Sent twice, a page is one try; the second is not even looked at, so nobody can guess on.
        left = protocol.tries - part.tries
        if left <= 0:
            return Result(Outcome.NOT_UNDERSTOOD)
        again = ngettext(
            "Not all answers are right. Read the instructions again. You may try once more.",
            "Not all answers are right. Read the instructions again. You may try %(left)s more times.",
            left,
        )
        return Result(again=again % {"left": left})
