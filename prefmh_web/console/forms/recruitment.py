"""How people come to a campaign, how much each gives, and what they get at the end."""

from __future__ import annotations

import re

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator

from prefmh_web.campaigns.models import Campaign
from prefmh_web.participants import completion
from prefmh_web.participants.models import Outcome, Recruitment
from prefmh_web.participants.recruiters import LINK, RECRUITERS, recruiter_by
from prefmh_web.participants.recruiting import AFTER_START

_PARAMETER = re.compile(r"[A-Za-z][\w.-]{0,63}", re.ASCII)
_BRACES = re.compile(r"\{[^{}]*\}")
_CODE = "code_{}"


class RecruitmentForm(forms.Form):
    """What a researcher sets up for the people of a campaign. After Start, only codes and the way back change."""

    recruiter = forms.ChoiceField(
        choices=[(each.name, each.title) for each in RECRUITERS.values()], label="Where do people come from?"
    )
    parameter = forms.CharField(
        max_length=64,
        required=False,
        label="Parameter with the person's id",
        help_text=f"Only for “{LINK.title}”: the name in the link, for example participant.",
    )
    votes_each = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        required=False,
        label="Votes per person",
        help_text="After so many votes a person's part is complete. A pair on the screen may still be answered. Leave "
        "empty for no limit.",
    )
    code_completed = forms.CharField(
        max_length=100,
        required=False,
        label="Code for completed parts",
        help_text="Shown at the end, and in the address.",
    )
    code_nothing_left = forms.CharField(
        max_length=100,
        required=False,
        label="Code if nothing is left to vote on",
        help_text="For people who could not give all their votes because the campaign was finished.",
    )
    way_back = forms.CharField(
        max_length=500,
        required=False,
        label="Address to return to",
        help_text="With {code}, {external_id}, {session_id} or another parameter of the link in braces. Leave empty "
        "for the platform's own.",
    )

    def __init__(self, *args, campaign: Campaign, recruitment: Recruitment, **kwargs):
        kwargs.setdefault("initial", _fields_of(recruitment))
        super().__init__(*args, **kwargs)
        others = Campaign.objects.filter(owner=campaign.owner_id).exclude(pk=campaign.pk).exclude(started_at=None)
        if others.exists():
            self.fields["excluded"] = forms.ModelMultipleChoiceField(
                queryset=others.order_by("name"),
                required=False,
                widget=forms.CheckboxSelectMultiple,
                label="Do not take people who took part in",
            )
        if not campaign.is_draft:
            for name in self.fields.keys() - AFTER_START - {_code_field(outcome) for outcome in Outcome}:
                self.fields[name].disabled = True

    def clean(self):
        super().clean()
        data = self.cleaned_data
        if data.get("recruiter") == LINK.name and not _PARAMETER.fullmatch(data.get("parameter") or ""):
            self.add_error(
                "parameter", ValidationError("Enter a name of letters, digits, “-”, “_” and “.”, such as participant.")
            )
        if not self.errors:
            self._check_way_back()
        return data

    def _check_way_back(self) -> None:
        data = self.cleaned_data
        recruiter = recruiter_by(data["recruiter"], data["parameter"])
        data["way_back"] = template = data["way_back"] or recruiter.way_back
        try:
            if template:
                URLValidator(schemes=["https", "http"])(_BRACES.sub("x", template))
        except ValidationError:
            self.add_error("way_back", ValidationError("Enter a whole address that begins with https://."))
            return
        known = {*recruiter.parameters, *recruiter.appends}
        # Links of the researcher's own may have any parameter.
        unknown = [] if recruiter.name == LINK.name else completion.unknown_fields(template, known)
        if unknown:
            allowed = ", ".join(f"{{{name}}}" for name in (*completion.FIELDS, *known))
            self.add_error("way_back", ValidationError(f"{{{unknown[0]}}} is not known. Use {allowed}."))
        elif "{code}" in template and not data["code_completed"]:
            self.add_error("code_completed", ValidationError("Enter the code: the address to return to has {code}."))

    def stored(self) -> dict[str, object]:
        """Return the fields of a `Recruitment`."""
        data = self.cleaned_data
        codes = {outcome.value: data[_code_field(outcome)] for outcome in Outcome}
        names = ("recruiter", "parameter", "votes_each", "way_back")
        return {name: data[name] for name in names} | {"codes": codes}

    @property
    def excluded_campaigns(self) -> list[Campaign]:
        """Campaigns whose people may not come."""
        return list(self.cleaned_data.get("excluded") or ())


def _code_field(outcome: Outcome) -> str:
    return _CODE.format(outcome.value.replace("-", "_"))


def _fields_of(recruitment: Recruitment) -> dict[str, object]:
    codes = {_code_field(outcome): recruitment.codes.get(outcome, "") for outcome in Outcome}
    names = ("recruiter", "parameter", "votes_each", "way_back")
    excluded = list(recruitment.excluded.all()) if recruitment.pk else []
    return {name: getattr(recruitment, name) for name in names} | codes | {"excluded": excluded}
