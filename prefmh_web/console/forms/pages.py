"""Small forms of a campaign's pages: its name, length, caps and copies, the steps shown, what its votes come to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from django import forms
from pydantic import BaseModel

import sampler
from prefmh_web.campaigns.frozen import StartedCampaign
from prefmh_web.campaigns.models import Campaign
from prefmh_web.campaigns.monitoring.steps import STANDINGS
from prefmh_web.config import CampaignConfig, Caps
from prefmh_web.console.forms.fields import field_of
from prefmh_web.setup.apply import MOST_PEOPLE, MOST_VOTES_EACH
from prefmh_web.setup.files import MAX_FILE_BYTES, NAME

_MOST_WORDS = 500


def _field(model: type[BaseModel], name: str, *, required: bool = False) -> forms.Field:
    """Return the field of a declared value, with its title, help and bounds."""
    field = field_of(name, model.model_fields[name])
    field.required = field.widget.is_required = required
    return field


class NameForm(forms.Form):
    """Another name, also after the start."""

    name = _field(CampaignConfig, "name", required=True)


class ExtensionFields(forms.Form):
    """How many steps each chain walks more."""

    steps = forms.IntegerField(
        min_value=1,
        max_value=sampler.LONGEST_CHAIN,
        label="Further steps of each chain",
        help_text="The chains go on from where they stand, as if the setup had asked for so many steps from the start.",
    )


class CapFields(forms.Form):
    """Both may be left empty; with both, the first to be reached counts."""

    cost = _field(Caps, "cost")
    requests = _field(Caps, "requests")

    @classmethod
    def of(cls, campaign: Campaign) -> CapFields:
        """Return the form filled in with a campaign's caps."""
        caps = campaign.config.caps
        return cls(initial={name: getattr(caps, name) for name in cls.base_fields}, auto_id="caps_%s")


class EndForm(forms.Form):
    """The researcher's reason."""

    words = forms.CharField(
        max_length=_MOST_WORDS,
        widget=forms.Textarea(attrs={"rows": 2}),
        label="Why this chain ends here",
        help_text="It becomes part of the export. Name nobody.",
    )


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


_LARGEST = 2**31 - 1


class StepsForm(forms.Form):
    """Limits of the list of steps; an empty field sets none."""

    chain = forms.IntegerField(min_value=0, max_value=_LARGEST, required=False)
    standing = forms.ChoiceField(
        choices=[("", "all"), *((name, called) for name, (called, _) in STANDINGS.items())],
        required=False,
        label="Verdict",
    )
    judge = forms.TypedChoiceField(coerce=int, empty_value=None, required=False, label="Votes of")
    person = forms.IntegerField(min_value=1, max_value=_LARGEST, required=False, label="Voted by person")
    seconds = forms.FloatField(
        min_value=0,
        max_value=10**8,
        required=False,
        label="At least, in seconds",
    )

    def __init__(self, *args: Any, started: StartedCampaign, **kwargs: Any) -> None:
        kwargs.setdefault("auto_id", "show_%s")
        super().__init__(*args, **kwargs)
        if started.config.rule.evidence != "votes":
            # Ratings and scores belong to objects; nobody votes on a step.
            del self.fields["judge"], self.fields["person"]
            return
        panelists = (
            f"{judge.question} (panelist {judge.panelist})" if judge.panelist else judge.question
            for judge in started.judges
        )
        judges = self.fields["judge"]
        assert isinstance(judges, forms.TypedChoiceField)
        judges.choices = [("", "all questions"), *enumerate(panelists)]


_UNJUDGED = ("base", "score", "quest")


class _SizeForm(forms.Form):
    """The fields of a setup that decide it, by the names that they have there."""

    chains = _field(CampaignConfig, "chains", required=True)
    max_chains = _field(CampaignConfig, "max_chains")
    steps = _field(CampaignConfig, "steps", required=True)
    burn_in = _field(CampaignConfig, "burn_in")

    def budgets(self) -> Iterator[int]:
        """Yield N of each judge.

        Raises:
            ValidationError: one is wrong.
        """
        budget = _field(sampler.JudgeConfig, "votes", required=True)
        for index in count():
            if (typed := self.data.get(f"judges.{index}.votes")) is None:
                return
            # In both orders it stands for two judges.
            yield from (budget.clean(typed),) * (1 + (self.data.get(f"judges.{index}.order") == "both"))


def estimate_shown(values: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what one chain, those of the start and all that may open take; None if nobody votes or a field is wrong.

    Args:
        values: the fields of a setup.
    """
    form = _SizeForm(values)
    if values.get("rule.kind") in _UNJUDGED or not form.is_valid():
        return None
    try:
        budgets = tuple(form.budgets())
    except forms.ValidationError:
        return None
    if not budgets:
        return None
    data = form.cleaned_data
    most = max(data["max_chains"] or 0, data["chains"])
    one, start, all_of_them = (
        sampler.estimate(chains, data["steps"], budgets, burn_in=data["burn_in"] or 0)
        for chains in (1, data["chains"], most)
    )
    return {"chains": data["chains"], "most": most, "one": one, "start": start, "all": all_of_them}
