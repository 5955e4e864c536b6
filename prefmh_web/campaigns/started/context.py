"""What is shown with an object of the further columns of its list: which of them, the recipe says."""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Campaign, State
from sampler.judges import Context, ContextLine


def context_of(row: State, recipe: sampler.Recipe) -> Context:
    """Return what stands in the columns that a recipe shows, in their order, empty cells included."""
    return tuple(ContextLine(shown.label, row.columns.get(shown.column, "")) for shown in recipe.context)


def contexts_by_content(campaign: Campaign, recipe: sampler.Recipe, *contents: str) -> tuple[Context, ...]:
    """Return what is shown with objects that somebody has written down; nothing with one that is not in the list."""
    if not recipe.context:
        return ((),) * len(contents)
    rows = {row.content: row for row in campaign.states.filter(content__in=contents).only("content", "columns")}
    return tuple(context_of(rows[content], recipe) if content in rows else () for content in contents)
