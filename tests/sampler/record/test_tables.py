"""The tables of an export: cells that no spreadsheet runs, without loss; a codebook of all; no other column is read."""

from datetime import UTC, datetime

import pytest

from sampler import tables
from sampler.__main__ import main
from sampler.record.tables import escaped

DANGEROUS = [
    ";=1+1", "; text", " ;=1", "；=1", "\t", "\ttext", "\n=1", "\x00=1", "\x1f1", "\x7f=1", "\u200b=1", "\ufeff+1",
    "\u00a0@A1", "﹣1", "−1", "＇=1", "\u202e=1", " \t =1", "＠A1", "＋1", "－1", "=1+1", "'quoted",
]  # fmt: skip
HARMLESS = ["plain", "0=1", "9;x", "a'b", "a;=b", "1-2", "", "½", "“a”", " ", "\u00a0", "#1", "a\t=1", "CC(=O)O"]


def code_points(text: str) -> str:
    """Return a name for a case that every program takes as an argument."""
    return " ".join(f"{ord(character):x}" for character in text) or "empty"


@pytest.mark.parametrize("text", [*DANGEROUS, *HARMLESS], ids=code_points)
def test_a_cell_that_a_spreadsheet_could_run_or_split_gets_an_apostrophe_that_reading_takes(text: str) -> None:
    assert escaped(text) == (f"'{text}" if text in DANGEROUS else text)
    row = tables.COLUMNS.row(state_index=2, column="a", value=text)
    read = dict(zip(map(str, tables.COLUMNS.header), map(str, row), strict=True))
    tables.COLUMNS.unescape(read)
    assert read == {"state_index": "2", "column": "a", "value": text}


def test_a_row_has_a_value_for_each_column_and_no_other() -> None:
    whole = {"state_index": 0, "column": "x", "value": "=y"}
    assert tables.COLUMNS.row(**whole) == [0, "x", "'=y"]
    assert tables.COLUMNS.ordered(**whole) == [0, "x", "=y"]
    with pytest.raises(KeyError, match="value"):
        tables.COLUMNS.row(state_index=0, column="x")
    with pytest.raises(TypeError, match=r"columns\.csv has no column code"):
        tables.COLUMNS.row(**whole, code="y")


def test_numbers_keep_every_digit_and_what_is_not_known_is_empty() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 678_912, tzinfo=UTC)
    row = tables.STEPS.row(
        chain_index=0, step=3, current_state=1, proposal_state=2, log_r0=0.1 + 0.2, uniform=None, verdict="",
        opened_at=moment, decided_at=None, part_index=None,
    )  # fmt: skip
    assert row == [0, 3, 1, 2, "0.30000000000000004", "", "", "2026-01-02T03:04:05.678+00:00", "", ""]
    told = tables.STEPS.values(row)
    assert (told["log_r0"], told["uniform"], told["step"]) == (0.1 + 0.2, None, 3)


def test_properties_have_a_column_for_each_measure() -> None:
    table = tables.with_measures(["words", "title", "qed"])
    assert (table.file, table.header) == ("properties.csv", ["state_index", "content", "words", "title", "qed"])
    assert table.row(state_index=1, content="=a", words=2, title="=b", qed=None) == [1, "'=a", "2", "'=b", ""]


def test_names_of_uploaded_columns_are_safe_and_each_is_another() -> None:
    names = ["a b", "A_b", "a-b", "…", "weight", "a_b_2"]
    expected = ["meta_a_b", "meta_A_b_2", "meta_a_b_3", "meta_column", "meta_weight", "meta_a_b_2_2"]
    assert tables.meta_names(names) == expected


def test_a_file_without_a_declaration_is_found() -> None:
    with pytest.raises(KeyError, match="moods"):
        list(tables.codebook({"moods.csv": tables.VOTES}, "p0(x)"))


def test_the_command_prints_every_file_and_column_and_what_is_excused(capsys) -> None:
    assert main(["tables"]) == 0
    said = capsys.readouterr().out
    assert all(f"| `{column.name}` |" in said for table in tables.EVERY for column in table.columns)
    assert "| `cast_at` | ISO 8601, UTC offset included | when the vote was cast | no: a time |" in said
