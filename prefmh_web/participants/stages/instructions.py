"""The researcher's instructions, on a page of their own."""

from __future__ import annotations

from collections.abc import Mapping

from django import forms
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from prefmh_web.config import Protocol
from prefmh_web.participants.markdown import rendered
from prefmh_web.participants.models import Participation, Stage
from prefmh_web.participants.stages.stage import PREFIX, Result


class Instructions:
    """A text to read."""

    name = Stage.INSTRUCTIONS
    title = _("Instructions")
    button = _("I have read this")

    def is_asked(self, protocol: Protocol) -> bool:
        """True if there is a text."""
        return bool(protocol.instructions)

    def text(self, protocol: Protocol) -> SafeString:
        """Return the text."""
        return rendered(protocol.instructions)

    def form(self, protocol: Protocol, part: Participation, posted: Mapping[str, str] | None = None) -> forms.Form:
        """Return a form without fields."""
        return forms.Form(posted, prefix=PREFIX)

    def result(self, part: Participation, protocol: Protocol, form: forms.Form) -> Result:
        """Let them go on."""
        return Result()
