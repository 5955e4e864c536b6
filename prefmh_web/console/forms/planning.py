"""What a researcher says of the people of a campaign that is to be planned, and of those of a pilot."""

from __future__ import annotations

from typing import Any

from django import forms

from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.planning import Told
from prefmh_web.participants.models import Recruitment
from prefmh_web.setup.pilot import MOST_PEOPLE, MOST_VOTES_EACH

_PEOPLE, _MINUTES, _SECONDS = 10, 20, 10
_PILOT_PEOPLE, _PILOT_VOTES = 5, 30


class PlanForm(forms.Form):
    """The numbers of a plan that are not in the setup."""

    people = forms.IntegerField(min_value=1, max_value=100_000, label="People")
    minutes_each = forms.FloatField(min_value=1, max_value=10_000, required=False, label="Minutes each")
    seconds_a_vote = forms.FloatField(
        min_value=0.5,
        max_value=3600,
        label="Seconds a vote",
        help_text="Of somebody in the middle. Your guess may be wrong by a factor of two; a pilot replaces it.",
    )
    within_minutes = forms.FloatField(
        min_value=0,
        max_value=100_000,
        label="They come within so many minutes",
        help_text="0: all at once, when most people wait.",
    )
    pay_hour = forms.FloatField(min_value=0, max_value=100_000, required=False, label="Pay an hour")
    most_money = forms.FloatField(
        min_value=0,
        max_value=1e9,
        required=False,
        label="Money that there is",
        help_text="Empty if that is open.",
    )

    def __init__(self, data: Any, *, recruitment: Recruitment, seats: int, has_pilot: bool) -> None:
        self._has_pilot = has_pilot
        limits = _limits_in(recruitment)
        usual = {
            "people": seats or recruitment.places or _PEOPLE,
            "minutes_each": None if limits else _MINUTES,
            "seconds_a_vote": _SECONDS,
            "within_minutes": 0,
        }
        # A plan can be linked to with some of its numbers; the others are the usual ones.
        super().__init__(usual | data.dict() if data else usual, auto_id="plan_%s")
        until = f"Leave empty for the setup's own limit: {limits}." if limits else "Then they stop, votes or not."
        self.fields["minutes_each"].help_text = until
        pay = recruitment.place_pay
        by_place = f"Leave empty for the setup's {pay} {recruitment.currency} a place." if pay is not None else ""
        self.fields["pay_hour"].help_text = by_place or "Of the time from arrival to the end, waits included."
        if seats:
            del self.fields["people"]
        if has_pilot:
            del self.fields["seconds_a_vote"]

    def told(self, seats: int) -> Told:
        """Return the numbers of a valid form."""
        data = self.cleaned_data
        return Told(
            people=seats or data["people"],
            minutes_each=data["minutes_each"],
            seconds_a_vote=data.get("seconds_a_vote") or _SECONDS,
            within_minutes=data["within_minutes"],
            pay_hour=data["pay_hour"],
        )


class PilotForm(forms.Form):
    """How large a pilot is."""

    people = forms.IntegerField(min_value=1, max_value=MOST_PEOPLE, initial=_PILOT_PEOPLE, label="People of the pilot")
    votes_each = forms.IntegerField(
        min_value=1, max_value=MOST_VOTES_EACH, initial=_PILOT_VOTES, label="Votes each", help_text="30 tell enough."
    )


def pilot_form(campaign: Campaign, data: Any = None) -> PilotForm:
    """Return the form of a pilot; its fields have names of their own on the page of the plan."""
    return PilotForm(data, prefix="pilot", auto_id="%s")


def _limits_in(recruitment: Recruitment) -> str:
    told = []
    if recruitment.votes_each is not None:
        told.append(f"{recruitment.votes_each} votes")
    if recruitment.most_active_minutes is not None:
        told.append(f"{recruitment.most_active_minutes} active minutes")
    if recruitment.minutes_each is not None:
        told.append(f"{recruitment.minutes_each} minutes from arrival")
    return " or ".join(told)
