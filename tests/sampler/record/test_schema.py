"""The tables of an export: every column once, and cells that no spreadsheet runs, without loss."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sampler.record import schema

DANGEROUS = [
    ";=1+1", "; text", " ;=1", "；=1", "\t", "\ttext", "\n=1", "\x00=1", "\x1f1", "\x7f=1", "\u200b=1", "\ufeff+1",
    "\u00a0@A1", "﹣1", "−1", "＇=1", "\u202e=1", " \t =1", "＠A1", "＋1", "－1", "=1+1", "'quoted",
]  # fmt: skip
HARMLESS = ["plain", "0=1", "9;x", "a'b", "a;=b", "1-2", "", "½", "“a”", " ", "\u00a0", "#1", "a\t=1", "CC(=O)O"]


def code_points(text: str) -> str:
    """Return a name for a case that every program takes as an argument."""
    return " ".join(f"{ord(character):x}" for character in text) or "empty"


@pytest.mark.parametrize("text", DANGEROUS, ids=code_points)
def test_a_cell_that_a_spreadsheet_could_run_or_split_gets_an_apostrophe(text: str) -> None:
    assert schema.escaped(text) == f"'{text}"


@pytest.mark.parametrize("text", HARMLESS, ids=code_points)
def test_other_cells_are_left_alone(text: str) -> None:
    assert schema.escaped(text) == text


@pytest.mark.parametrize("text", [*DANGEROUS, *HARMLESS], ids=code_points)
def test_what_is_written_is_read_back(text: str) -> None:
    row = dict(zip(schema.SAMPLES.header, schema.SAMPLES.row(chain=0, step=1, state=2, content=text), strict=True))
    read = {str(name): str(cell) for name, cell in row.items()}
    schema.SAMPLES.unescape(read)
    assert read == {"chain": "0", "step": "1", "state": "2", "content": text}


def test_a_row_has_a_value_for_each_column_and_no_other() -> None:
    whole = {"chain": 0, "step": 1, "state": 2, "content": "x"}
    assert schema.SAMPLES.row(**whole) == [0, 1, 2, "x"]
    with pytest.raises(KeyError, match="content"):
        schema.SAMPLES.row(chain=0, step=1, state=2)
    with pytest.raises(TypeError, match=r"samples\.csv has no column code"):
        schema.SAMPLES.row(**whole, code="y")


def test_cells_that_are_written_already_come_in_the_columns_order_as_they_are() -> None:
    assert schema.SAMPLES.ordered(content="=x", state=None, chain=0, step=0.1) == [0, 0.1, None, "=x"]
    with pytest.raises(KeyError, match="content"):
        schema.SAMPLES.ordered(chain=0, step=1, state=2)
    with pytest.raises(TypeError, match=r"samples\.csv has no column code"):
        schema.SAMPLES.ordered(chain=0, step=1, state=2, content="x", code="y")


def test_numbers_keep_every_digit_and_what_is_not_known_is_empty() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_912, tzinfo=UTC)
    row = schema.STEPS.row(
        chain=0, step=3, current=1, proposal=2, log_r0=0.1 + 0.2, uniform=None, budgets=[3, 10], votes_cast=[1, 0],
        votes_for=[0, 0], verdict="", opened_at=moment, decided_at=None, current_ratings=(1 / 3, 2.0),
        proposal_ratings=(),
    )  # fmt: skip
    assert row == [
        0, 3, 1, 2, "0.30000000000000004", "", "3 10", "1 0", "0 0", "", "2026-01-02T03:04:05.678+00:00", "",
        "0.3333333333333333 2.0", "",
    ]  # fmt: skip


def test_properties_have_a_column_for_each_measure() -> None:
    table = schema.PROPERTIES.with_measures(["words", "title", "qed"])
    assert (table.file, table.header) == ("properties.csv", ["state", "content", "words", "title", "qed"])
    assert table.row(state=1, content="=a", words=2, title="=b", qed=None) == [1, "'=a", "2", "'=b", ""]
