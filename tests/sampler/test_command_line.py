"""python -m sampler: both commands, and what they say when they cannot do their work."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sampler import tables
from sampler.__main__ import main
from tests.support.sampling import make_record, with_rows, write
from tests.support.uploads import archive
from tests.support.uploads import spreadsheet as table


def vote_of(judge: object, step: int, state: int) -> str:
    """Return a votes.csv of one vote."""
    cells = dict.fromkeys(tables.VOTES.header, "") | {
        "chain_index": 0, "step": step, "number": 1, "judge_index": judge, "question": "Which?", "voter": 7,
        "proposal_side": "first", "chosen_side": "first", "for_proposal": 1, "first_state": state,
        "second_state": state, "chosen_state": state, "cast_at": "2026-11-22T11:05:55.151+00:00",
    }  # fmt: skip
    return ",".join(cells) + "\n" + ",".join(map(str, cells.values())) + "\n"


def as_files(record, **changed):
    """Return the files of a record as an export holds them, some replaced, None for one that is missing."""
    files = {"campaign.json": json.dumps(record.config).encode()}
    for each in (found for found in tables.CHECKED if found is not tables.CHECKS):
        rows = record[each.name]
        files[each.file] = table([list(rows[0]) if rows else each.header, *(list(row.values()) for row in rows)])
    given = {name: each.encode() if isinstance(each, str) else each for name, each in (files | changed).items()}
    return {name: content for name, content in given.items() if content is not None}


@pytest.fixture(scope="module")
def record():
    return make_record(open_votes=2)


@pytest.fixture
def export(tmp_path, record):
    """Write an export and return its path."""

    def write(**changed):
        path = tmp_path / "export.zip"
        path.write_bytes(archive(as_files(record, **changed)))
        return path

    return write


def said(capsys):
    captured = capsys.readouterr()
    return captured.out + captured.err


def refused(arguments, capsys):
    """Return what is said on refusing these arguments."""
    try:
        assert main(arguments) == 2
    except SystemExit as exited:
        assert exited.code == 2  # noqa: PT017 - argparse leaves by an exception, main by its result
    return said(capsys)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["teleport"], "invalid choice: 'teleport'"),
        (["synthetic", "--seed", "-1"], "--seed: must be a whole number of at least 0, not '-1'"),
        (["synthetic", "--seed", "x"], "--seed: must be a whole number of at least 0, not 'x'"),
        (["diagnose"], "required: EXPORT.zip"),
    ],
)
def test_bad_arguments_are_told_apart(arguments, message, capsys):
    assert message in refused(arguments, capsys)


def test_synthetic_writes_tables_and_figures(tmp_path):
    out = tmp_path / "new" / "folder"
    command = [sys.executable, "-W", "error", "-m", "sampler", "synthetic", "--out", str(out), "--seed", "3"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=os.environ, capture_output=True, text=True, check=True)
    assert {path.name for path in out.iterdir()} == {
        "tv.csv", "distributions.csv", "tv.png", "tv.svg", "distributions.png", "distributions.svg"
    }  # fmt: skip
    for path in out.iterdir():
        assert path.read_bytes().startswith({".png": b"\x89PNG", ".svg": b"<?xml", ".csv": b""}[path.suffix])
    rows = list(csv.DictReader(io.StringIO((out / "tv.csv").read_text())))
    assert len(rows) == 7 * 300
    assert done.stdout.count("TV after 150,000 steps") == 7
    assert "100%" in done.stderr


def test_diagnose_reports_a_record(export, record, capsys):
    assert main(["diagnose", str(export())]) == 0
    lines = said(capsys).splitlines()
    assert lines[0].startswith("Cannot be judged: It takes 4 chains")
    assert lines[1] == f"2 chains, 50 decided steps, 1 open; {len(record['votes'])} counted votes, 0 late"
    assert lines[3] == "Samples: 50 of the sampling phase"
    assert [line for line in lines if line.startswith("Judge")] == [
        "Judge 0: Which one is more gothic?", "Judge 1: Which is kinder?"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"votes.csv": None}, "is not a complete export: There is no item named 'votes.csv'"),
        ({"campaign.json": b"{"}, "cannot be read"),
        ({"campaign.json": b"[]"}, "campaign.json must hold an object"),
        ({"votes.csv": b"chain_index,step\n1\n"}, "votes.csv: row 2 does not have as many cells"),
        ({"votes.csv": b"chain_index,step\n0,1\n"}, "votes.csv: there is no column “number”"),
        ({"votes.csv": b"chain_index,step,step\n0,1,1\n"}, "votes.csv: two columns are called “step”"),
        ({"samples.csv": b"\xff\xfe"}, "cannot be read: samples.csv is not in UTF-8"),
        ({"votes.csv": vote_of(judge=0, step=99, state=0)}, "there is no row (0, 99) of another table"),
        (
            {"votes.csv": vote_of(judge="x", step=1, state=0)},
            "votes.csv, row 2: “judge_index” cannot hold “x” (its values: whole number, from 0)",
        ),
        ({"votes.csv": vote_of(judge=7, step=1, state=0)}, "cannot be read: "),
    ],
)
def test_a_broken_export_is_refused(export, changed, message, capsys):
    assert message in refused(["diagnose", str(export(**changed))], capsys)


def test_an_object_that_is_no_state_is_refused(tmp_path, record, capsys):
    files = with_rows(as_files(record), "states.csv", lambda rows: rows[-1].update(object_index="99"))
    path = write(files, tmp_path / "export.zip")
    assert "there is no row '99' of another table" in refused(["diagnose", str(path)], capsys)


@pytest.mark.parametrize(("at", "value"), [(8, 1), (10, 99)], ids=["encrypted", "packed in an unknown way"])
def test_an_export_that_cannot_be_unpacked_is_refused(export, at, value, capsys):
    path = export()
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + at] = value
    path.write_bytes(content)
    assert f"{path} cannot be read: " in refused(["diagnose", str(path)], capsys)
