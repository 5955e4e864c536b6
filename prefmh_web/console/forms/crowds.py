"""What a crowd would make of a setup whose chains open while people come: how many open, and what goes into burn-in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import count
from typing import Any

import numpy as np
from django import forms

import sampler
from prefmh_web.console.forms.rule import UNJUDGED

CROWDS, VOTES_EACH = (10, 60), 50
# Each forecast takes up to .3 s; a page asks for the same ones again and again.
_KEPT = 256


class _CrowdForm(forms.Form):
    """The fields of a setup that decide it, by the names that they have there."""

    chains = forms.IntegerField(min_value=1, max_value=sampler.MOST_CHAINS)
    most_chains = forms.IntegerField(min_value=1, max_value=sampler.MOST_CHAINS)
    steps = forms.IntegerField(min_value=1, max_value=1_000_000)
    burn_in = forms.IntegerField(min_value=0, required=False)

    def clean(self) -> dict[str, Any]:
        super().clean()
        if self.cleaned_data.get("most_chains", 0) <= self.cleaned_data.get("chains", 0):
            raise forms.ValidationError("There are no further chains to open.")
        return self.cleaned_data | {"budgets": tuple(self._budgets())}

    def budgets(self) -> tuple[int, ...]:
        """Return N of each judge; none where one is wrong."""
        try:
            return tuple(self._budgets())
        except forms.ValidationError:
            return ()

    def _budgets(self) -> Iterator[int]:
        budget = forms.IntegerField(min_value=1, max_value=1000)
        for place in count():
            if (typed := self.data.get(f"questions-{place}-budget")) is None:
                return
            votes = budget.clean(typed)
            # Two judges, one for each order, have half of the votes each.
            is_two = self.data.get(f"questions-{place}-order") == "both" and votes > 1
            yield from (votes // 2,) * 2 if is_two else (votes,)


def crowds_shown(values: Mapping[str, Any]) -> dict[str, object]:
    """Return what the table shows, by the fields of a setup: no crowds if no chain opens later or a field is wrong."""
    crowds = _crowds_in(values)
    wasteful = [crowd.people for crowd in crowds if 2 * crowd.burn_in_votes > crowd.votes]
    return {"crowds": crowds, "votes_each": VOTES_EACH, "wasteful": wasteful, "cost": _cost_in(values)}


def _cost_in(values: Mapping[str, Any]) -> dict[str, int] | None:
    """Return how many votes the chains can take at most: one, those of the start, all that may open."""
    if values.get("rule-kind") in UNJUDGED:
        return None
    form = _CrowdForm(values)
    # Without chains that open later, the form is wrong and the numbers may be right.
    form.is_valid()
    data = form.cleaned_data
    if "chains" not in data or "steps" not in data or not (budgets := form.budgets()):
        return None
    one = data["steps"] * sum(budgets)
    most = max(data.get("most_chains") or 0, data["chains"])
    return {"chains": data["chains"], "one": one, "start": data["chains"] * one, "most": most, "all": most * one}


def _crowds_in(values: Mapping[str, Any]) -> tuple[sampler.CrowdForecast, ...]:
    form = _CrowdForm(values)
    if not (form.is_valid() and form.cleaned_data["budgets"]):
        return ()
    data = form.cleaned_data
    return _foreseen(data["chains"], data["most_chains"], data["steps"], data["burn_in"] or 0, data["budgets"])


@lru_cache(maxsize=_KEPT)
def _foreseen(
    chains: int, most: int, steps: int, burn_in: int, budgets: tuple[int, ...]
) -> tuple[sampler.CrowdForecast, ...]:
    def crowd(people: int) -> sampler.CrowdForecast:
        # The same numbers each time: it is a forecast, and no draw of the campaign's.
        rng = np.random.default_rng(people)
        return sampler.forecast_crowd(
            rng, people, VOTES_EACH, chains=chains, most=most, steps=steps, burn_in=burn_in, budgets=budgets
        )

    return tuple(map(crowd, CROWDS))
