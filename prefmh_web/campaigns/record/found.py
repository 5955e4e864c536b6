"""What a campaign has found, from the rows that its export has: the page, the API and the ZIP show the same answer."""

from __future__ import annotations

from collections.abc import Iterator

import sampler
from prefmh_web.campaigns import objects
from prefmh_web.campaigns.models import Campaign, Measured, NotPossible
from prefmh_web.campaigns.record import rows
from prefmh_web.campaigns.record.rows import Row, Snapshot
from sampler import tables

_KEPT = 8
MOST_ROWS = 400_000
"""Samples and votes that are held in memory at once, some 1 kB for both."""


def answer_of(snapshot: Snapshot) -> sampler.Answer:
    """Return what a campaign has found at a moment.

    Raises:
        NotPossible: it has too many samples and votes for that; the message says what to do.
    """
    if (held := _size(snapshot)) > MOST_ROWS:
        raise NotPossible(
            f"The campaign has {held:,} samples and votes. Of more than {MOST_ROWS:,} the results are not computed "
            "here: download all and run “python -m sampler diagnose”."
        )
    samples = _read(tables.SAMPLES, rows.samples(snapshot))
    visited = {int(row["state_index"]) for row in samples}
    scorers = list(snapshot.campaign.scorers.values_list("frozen", flat=True))
    documents = {tables.CONFIG: snapshot.campaign.public_config, tables.SCORERS: scorers}
    record = sampler.Record(documents, {"samples": samples})
    for table in (tables.STATES, tables.STEPS, tables.VOTES, tables.SCORES, tables.EVENTS):
        record.tables[table.name] = _read(table, getattr(rows, table.name)(snapshot))
    record.tables["properties"] = list(_measured(snapshot, visited))
    return sampler.answer(record)


# Of each campaign its last answer, after what it was computed from: nothing else that it depends on changes.
_memory: dict[int, tuple[tuple[dict[int, int], dict[tuple[int, int], int], str], sampler.Answer]] = {}


def answer_now(campaign: Campaign) -> sampler.Answer:
    """Return what a started campaign has found by now. The last few answers are kept while nothing is decided.

    Raises:
        NotPossible: as `answer_of` does.
    """
    snapshot = Snapshot.now(campaign)
    now = snapshot.steps, snapshot.open_votes, campaign.status
    kept = _memory.pop(campaign.pk, None)
    found = kept[1] if kept and kept[0] == now else answer_of(snapshot)
    _memory[campaign.pk] = now, found
    while len(_memory) > _KEPT:
        oldest, *_ = _memory
        _memory.pop(oldest, None)
    return found


def verdict_now(campaign: Campaign) -> str:
    """Return the verdict on the chains in a few words; that there is none, of a draft or of too large a campaign."""
    if campaign.is_draft:
        return sampler.NOT_JUDGED
    try:
        return answer_now(campaign).verdict.is_that
    except NotPossible:
        return sampler.NOT_JUDGED


def kept_verdict(campaign: Campaign, steps: int) -> str:
    """Return the verdict on a finished campaign of so many decided steps, if it is in memory; else the empty text."""
    (decided, _, status), answer = _memory.get(campaign.pk, (({}, {}, ""), None))
    is_of_now = status == campaign.status == Campaign.Status.FINISHED and sum(decided.values()) == steps
    return answer.verdict.is_that if answer and is_of_now else ""


def is_small_enough(snapshot: Snapshot) -> bool:
    """True where the answer can be computed here."""
    return _size(snapshot) <= MOST_ROWS


def _size(snapshot: Snapshot) -> int:
    return snapshot.votes().count() + sum(snapshot.steps.values())


def _read(table: tables.Table, written: Iterator[Row]) -> list[tables.Row]:
    """Return rows as a reader of the export has them: as texts, by column, without protecting apostrophes."""
    header = [str(name) for name in next(written)]
    found = []
    for cells in written:
        row = {name: "" if cell is None else str(cell) for name, cell in zip(header, cells, strict=True)}
        table.unescape(row)
        found.append(row)
    return found


def _measured(snapshot: Snapshot, visited: set[int]) -> Iterator[tables.Row]:
    """Yield what was measured of the objects that a chain was at; what nobody has measured yet is measured now."""
    stored = dict(Measured.objects.filter(state__campaign=snapshot.campaign).values_list("state", "numbers"))
    names = sampler.properties_of_kind(snapshot.campaign.object_kind.name)
    for state in snapshot.campaign.states.select_related("campaign").defer("campaign__tuning"):
        if state.place in visited:
            numbers = stored.get(state.pk)
            if numbers is None:
                numbers = objects.numbers_of(snapshot.campaign, state)
            yield {"state_index": str(state.place)} | {name: _cell(numbers.get(name)) for name in names}


def _cell(number: float | None) -> str:
    return "" if number is None else repr(number)
