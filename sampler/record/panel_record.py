"""A panel in a record: all votes of a panelist are of one person, and nobody is two panelists.

The links by which people came are no part of a record, and neither are names.
"""

from __future__ import annotations

from collections.abc import Iterator

from sampler.config import ChainConfig
from sampler.judges.panels import panelists_of
from sampler.judges.sources import PanelistSource
from sampler.record import schema
from sampler.record.check_chain import Difference, Tables, step_key


def compare_panelists(config: ChainConfig, tables: Tables) -> Iterator[Difference]:
    """Yield where a vote is of another person than its panelist.

    Raises:
        KeyError: a row lacks a column.
    """
    names = panelists_of(config.judges)
    person_of: dict[int, str] = {}
    panelist_of: dict[str, int] = {}
    for row in sorted(tables.votes, key=lambda row: (row.get("cast_at", ""), *step_key(row))) if names else ():
        source = config.judges[int(row["judge"])].source
        if not isinstance(source, PanelistSource):
            continue
        number = names.index(source.name) + 1
        person = person_of.setdefault(number, row["annotator"])
        if not row["annotator"] or row["annotator"] != person or panelist_of.setdefault(person, number) != number:
            vote = f"vote {row['number']}" if row["number"] else "a late vote"
            expected = f"that of panelist {number}, who is nobody else"
            found = row["annotator"] or "none"
            yield Difference(*step_key(row), f"{vote}'s annotator", found, expected, schema.VOTES.file, row)
