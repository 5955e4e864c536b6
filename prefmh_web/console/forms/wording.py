"""The texts of a campaign in its further languages: a field for each text and language."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from django import forms

from prefmh_web.campaigns.lifecycle.fixed import Fixed
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.started import words_now
from prefmh_web.console.forms.fixed import changed_though_fixed, fix
from prefmh_web.participants.protocol import Protocol
from prefmh_web.participants.wording import Text, fixed_text, texts_of
from prefmh_web.settings.languages import local_name

_LONGEST, _LONGEST_LINE = 300_000, 300


class WordingForm(forms.Form):
    """What people read in the campaign's further languages.

    Args:
        campaign: whose texts these are.
        protocol: what its study asks beside votes.
        posted: fills the fields, if it is given.
    """

    def __init__(self, campaign: Campaign, protocol: Protocol, posted: Mapping[str, Any] | None = None) -> None:
        super().__init__(posted)
        self._fixed: dict[str, Fixed] = {}
        self._languages, self._texts = campaign.languages[1:], texts_of(campaign, protocol)
        for language in self._languages:
            known = words_now(campaign, language).texts
            for text in self._texts:
                self.fields[_name(text, language)] = _field(text, language, known.get(text.text, ""))
                if not (campaign.is_draft or text.text == protocol.debriefing):
                    fix(self, [_name(text, language)])
                    self._fixed[_name(text, language)] = fixed_text(text, language)

    def clean(self) -> dict[str, Any]:
        """Refuse what is fixed after the start."""
        for name in changed_though_fixed(self):
            self.add_error(name, self._fixed[name].sentence)
        return self.cleaned_data

    @property
    def texts(self) -> list[dict[str, object]]:
        """Each text, with its fields."""
        return [
            {"text": text, "fields": [self[_name(text, language)] for language in self._languages]}
            for text in self._texts
        ]

    @property
    def missing(self) -> int:
        """How many texts are still to be written."""
        return sum(not self[name].value() for name in self.fields)

    def translations(self) -> dict[str, dict[str, str]]:
        """Return for each language what has been written, by the text in the first one."""
        return {
            language: {
                text.text: written for text in self._texts if (written := self.cleaned_data[_name(text, language)])
            }
            for language in self._languages
        }


def _name(text: Text, language: str) -> str:
    # By what it says: the texts may have changed while the page was open.
    return f"{language}_{hashlib.sha256(text.text.encode()).hexdigest()[:16]}"


def _field(text: Text, language: str, written: str) -> forms.CharField:
    rows = {"rows": 6} if text.is_long else {"rows": 1}
    return forms.CharField(
        max_length=_LONGEST if text.is_long else _LONGEST_LINE,
        required=False,
        initial=written,
        label=f"“{text.begin}” in {local_name(language)}",
        widget=forms.Textarea(attrs=rows | {"lang": language, "dir": "auto"}),
    )
