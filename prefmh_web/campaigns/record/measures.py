"""What can be measured of every object, as a table to download.

Not part of the record: nothing was decided by it, and anybody can measure it again.
"""

from collections.abc import Iterator

from prefmh_web.campaigns.record.rows import Row
from prefmh_web.campaigns.record.snapshot import Snapshot
from prefmh_web.campaigns.started import objects
from sampler import schema

NAME = schema.PROPERTIES.file
# Of the campaign, which is read with each object.


def rows(snapshot: Snapshot) -> Iterator[Row]:
    """Every object with its properties."""
    table = None
    for state in snapshot.campaign.states.select_related("campaign").defer("campaign__tuning").iterator(100):
        if snapshot.has_state(state.place):
            found = snapshot.campaign.object_kind.measures(objects.stored(state))
            if table is None:
                table = schema.PROPERTIES.with_measures(found)
                yield table.header
            yield table.row(**found, state=state.place, content=state.content)
