"""A panel's seats in a record: each has one person, and seats.csv says what the votes say.

The links by which people came are no part of a record. What can be checked: all votes of a seat are of one annotator,
and no annotator has two seats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sampler.judges.panels import PairsMet
from sampler.judges.sources import SeatSource
from sampler.recipe import Recipe
from sampler.record import schema
from sampler.record.check_chain import Difference, Row, Tables, step_key

_COMPARED = ("votes", "met_again", "agreed")


@dataclass
class _Seat:
    """What the votes of a record say of one seat."""

    annotator: str = ""
    votes: int = 0
    met: PairsMet = field(default_factory=PairsMet)

    def cells(self) -> dict[str, str]:
        """Return what seats.csv should say."""
        found = (self.votes, self.met.met_again, self.met.agreed)
        return dict(zip(_COMPARED, map(str, found), strict=True))


@dataclass(frozen=True)
class SeatDifference(Difference):
    """A difference that is about a seat and no step; `chain` is the seat's number."""

    file: str = schema.SEATS.file

    def __str__(self) -> str:
        return f"seat {self.chain}: {self.what} is {self.recorded} in seats.csv, {self.recomputed} in the record"


def compare_seats(recipe: Recipe, tables: Tables, rows: Iterable[Row] | None) -> Iterator[Difference]:
    """Yield where a vote is of another person than its seat's, or seats.csv differs from the votes.

    Args:
        rows: of seats.csv, if the record has one.

    Raises:
        KeyError: a row lacks a column.
    """
    seats = {number: _Seat() for number in range(1, recipe.seats + 1)}
    if seats:
        yield from _read_votes(recipe, tables, seats)
    if rows is not None:
        yield from _compare_rows({int(row["seat"]): row for row in rows}, seats)


def in_order(votes: Iterable[Row]) -> list[Row]:
    """Return votes in the order in which they were given, as far as the record tells it."""
    return sorted(votes, key=lambda row: (row.get("cast_at", ""), *step_key(row)))


def _read_votes(recipe: Recipe, tables: Tables, seats: Mapping[int, _Seat]) -> Iterator[Difference]:
    contents = {row["state"]: row["content"] for row in tables.states}
    pairs = {step_key(row): (contents.get(row["current"]), contents.get(row["proposal"])) for row in tables.steps}
    seat_of: dict[str, int] = {}
    for row in in_order(tables.votes):
        source = recipe.judges[int(row["judge"])].source
        if not isinstance(source, SeatSource):
            continue
        seat = seats[source.seat]
        seat.annotator = seat.annotator or row["annotator"]
        if row["annotator"] != seat.annotator or seat_of.setdefault(row["annotator"], source.seat) != source.seat:
            name = f"vote {row['number']}" if row["number"] else "a late vote"
            expected = f"that of seat {source.seat}, whom no other seat has"
            who = f"{name}'s annotator"
            yield Difference(*step_key(row), who, row["annotator"] or "none", expected, schema.VOTES.file, row)
        seat.votes += 1
        current, proposal = pairs.get(step_key(row), (None, None))
        is_for = row["chosen_side"] == row["proposal_side"]
        seat.met.note(row["question"], *((proposal, current) if is_for else (current, proposal)))


def _compare_rows(rows: Mapping[int, Row], seats: Mapping[int, _Seat]) -> Iterator[Difference]:
    for number in sorted(rows.keys() ^ seats.keys()):
        has = "a row" if number in rows else "no row"
        yield SeatDifference(number, 0, "the seat", has, "one seat" if number in seats else "none")
    for number in sorted(rows.keys() & seats.keys()):
        row, seat = rows[number], seats[number]
        # Somebody who has not voted yet has joined all the same.
        expected = seat.cells() | ({"annotator": seat.annotator} if seat.votes else {})
        for what, cell in expected.items():
            if row[what] != cell:
                yield SeatDifference(number, 0, what, f"“{row[what]}”", f"“{cell}”", row=row)
