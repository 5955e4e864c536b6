"""Images that a decoder makes of a latent vector."""

import math
from typing import Any, ClassVar

from django import forms
from django.core.exceptions import ValidationError

import sampler
from prefmh_web.campaigns.models import Campaign
from prefmh_web.console.forms.spaces.space_form import SpaceForm, mixture, parts_of
from prefmh_web.console.unstored import Sample, Unstored

_SUM_MESSAGE = "The two shares must not add up to more than 1. The rest are fresh draws."


class ImagesForm(SpaceForm):
    """Two sizes of step, and fresh draws for the rest."""

    kind = "images"
    title = "Abstract patterns from a decoder"
    about = "Coloured patterns that change by small and large steps. Nothing to prepare."
    samples: ClassVar[tuple[Sample | Unstored, ...]] = (Sample("images"),)
    field_of: ClassVar = {"kernel": "small_share"}

    small_step = forms.FloatField(min_value=0.001, max_value=1, initial=0.08, label="Small step (β)")
    small_share = forms.FloatField(min_value=0, max_value=1, initial=0.6, label="Share of small steps")
    wide_step = forms.FloatField(min_value=0.001, max_value=1, initial=0.25, label="Large step (β)")
    wide_share = forms.FloatField(
        min_value=0,
        max_value=1,
        initial=0.3,
        label="Share of large steps",
        help_text="The rest are fresh draws. In the paper: 0.6, 0.3 and 0.1.",
    )

    def clean(self):
        super().clean()
        data = self.cleaned_data
        if data.get("small_share", 0) + data.get("wide_share", 0) > 1 + 1e-9:
            raise ValidationError(_SUM_MESSAGE)
        return data

    def space(self) -> dict:
        return {"kind": "images"}

    def kernel(self) -> dict:
        data = self.cleaned_data
        # Rounded, so that 1 - 0.6 - 0.3 is the tenth that was meant.
        fresh = max(round(1 - math.fsum((data["small_share"], data["wide_share"])), 12), 0)
        kernel = mixture(
            (data["small_share"], {"kind": "crank-nicolson", "beta": data["small_step"]}),
            (data["wide_share"], {"kind": "crank-nicolson", "beta": data["wide_step"]}),
            (fresh, {"kind": "independent"}),
        )
        return self.walked_as_before(kernel)

    @classmethod
    def initial_of(cls, config: sampler.ChainConfig) -> dict:
        steps = [(weight, part.beta) for weight, part in _steps(config)]
        fields: dict[str, float] = {"small_share": 0, "wide_share": 0}
        for name, (weight, beta) in zip(("small", "wide"), sorted(steps, key=lambda step: step[1]), strict=False):
            fields |= {f"{name}_share": weight, f"{name}_step": beta}
        return fields

    @classmethod
    def summary(cls, campaign: Campaign) -> list[tuple[str, str]]:
        moves = moves_line(campaign.config)
        return [("Objects", "abstract patterns from a decoder"), ("Proposals", moves)]


def moves_line(config: sampler.ChainConfig) -> str:
    """Return how latents are moved, in the researcher's words."""
    moves = [f"{weight:.0%} steps of β = {part.beta:g}" for weight, part in _steps(config)]
    moves += [f"{weight:.0%} fresh draws" for weight, part in parts_of(config) if part.kind == "independent"]
    return "; ".join(moves)


def _steps(config: sampler.ChainConfig) -> list[tuple[float, Any]]:
    return [(weight, part) for weight, part in parts_of(config) if part.kind == "crank-nicolson"]
