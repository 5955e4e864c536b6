"""What the tab Convergence shows: statistics and plots of the chosen properties, and how each chain accepts.

What is chosen comes with the address, so a page can be kept as a bookmark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.paginator import Page, Paginator
from django.http import QueryDict
from django.template.loader import render_to_string

import sampler
from prefmh_web.campaigns import dispatch
from prefmh_web.campaigns.models import Campaign, Chain
from prefmh_web.campaigns.monitoring.results import (
    AIM_ESS,
    AIM_R_HAT,
    MOST_DRAWS,
    Followed,
    follow,
    main_property,
)
from prefmh_web.campaigns.monitoring.trajectories import Trajectories, trajectories_of
from prefmh_web.console.plots import MOST_POINTS, Line, Mark, Plot, rank_bars, rank_overlay, traces

A_PAGE = 25


@dataclass(frozen=True)
class Shown:
    """One property with its plots; none as long as no chain has a number."""

    followed: Followed
    trace: Plot | None
    ranks: Plot | None


@dataclass(frozen=True)
class ChainRow:
    """One chain in the table."""

    chain: Chain
    ranks: Mark | None

    @property
    def acceptance(self) -> sampler.diagnostics.Acceptance:
        """Of its decided steps."""
        return sampler.diagnostics.Acceptance(self.chain.accepted, self.chain.moves)


@dataclass(frozen=True)
class ConvergencePage:
    """The tab as it stands now."""

    campaign: Campaign
    trajectories: Trajectories
    form: ConvergenceForm
    left_out: int
    chains: Page[Chain]

    aim_r_hat, aim_ess, most_draws = AIM_R_HAT, AIM_ESS, MOST_DRAWS
    # Of prompts, those that look worst; for the filter `slice`.
    most_targets = ":10"

    @cached_property
    def followed(self) -> list[Followed]:
        """The chosen properties."""
        first = 1 if self.form.wants_all_steps else self.left_out + 1
        target_of = self.campaign.config.target_of
        return [follow(self.trajectories, name, first, target_of) for name in self.form.chosen]

    @property
    def shown(self) -> list[Shown]:
        """The chosen properties with their plots, which share the points that may be drawn."""
        points = MOST_POINTS // max(1, len(self.followed))
        return [_shown(each, points) for each in self.followed]

    @property
    def measured(self) -> int:
        """How many of the objects that chains have been at are measured."""
        return self.trajectories.visited - self.trajectories.unmeasured

    @property
    def rows(self) -> list[ChainRow]:
        """The chains of the page, with the ranks of the first chosen property."""
        ranks = dict(self.followed[0].ranks) if self.followed else {}
        return [
            ChainRow(chain, rank_bars(f"chain {chain.place}", ranks[chain.place], 1) if chain.place in ranks else None)
            for chain in self.chains
        ]

    def html(self) -> str:
        """Return the part of the page that follows live."""
        return render_to_string("console/_convergence.html", {"convergence": self})


def convergence_for(campaign: Campaign, asked: QueryDict) -> ConvergencePage:
    """Return what to show of a started campaign.

    Args:
        asked: what the page's address asks for.
    """
    trajectories, left_out = trajectories_of(campaign), campaign.config.left_out
    if trajectories.unmeasured:
        dispatch.measure(campaign)
    form = ConvergenceForm(asked, trajectories.names, main_property(campaign), left_out)
    chains = Paginator(Chain.objects.filter(campaign=campaign).order_by("place"), A_PAGE).get_page(asked.get("page"))
    return ConvergencePage(campaign, trajectories, form, left_out, chains)


def _shown(followed: Followed, points: int) -> Shown:
    lines = [Line(f"chain {place}", 0, numbers, place) for place, numbers in followed.chains if len(numbers)]
    ranks = [(f"chain {place}", place, each) for place, each in followed.ranks]
    name = followed.label
    return Shown(
        followed,
        traces(f"Trace of {name}", lines, name, most_points=points) if lines else None,
        rank_overlay(f"Ranks of {name}", ranks, 1) if ranks else None,
    )


# With 200 chains, each takes some 20 kB of every message to an open page.
MOST_AT_ONCE = 3


class ConvergenceForm(forms.Form):
    """Which properties are followed, and whether the first steps are left out."""

    properties = forms.MultipleChoiceField(
        required=False,
        label="Properties",
        widget=forms.CheckboxSelectMultiple,
        help_text=f"At most {MOST_AT_ONCE} at once.",
    )
    all_steps = forms.BooleanField(required=False, label="Include the first steps in the statistics")

    def __init__(self, asked: QueryDict, names: Sequence[str], usual: str, left_out: int) -> None:
        """Take what the address asks for.

        Args:
            names: of all properties that can be followed.
            usual: the one that is followed where the address names none.
            left_out: how many of the first steps the statistics leave out unless they are asked for.
        """
        data = asked.copy()
        if "properties" not in data:
            data.setlist("properties", [usual])
        super().__init__(data, auto_id="follow_%s")
        choices: Any = [(name, name.replace("_", " ")) for name in names]
        self.fields["properties"].choices = choices  # type: ignore[attr-defined]  # of fields with choices
        if not left_out:
            del self.fields["all_steps"]

    def clean_properties(self) -> list[str]:
        """Refuse more than a page can show.

        Raises:
            ValidationError: there are more.
        """
        chosen: list[str] = self.cleaned_data["properties"]
        if len(chosen) > MOST_AT_ONCE:
            raise ValidationError(f"Choose at most {MOST_AT_ONCE} properties; these are {len(chosen)}.")
        return chosen

    @property
    def chosen(self) -> list[str]:
        """The properties to follow; none where the address asks for something else."""
        return self.cleaned_data["properties"] if self.is_valid() else []

    @property
    def wants_all_steps(self) -> bool:
        """True where the statistics are to include the first steps."""
        return self.is_valid() and bool(self.cleaned_data.get("all_steps"))
