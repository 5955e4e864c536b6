"""How people come to a campaign, how much each gives, and what they get at the end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from pydantic import ValidationError as Refused

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.config import (
    MINUTES_TO_RETURN,
    USUAL_PAY,
    CampaignConfig,
    Fixed,
    Outcome,
    Pay,
    Study,
    fixed_at,
    misfits,
)
from prefmh_web.config.misfits import PERSONAL_LIMITS
from prefmh_web.console.forms.consent_template import left_open_in
from prefmh_web.console.forms.fixed import changed_though_fixed, fix
from prefmh_web.console.forms.usual import Fold, fold_of
from prefmh_web.recruiters import LINK, RECRUITERS

_MONEY = ("place_pay", "currency")
_NAMES = (
    "recruiter",
    "parameter",
    "checks_ids",
    "votes_each",
    "budget",
    *PERSONAL_LIMITS,
    "most_a_minute",
    *_MONEY,
    "consent",
    "way_back",
)
_FIRST_ASKED = ("recruiter", "parameter", "votes_each")
_FIXED = tuple(
    name for name in Study.model_fields if name != "protocol" and fixed_at(CampaignConfig, ("study", name)) is not None
)
_WHO_COMES = {*_FIXED, "places", "budget"} - {"refused"} | {"excluded"}
HOW = {
    Outcome.COMPLETED: "with all votes given",
    Outcome.NOTHING_LEFT: "because nothing is left to vote on",
    Outcome.NO_CONSENT: "without consent",
    Outcome.NOT_ELIGIBLE: "because the person is not eligible",
    Outcome.FULL: "because no place is free",
    Outcome.NOT_UNDERSTOOD: "with too many wrong answers about the instructions",
    Outcome.CHECKS_FAILED: "with too many failed attention checks",
    Outcome.TIME_OVER: "because the time is over",
    Outcome.WITHDRAWN: "because the person withdraws",
    Outcome.ENDED: "because you end it",
}
"""How each outcome reads after “A part can end”."""


class RecruitmentForm(forms.Form):
    """What a researcher sets up for the people of a campaign. Who comes, and how much each gives, is fixed at Start."""

    recruiter = forms.ChoiceField(
        choices=[(each.name, each.title) for each in RECRUITERS.values()], label="Where do people come from?"
    )
    parameter = forms.CharField(
        max_length=64,
        required=False,
        label="Parameter with the person's id",
        help_text=f"Only for “{LINK.title}”: the name in the link, for example participant.",
    )
    checks_ids = forms.BooleanField(
        required=False,
        initial=True,
        label="Check the form of ids",
        help_text="Who comes with an id that does not look like the platform's is asked to open the study again. "
        "Untick it to try the link with ids of your own.",
    )
    votes_each = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        required=False,
        label="Votes per person",
        help_text="After so many votes a person's part is complete. A pair on the screen may still be answered. Leave "
        "empty for no limit.",
    )
    places = forms.IntegerField(
        min_value=1,
        max_value=1_000_000,
        required=False,
        label="Places",
        help_text="So many people can take part. Somebody has a place when they come to practice, or without it to the "
        "votes, and gives it back if their part ends without pay. Leave empty for no limit.",
    )
    budget = forms.IntegerField(
        min_value=1,
        max_value=1_000_000_000,
        required=False,
        label="Budget, in answers",
        help_text="So many answers can be given at most: votes, late ones, checks and repeats. Skipped pairs are free. "
        "The campaign starts only if all its steps and the declared shares of trials fit. Votes that early stopping "
        "saves stay unspent. Leave empty for no limit.",
    )
    place_pay = forms.DecimalField(
        min_value=0,
        max_value=99_999,
        decimal_places=2,
        required=False,
        label="Pay for a place",
        help_text="What the platform pays a person in full. It is only used to show what all places cost together.",
    )
    currency = forms.CharField(max_length=8, required=False, label="Currency", help_text="For example £ or EUR.")
    most_minutes = forms.IntegerField(
        min_value=5,
        max_value=10_000,
        required=False,
        label="The platform's maximum time, in minutes",
        help_text=f"A person's part ends {MINUTES_TO_RETURN} minutes before it, so that they can enter the code. Leave "
        "empty for no limit.",
    )
    most_active_minutes = forms.IntegerField(
        min_value=1,
        max_value=10_000,
        required=False,
        label="Active minutes per person",
        help_text="After so many minutes with a pair on the screen a person's part is complete. The pair on the screen "
        "may still be answered; waiting and time away are not counted. Leave empty for no limit.",
    )
    absent_minutes = forms.IntegerField(
        min_value=5,
        max_value=10_000,
        required=False,
        label="Minutes until an absent person loses their place",
        help_text="Where places are limited. Leave empty for the platform's maximum time.",
    )
    most_a_minute = forms.IntegerField(
        min_value=1,
        max_value=1000,
        required=False,
        label="Most votes a minute",
        help_text="Whoever gives more within a minute gets a flag on the page People and in the record. Nobody is "
        "refused or left out for it. Leave empty for no flag.",
    )
    consent = forms.CharField(
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 8}),
        label="Consent",
        help_text="In Markdown. People agree to it before they start, and a changed text is asked again. Leave empty "
        "for none.",
    )
    way_back = forms.CharField(
        max_length=500,
        required=False,
        label="Address to return to",
        help_text="With {code}, {external_id}, {session_id} or another parameter of the link in braces. Leave empty "
        "for the platform's own.",
    )

    def __init__(self, *args, campaign: Campaign, study: Study, **kwargs):
        kwargs.setdefault("initial", _fields_of(study))
        super().__init__(*args, **kwargs)
        self._before, self._config = study, campaign.typed_config
        for outcome, how in HOW.items():
            code = forms.TextInput(attrs={"aria-label": f"Completion code, if a part ends {how}"})
            pay = forms.Select(attrs={"aria-label": f"Paid, if a part ends {how}"})
            self.fields[_field("code", outcome)] = forms.CharField(max_length=100, required=False, widget=code)
            self.fields[_field("pay", outcome)] = forms.ChoiceField(
                choices=Pay.choices, initial=USUAL_PAY[outcome], required=False, widget=pay
            )
        others = Campaign.objects.filter(owner=campaign.owner_id).exclude(pk=campaign.pk).exclude(started_at=None)
        if others.exists():
            self.fields["excluded"] = forms.ModelMultipleChoiceField(
                queryset=others.order_by("name"),
                required=False,
                widget=forms.CheckboxSelectMultiple,
                label="Do not take people who took part in",
            )
        self._budget, self._is_started = study.budget, not campaign.is_draft
        if not campaign.is_draft:
            fix(self, ({*_FIXED} - {"refused"} | {"excluded"}) & self.fields.keys())
            # Without one, none can be set any more.
            fix(self, ["budget"] if study.budget is None or campaign.status == campaign.Status.FINISHED else [])

    def clean_budget(self) -> int | None:
        budget: int | None = self.cleaned_data["budget"]
        if self._is_started and self._budget is not None and (budget is None or budget < self._budget):
            raise ValidationError(
                f"“Budget, in answers” cannot change after the start but upwards. It is {self._budget}."
            )
        return budget

    def clean_consent(self) -> str:
        # Browsers send their own line ends; the version is the hash of the text as the researcher has it in a file.
        text: str = self.cleaned_data["consent"].replace("\r\n", "\n")
        if left_open := left_open_in(text):
            raise ValidationError(f"Fill in what stands in brackets, or take it out: {', '.join(left_open)}")
        return text

    def clean(self):
        super().clean()
        data = self.cleaned_data
        for name in changed_though_fixed(self):
            path = "refused" if name == "excluded" else name
            found = fixed_at(CampaignConfig, ("study", path)) or Fixed("Budget, in answers", "it can only be raised")
            self.add_error(name, ValidationError(found.sentence))
        if not self.errors:
            for path, reason in self._problems():
                field = {"codes": "code_completed", "refused": "excluded"}.get(path, path)
                is_here = field in self.fields
                self.add_error(field if is_here else None, ValidationError(reason if is_here else f"{path}: {reason}"))
        return data

    def _problems(self) -> Iterator[tuple[str, str]]:
        try:
            study = self.study(self._before)
        except Refused as refused:
            yield from ((each.path, each.message) for each in sampler.problems_in(refused, {}))
            return
        for path, reason in misfits(self._config.model_copy(update={"study": study})):
            part, _, name = path.partition(".")
            if part == "study":
                yield name, reason

    def study(self, before: Study) -> Study:
        """Return what is asked of people, with the protocol that there was."""
        excluded = [{"number": each.pk, "name": each.name} for each in self.excluded_campaigns]
        chosen = self.stored()
        chosen |= {name: {key: each for key, each in chosen[name].items() if each} for name in ("codes", "pay")}
        return Study.model_validate({**chosen, "refused": excluded, "protocol": before.protocol})

    def stored(self) -> dict[str, Any]:
        """Return the fields of a study."""
        data = self.cleaned_data
        codes = {outcome.value: data[_field("code", outcome)] for outcome in Outcome}
        pay = {outcome.value: data[_field("pay", outcome)] for outcome in Outcome}
        return {name: data[name] for name in _NAMES} | {"codes": codes, "pay": pay}

    @property
    def first_asked(self) -> list[forms.BoundField]:
        """Of those who come, what everybody fills in."""
        return [self[name] for name in _FIRST_ASKED]

    @property
    def limits(self) -> Fold:
        """The other limits, and what a place costs."""
        fields = [field for field in self.who_comes if field.name not in _FIRST_ASKED]
        return fold_of("Limits, budget and what a place costs", fields)

    @property
    def who_comes(self) -> list[forms.BoundField]:
        """Who comes and the limits, most of which are fixed at Start, and what a place costs."""
        return [self[name] for name in self.fields if name in _WHO_COMES or name in _MONEY]

    @property
    def other_ends(self) -> Fold:
        """The codes of all other ends, and the address to return to."""
        others = [outcome for outcome in HOW if outcome != Outcome.COMPLETED]
        rows = [self[_field(kind, outcome)] for outcome in others for kind in ("code", "pay")]
        return fold_of(
            "Codes and pay if a part ends in another way, and the address to return to", [self["way_back"], *rows]
        )

    @property
    def ends(self) -> list[dict[str, object]]:
        """For each outcome how it reads, and its fields."""
        return [
            {"how": how, "code": self[_field("code", outcome)], "pay": self[_field("pay", outcome)]}
            for outcome, how in HOW.items()
        ]

    @property
    def excluded_campaigns(self) -> list[Campaign]:
        """Campaigns whose people may not come."""
        return list(self.cleaned_data.get("excluded") or ())


def _field(kind: str, outcome: Outcome) -> str:
    return f"{kind}_{outcome.value.replace('-', '_')}"


def _fields_of(study: Study) -> dict[str, object]:
    codes = {_field("code", outcome): study.codes.get(outcome, "") for outcome in Outcome}
    pay = {_field("pay", outcome): study.pay_for(outcome) for outcome in Outcome}
    excluded = [each.number for each in study.refused]
    return {name: getattr(study, name) for name in _NAMES} | codes | pay | {"excluded": excluded}
