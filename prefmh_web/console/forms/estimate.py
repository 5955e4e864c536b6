"""What the votes of a setup come to, while its fields are filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from django import forms

import sampler

_UNJUDGED = ("base", "score", "quest")


class _SizeForm(forms.Form):
    """The fields of a setup that decide it, by the names that they have there."""

    chains = forms.IntegerField(min_value=1, max_value=sampler.MOST_CHAINS)
    max_chains = forms.IntegerField(min_value=1, max_value=sampler.MOST_CHAINS, required=False)
    steps = forms.IntegerField(min_value=1, max_value=1_000_000)
    burn_in = forms.IntegerField(min_value=0, required=False)

    def budgets(self) -> Iterator[int]:
        """Yield N of each judge.

        Raises:
            ValidationError: one is wrong.
        """
        budget = forms.IntegerField(min_value=1, max_value=1000)
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
