"""Story openings that a grammar writes."""

from typing import Any, ClassVar

from django import forms

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.spaces.space_form import (
    SpaceForm,
    fresh_share_of,
    mixture,
    parts_of,
)
from prefmh_web.console.forms.spaces.walks import WalkFields, walk_fields_of, walk_line
from prefmh_web.console.unstored import Sample

CUTS = {
    "limit": "a position up to the maximum length",
    "length": "a position in the text (as in QUEST; the Hastings ratio corrects for the length)",
}


class TextsForm(WalkFields, SpaceForm):
    """Scenarios, temperature, and how often a text is written afresh."""

    kind = "texts"
    title = "Story openings from a grammar"
    about = "Short openings that this program writes and rewrites. Nothing to prepare."
    samples = (Sample("texts"),)
    field_of: ClassVar = {
        "space.scenarios": "scenarios",
        "space.temperature": "temperature",
        **WalkFields.walk_field_of,
        "kernel": "cut",
    }

    scenarios = forms.MultipleChoiceField(
        choices=[(number, scenario.prompt) for number, scenario in enumerate(sampler.STORY_SCENARIOS)],
        required=False,
        widget=forms.CheckboxSelectMultiple(attrs={"class": "many"}),
        help_text="The chains use them in turn; each chain keeps its own. Choose none to use all fifty.",
    )
    temperature = forms.FloatField(
        min_value=0.1,
        max_value=10,
        initial=1.0,
        help_text="Part of p0. Below 1, common phrases become more frequent; above 1, rare ones.",
    )
    cut = forms.ChoiceField(choices=CUTS, initial="limit", label="The end is written again from")
    fresh_share = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=0.1,
        label="Share of fresh draws",
        help_text="A fresh draw is a completely new text. In the paper: 0.1.",
    )
    votes_saved = "On our benchmark of short texts, an independent sample costs 11 votes instead of 19."

    def space(self) -> dict:
        scenarios = sorted(int(number) for number in self.cleaned_data["scenarios"])
        return {"kind": "texts", "scenarios": scenarios, "temperature": self.cleaned_data["temperature"]}

    def kernel(self) -> dict:
        fresh = self.cleaned_data["fresh_share"]
        suffix = {"kind": "suffix", "cut": self.cleaned_data["cut"]}
        return self.walked(mixture((fresh, {"kind": "independent"}), (1 - fresh, suffix)), "texts")

    @classmethod
    def initial_of(cls, config: sampler.ChainConfig) -> dict:
        space: Any = config.space
        fields = {"scenarios": list(space.scenarios), "temperature": space.temperature}
        return fields | {"fresh_share": fresh_share_of(config), "cut": cut_of(config), **walk_fields_of(config)}

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        config = campaign.config
        space: Any = config.space
        scenarios = sampler.STORY_SCENARIOS
        chosen = [scenarios[number].prompt for number in space.scenarios]
        return [
            ("Objects", "story openings from a grammar"),
            ("Scenarios", "\n".join(chosen) or f"all {len(scenarios)}"),
            ("Temperature", f"{space.temperature:g}"),
            (
                "Proposals",
                f"rewrite the end from {CUTS[cut_of(config)]}; {fresh_share_of(config):.0%} fresh texts",
            ),
            walk_line(config),
        ]


def cut_of(config: sampler.ChainConfig) -> str:
    """Return where the suffix moves of a config cut."""
    return next((part.cut for _, part in parts_of(config) if part.kind == "suffix"), "limit")
