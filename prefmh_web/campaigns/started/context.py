"""What is shown with an object, as the config says: further columns of its list; of a text that a model wrote, what it
was to work on, and the number of a scorer.
"""

from __future__ import annotations

import sampler
from prefmh_web.campaigns.models import Campaign, Score, State
from sampler.judges import Context, ContextLine

NO_NUMBER_YET = "0.000"
"""For a number that will be there before anybody is asked: as long, for whoever counts the tokens of a prompt."""


def context_of(row: State, config: sampler.ChainConfig) -> Context:
    """Return what stands in the columns that a config shows, in their order, empty cells included."""
    if not config.context:
        # The columns are not read with a pair: without this each object would take one statement more.
        return ()
    if isinstance(config.space, sampler.ServedTextsConfig):
        cells = _of_a_written_text(row, config, config.space)
    else:
        cells = row.columns
    return tuple(ContextLine(shown.label, cells.get(shown.column, "")) for shown in config.context)


def contexts_by_content(campaign: Campaign, config: sampler.ChainConfig, *contents: str) -> tuple[Context, ...]:
    """Return what is shown with objects that somebody has written down; nothing with one that is not in the list."""
    if not config.context:
        return ((),) * len(contents)
    found = campaign.states.filter(content__in=contents).only("content", "columns", "place")
    rows = {row.content: row for row in found}
    return tuple(context_of(rows[content], config) if content in rows else () for content in contents)


def _of_a_written_text(row: State, config: sampler.ChainConfig, space: sampler.ServedTextsConfig) -> dict[str, str]:
    # Its number says whose it is: see `sampler.state_number`.
    cells = {"source": space.source_of(row.place % config.chains_at_most)}
    if config.estimate:
        number = None
        if row.pk is not None:
            found = Score.objects.filter(state=row, scorer__name=config.estimate)
            number = found.values_list("value", flat=True).first()
        # Three decimals, as the paper's judges of translations see it.
        cells["estimate"] = NO_NUMBER_YET if number is None else f"{number:.3f}"
    return cells
