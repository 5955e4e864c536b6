"""Change any one cell of a record and hash it again, so that no hash can tell: its content does, if the tables say so.

A column that is excused says why in its declaration; the list of these is here, so that it grows only on purpose.
"""

import random

import pytest

import sampler
from sampler import tables
from sampler.record.columns import JSON, MEASURE, MOMENT
from sampler.record.replay import CHECKS
from sampler.record.verify import checked
from tests.support.campaigns import EXAMPLES, example_record
from tests.support.sampling import changes_not_found

EXCUSED = {
    "votes": "voter elapsed_ms cast_at preference asks lease hidden_ms layout translated",
    "steps": "opened_at decided_at",
    "states": "weight content",
    "ratings": "asks rated_at",
    "scores": "score",
    "events": "at kind by voter data",
    "checks": "voter after_votes chain_index step judge_index elapsed_ms shown_at answered_at",
}
WHOLLY = {"reasons", "calls", "voters", "leases", "preferences", "codebook", "properties", "results"}


def test_what_is_excused_is_listed_here() -> None:
    excused = {
        table.name: " ".join(column.name for column in table.columns if column.excused)
        for table in tables.EVERY
        if not table.excused and any(column.excused for column in table.columns)
    }
    assert excused == EXCUSED
    assert {table.name for table in tables.EVERY if table.excused} == WHOLLY
    assert {MOMENT, JSON, MEASURE}.isdisjoint(
        column.kind for table in tables.CHECKED for column in table.columns if not column.excused
    )


def test_every_table_is_checked_or_excused() -> None:
    on_the_way = {"evidence.csv"}
    assert {table.file for table in tables.EVERY if not table.excused} <= CHECKS.keys() | on_the_way
    assert {table.file for table in tables.CHECKED} <= CHECKS.keys() | on_the_way


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_any_one_changed_cell_is_found(name: str) -> None:
    record = sampler.read_record(example_record(name))
    assert checked(record).differs == ()
    assert changes_not_found(record, random.Random(name)) == []
