"""What can be measured of every object, as a table to download.

Not part of the record: nothing was decided by it, and anybody can measure it again.
"""

from collections.abc import Iterator

from prefmh_web.campaigns.properties import properties_of
from prefmh_web.campaigns.record.cells import harmless
from prefmh_web.campaigns.record.export import Cut, Row

NAME = "properties.csv"


def rows(cut: Cut) -> Iterator[Row]:
    """Every object with its properties."""
    names: list[str] = []
    for state in cut.campaign.states.select_related("campaign").iterator(100):
        if cut.has_state(state):
            found = properties_of(state)
            if not names:
                names = list(found)
                yield ["state", "content", *names]
            yield [state.place, harmless(state.content), *(_cell(found[name]) for name in names)]


def _cell(value: float | int | str | None) -> str:
    if value is None:
        return ""
    return harmless(value) if isinstance(value, str) else repr(value)
