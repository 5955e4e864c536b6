"""Texts that a model behind an endpoint writes."""

from typing import Any, ClassVar

from django import forms
from django.db.models import Q

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.choices import offer
from prefmh_web.console.forms.spaces.space_form import (
    SpaceForm,
    fresh_share_of,
    mixture,
)
from prefmh_web.console.forms.spaces.texts import CUTS, cut_of
from prefmh_web.console.forms.spaces.walks import WalkFields, walk_fields_of, walk_line
from prefmh_web.console.unstored import Sample
from prefmh_web.endpoints.dialects import Dialect
from prefmh_web.endpoints.local.models import model_names
from prefmh_web.endpoints.models import Endpoint

_WITH_TOKEN_IDS = [dialect for dialect in Dialect if dialect.has_token_ids]
# What the draft may have from a file, and a change of prompts or judges can come not to fit.
_WITHOUT_FIELDS = ("space", "space.sources", "space.estimate")


class ModelTextsForm(WalkFields, SpaceForm):
    """Which model, what it is asked for, and how its texts are changed."""

    kind = "model-texts"
    title = "Texts written by a language model"
    about = "A model of yours writes texts to your prompts, and writes their ends anew."
    samples = (Sample("texts", 1),)
    main = ("model", "prompts", "limit")
    field_of: ClassVar = {
        "space.model": "model",
        "space.prompts": "prompts",
        "space.system": "system",
        "space.limit": "limit",
        "space.temperature": "temperature",
        **WalkFields.walk_field_of,
        "kernel": "cut",
    }

    model = forms.ChoiceField(
        help_text="Only servers that take and return token ids are listed (vLLM, llama.cpp), because a text can change "
        "when it is tokenised again."
    )
    prompts = forms.CharField(
        max_length=200_000,
        widget=forms.Textarea(attrs={"rows": 5}),
        help_text="One per line. The chains use them in turn; each chain keeps its own.",
    )
    system = forms.CharField(
        max_length=4_000, required=False, widget=forms.Textarea(attrs={"rows": 2}), label="System message"
    )
    limit = forms.IntegerField(min_value=1, max_value=4_096, initial=128, label="Most tokens of a text")
    temperature = forms.FloatField(min_value=0.1, max_value=5, initial=1.0, help_text="Part of p0.")
    cut = forms.ChoiceField(choices=CUTS, initial="limit", label="The end is written again from")
    fresh_share = forms.FloatField(min_value=0, max_value=1, initial=0.1, label="Share of fresh draws")
    votes_saved = "On our benchmark of short texts, an independent sample costs 11 votes instead of 19."

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        able = Endpoint.objects.filter(~Q(can_token_ids=False), owner=self.owner, dialect__in=_WITH_TOKEN_IDS)
        local = [(name, f"{name} (runs on this site)") for name in model_names()]
        offer(self, "model", [*local, *((name, name) for name in able.values_list("name", flat=True))])

    def clean(self):
        why = "A walk needs ends that are written again from any position up to the longest possible length."
        self.demand_walkable(self.cleaned_data.get("cut") == "limit", why)

    def show_problem(self, problem: sampler.ConfigProblem) -> bool:
        if problem.path in _WITHOUT_FIELDS:
            where = problem.path.partition(".")[2]
            message = (
                f"{where and f'“{where}” '}{problem.message}. The form has no field for it: change the setup’s file."
            )
            self.add_error("prompts", message)
            return True
        return super().show_problem(problem)

    def space(self) -> dict:
        data = self.cleaned_data
        prompts = [line.strip() for line in data["prompts"].splitlines() if line.strip()]
        return {"kind": self.kind, "prompts": prompts} | {
            name: data[name] for name in ("model", "system", "limit", "temperature")
        }

    def kernel(self) -> dict:
        fresh = self.cleaned_data["fresh_share"]
        suffix = {"kind": "suffix", "cut": self.cleaned_data["cut"]}
        return self.walked(mixture((fresh, {"kind": "independent"}), (1 - fresh, suffix)), "texts")

    @classmethod
    def initial_of(cls, config: sampler.ChainConfig) -> dict:
        space: Any = config.space
        fields = {name: getattr(space, name) for name in ("model", "system", "limit", "temperature")}
        fields["prompts"] = "\n".join(space.prompts)
        return fields | {"fresh_share": fresh_share_of(config), "cut": cut_of(config), **walk_fields_of(config)}

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        config = campaign.config
        space: Any = config.space
        move = f"rewrite the end from {CUTS[cut_of(config)]}; {fresh_share_of(config):.0%} fresh texts"
        return [
            ("Objects", f"texts by {space.model}, at most {space.limit} tokens"),
            ("Prompts", "\n".join(space.prompts)),
            ("System message", space.system or "none"),
            ("Temperature", f"{space.temperature:g}"),
            ("Proposals", move),
            walk_line(config),
        ]
