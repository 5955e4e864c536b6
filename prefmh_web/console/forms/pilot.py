"""How large a pilot is."""

from __future__ import annotations

from django import forms

from prefmh_web.setup.pilot import MOST_PEOPLE, MOST_VOTES_EACH


class PilotForm(forms.Form):
    """How many people come to it, and how much each of them gives."""

    people = forms.IntegerField(min_value=1, max_value=MOST_PEOPLE, initial=5, label="People of the pilot")
    votes_each = forms.IntegerField(min_value=1, max_value=MOST_VOTES_EACH, initial=30, label="Votes each")
