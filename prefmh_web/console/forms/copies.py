"""A campaign that is made from a file, or as the pilot of a draft."""

from __future__ import annotations

from django import forms

from prefmh_web.setup.copies import MOST_PEOPLE, MOST_VOTES_EACH
from prefmh_web.setup.files import MAX_FILE_BYTES, NAME


class SetupFileForm(forms.Form):
    """One file; `setup.files` says what is wrong with it."""

    file = forms.FileField(
        label="Your file",
        help_text=f"A {NAME} alone, or a ZIP with {NAME} and the list that it names, as “Download the setup” gives it. "
        f"At most {MAX_FILE_BYTES // 2**20} MiB.",
        widget=forms.FileInput(attrs={"accept": ".yaml,.yml,.zip"}),
    )


class PilotForm(forms.Form):
    """How many people come to it, and how much each of them gives."""

    people = forms.IntegerField(min_value=1, max_value=MOST_PEOPLE, initial=5, label="People of the pilot")
    votes_each = forms.IntegerField(min_value=1, max_value=MOST_VOTES_EACH, initial=30, label="Votes each")
